"""The encoder that the options of a captioning model choose."""

import pytest

from rnnlab.models.parts.captioning import build_encoder
from rnnlab.models.parts.encoders import ImageVectorEncoder, InitialStateEncoder, RegionEncoder

from ..toys import D, G, build

DEFAULTS = build()._options


def options_of(**options):
    return DEFAULTS | options


@pytest.mark.parametrize(
    ("options", "kind", "dropout"),
    [
        ({}, InitialStateEncoder, 0.3),
        ({"image_input": "first_input"}, ImageVectorEncoder, 0.3),
        ({"image_input": "second_layer"}, ImageVectorEncoder, 0.3),
        ({"attention": "dot"}, RegionEncoder, 0.3),
        ({"attention": "dot", "global_dim": G}, RegionEncoder, 0.3),
        ({"target_attention": True}, InitialStateEncoder, 0.3),
    ],
    ids=str,
)
def test_encoder(options, kind, dropout):
    encoder = build_encoder(1, 1, options_of(feature_dropout=dropout, **options))
    assert type(encoder) is kind
    assert encoder.dropout == dropout
    if kind is RegionEncoder:  # the mean of regions is not dropped twice
        assert encoder.initial_state.dropout == (dropout if "global_dim" in options else 0)
    rows = {"W_proj": (options.get("global_dim") or D)}
    assert all(encoder.shapes()[name][0] == size for name, size in rows.items())
