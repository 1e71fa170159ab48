"""Token encoder: gradients, the equations of both directions, padding and empty sentences."""

import numpy as np
import pytest

from rnnlab.models import Seq2Seq
from rnnlab.models.parts.token_encoder import SourceBatch, TokenEncoder, build_token_encoder, memory_dim
from rnnlab.models.parts.values import Source
from rnnlab.plain.gru import gru_forward

from ..toys import WORD_TO_IDX
from .checks import H, N, V, W, assert_part, dropout_rng, random_parameters, recurrence

TOKENS = np.array([[3, 4, 5, 2], [5, 2, 0, 0], [0, 0, 0, 0]])


def encoder(cell="gru", size=H, **options):
    states = 2 if cell == "lstm" else 1
    return TokenEncoder(recurrence(cell), V, W, size, decoder_states=states, decoder_dim=3, **options)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize(("cell", "num_layers"), [("gru", 1), ("lstm", 2)])
def test_gradients(cell, num_layers, bidirectional, rng):
    part = encoder(
        cell, 2, num_layers=num_layers, bidirectional=bidirectional, word_dropout=0.2, layer_dropout=0.2
    )
    batch = SourceBatch.of(TOKENS, 0)

    def forward(params):
        source, cache = part.forward(params, batch, rng=dropout_rng())
        return source.memory, *source.state, cache

    def backward(dmemory, *rest):
        *dstate, cache, grads = rest
        part.backward(Source(tuple(dstate), memory=dmemory), cache, grads)
        return ()

    assert_part(part, forward, backward, {}, rng)


def test_the_gradient_of_the_words_is_an_option(rng):
    part = encoder(word_dropout=0.2)
    params = random_parameters(part, rng)
    source, cache = part.forward(params, SourceBatch.of(TOKENS, 0), rng=dropout_rng())
    dsource = Source(source.state, memory=source.memory)
    grads, expected = params.zeros_like(), params.zeros_like()
    assert part.backward(dsource, cache, expected).shape == (*TOKENS.shape, W)
    assert part.backward(dsource, cache, grads, input_gradient=False) is None
    np.testing.assert_array_equal(grads.flat, expected.flat)


def test_it_is_the_equations(rng):
    part = encoder()
    params = random_parameters(part, rng)
    source, _ = part.forward(params, SourceBatch.of(TOKENS, 0))
    for n, length in enumerate([4, 2]):
        x = params["W_source"][TOKENS[n : n + 1, :length]]
        names = [[f"encoder_{way}1_{name}" for name in ("Wx", "Wh", "b")] for way in ("forward", "backward")]
        forward, backward = ([params[name] for name in each] for each in names)
        h, *_ = gru_forward(x, np.zeros((1, H)), *forward)
        reverse, *_ = gru_forward(x[:, ::-1], np.zeros((1, H)), *backward)
        expected = np.concatenate([h, reverse[:, ::-1]], axis=2)[0]
        np.testing.assert_allclose(source.memory[n, :length], expected, rtol=1e-10)
        final = np.concatenate([expected[-1, :H], expected[0, H:]])
        state = np.tanh(final @ params["W_init"] + params["b_init"])
        np.testing.assert_allclose(source.state[0][n], state, rtol=1e-10)
    np.testing.assert_array_equal(source.mask, TOKENS != 0)
    np.testing.assert_allclose(source.state[0][2], np.tanh(params["b_init"]), rtol=1e-12)  # no tokens


@pytest.mark.parametrize("bidirectional", [False, True])
def test_a_padded_batch_has_the_same_outputs(bidirectional, rng):
    part = encoder(bidirectional=bidirectional)
    params = random_parameters(part, rng)
    expected, _ = part.forward(params, SourceBatch.of(TOKENS, 0))
    padded = SourceBatch.of_padded(SourceBatch.of(TOKENS, 0, 8).padded(np.float64))
    assert padded.tokens.shape == padded.mask.shape == (N, 8)
    source, _ = part.forward(params, padded)
    np.testing.assert_allclose(source.state[0], expected.state[0], rtol=1e-12)
    real = TOKENS != 0
    np.testing.assert_allclose(source.memory[:, :4][real], expected.memory[real], rtol=1e-12)


def test_sentences_are_cut_to_the_longest():
    batch = SourceBatch.of(np.pad(TOKENS, ((0, 0), (0, 3))), 0)
    np.testing.assert_array_equal(batch.tokens, TOKENS)
    np.testing.assert_array_equal(batch.lengths, [4, 2, 0])
    np.testing.assert_array_equal(batch.last_rows, [3, 5, 8])
    inside = SourceBatch.of(np.array([[3, 0, 4, 0]]), 0)
    np.testing.assert_array_equal(inside.lengths, [3])  # padding between words is part of the sentence


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
def test_the_encoder_of_a_translation_model(options, units, memory, num_layers):
    dropout = {"word_dropout": 0.1, "layer_dropout": 0.2}
    options = (
        Seq2Seq(WORD_TO_IDX, WORD_TO_IDX, W, H)._options | dropout | options | {"num_layers": num_layers}
    )
    encoder = build_token_encoder(recurrence("gru"), V, 2, options)
    assert encoder.memory_dim == memory_dim(options) == memory
    assert encoder.embedding.dropout == 0.1
    shapes = encoder.shapes()
    assert shapes["W_source"] == (V, W)
    assert shapes["encoder_forward1_Wh"] == (units, 3 * units)
    assert shapes["W_init"] == (memory, 2 * H)
    assert ("encoder_forward2_Wh" in shapes) == (num_layers == 2)
