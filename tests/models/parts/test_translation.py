"""The parts that the options of a translation model choose."""

import pytest

from rnnlab.models import Seq2Seq
from rnnlab.models.parts.decoders import AttentiveDecoder, RecurrentDecoder
from rnnlab.models.parts.reviewer import NoReviewer
from rnnlab.models.parts.translation import build_decoder, build_encoder, memory_dim

from ..toys import WORD_TO_IDX, H, W
from .checks import V, recurrence

DEFAULTS = Seq2Seq(WORD_TO_IDX, WORD_TO_IDX, W, H)._options


def options_of(**options):
    return DEFAULTS | options


@pytest.mark.parametrize("num_layers", [1, 2])
@pytest.mark.parametrize(
    ("options", "units", "memory"),
    [
        ({}, H, 2 * H),
        ({"encoder_dim": 3}, 3, 6),
        ({"bidirectional": False}, H, H),
        ({"encoder_dim": 3, "bidirectional": False}, 3, 3),
    ],
    ids=str,
)
def test_encoder(options, units, memory, num_layers):
    options = options_of(num_layers=num_layers, word_dropout=0.1, layer_dropout=0.2, **options)
    encoder = build_encoder(recurrence("gru"), V, 2, options)
    assert encoder.memory_dim == memory_dim(options) == memory
    assert encoder.embedding.dropout == 0.1
    shapes = encoder.shapes()
    assert shapes["W_source"] == (V, W)
    assert shapes["encoder_forward1_Wh"] == (units, 3 * units)
    assert shapes["W_init"] == (memory, 2 * H)
    assert ("encoder_forward2_Wh" in shapes) == (num_layers == 2)


@pytest.mark.parametrize(
    ("options", "kind", "context_dim"),
    [
        ({"attention": None}, RecurrentDecoder, 0),
        ({"attention": "additive"}, AttentiveDecoder, 7),
        ({"attention": None, "target_attention": True}, AttentiveDecoder, H),
        ({"attention": "additive", "target_attention": True}, AttentiveDecoder, 7 + H),
    ],
    ids=str,
)
def test_decoder(options, kind, context_dim):
    decoder = build_decoder(recurrence("gru"), NoReviewer(7, 1), options_of(**options))
    assert type(decoder) is kind
    assert decoder.context_dim == context_dim
    assert getattr(decoder, "attends_to_source", False) == (options["attention"] is not None)


@pytest.mark.parametrize(("given", "units"), [(None, H), (3, 3)])
def test_the_units_of_additive_scores(given, units):
    decoder = build_decoder(recurrence("gru"), NoReviewer(7, 1), options_of(attention_dim=given))
    assert decoder.shapes()["source_v"] == (units,)
