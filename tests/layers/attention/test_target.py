"""Attention of a decoder to its own past, from states that are known."""

import re

import numpy as np
import pytest

from rnnlab.layers.attention.query import attention_shapes
from rnnlab.layers.attention.target import (
    target_attention_backward,
    target_attention_forward,
)
from rnnlab.plain import target_attention as plain

from ..reference import assert_gradients, assert_same, spoil

SCORES = ["additive", "dot", "bilinear"]
N, T, H, A = 3, 4, 3, 2
LENGTHS = {"full": None, "ragged": np.array([2, 4, 0]), "none": np.array([0, 0, 0])}

every_score = pytest.mark.parametrize("score", SCORES)
every_lengths = pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS)


def inputs(score, rng, n=N, t=T):
    shapes = attention_shapes(score, query_dim=H, memory_dim=H, attention_dim=A)
    shapes = {"h": (n, t, H), "h0": (n, H)} | shapes
    return {name: rng.standard_normal(shape) for name, shape in shapes.items()}


def functions(score, lengths):
    def forward(h, h0, **params):
        return target_attention_forward(h, h0, params, score=score, lengths=lengths)

    def backward(dcontexts, dweights, cache):
        dh, dh0, dparams = target_attention_backward(dcontexts, cache, dweights=dweights)
        return dh, dh0, *dparams.values()

    return forward, backward


@every_score
@every_lengths
def test_it_is_the_equations(score, lengths, rng):
    a = inputs(score, rng)
    contexts, weights, _ = functions(score, lengths)[0](**a)
    expected, expected_weights, _ = plain.target_attention_forward(
        a["h"], a["h0"], a, score=score, lengths=lengths
    )
    np.testing.assert_allclose(contexts, expected, rtol=1e-12)
    np.testing.assert_allclose(weights, expected_weights, rtol=1e-12)
    assert not contexts[:, 0].any()


@every_score
@every_lengths
def test_gradients(score, lengths, rng):
    assert_gradients(*functions(score, lengths), inputs(score, rng), rng)


@every_score
@pytest.mark.parametrize("sizes", [(1, 1), (1, 3), (2, 0), (0, 2)], ids=str)
def test_gradients_of_small_batches(score, sizes, rng):
    assert_gradients(*functions(score, None), inputs(score, rng, *sizes), rng)


def test_padding_is_not_read(rng):
    a, lengths = inputs("additive", rng), LENGTHS["ragged"]
    forward, backward = functions("additive", lengths)
    *outs, cache = forward(**a)
    spoilt = a | {"h": np.where(np.arange(T)[:, None] < lengths[:, None, None], a["h"], np.nan)}
    *spoilt_outs, spoilt_cache = forward(**spoilt)
    assert_same(tuple(spoilt_outs), tuple(outs))
    assert_same(backward(*outs, spoilt_cache), backward(*outs, cache))


def test_a_mask_says_what_lengths_say(rng):
    a, lengths = inputs("dot", rng), LENGTHS["ragged"]
    *outs, _ = target_attention_forward(a["h"], a["h0"], {}, score="dot", lengths=lengths)
    mask = np.arange(T) < lengths[:, None]
    *masked, _ = target_attention_forward(a["h"], a["h0"], {}, score="dot", mask=mask)
    assert_same(tuple(masked), tuple(outs))


def test_outputs_and_gradients_may_be_overwritten(rng):
    forward, backward = functions("dot", LENGTHS["ragged"])
    *outs, cache = forward(**inputs("dot", rng))
    douts = [rng.standard_normal(out.shape) for out in outs]
    first = backward(*douts, cache)
    kept = tuple(grad.copy() for grad in first)
    spoil(*first, *outs)
    assert_same(backward(*douts, cache), kept)


def test_gradients_are_added_into_arrays_that_are_given(rng):
    a = inputs("bilinear", rng)
    contexts, _, cache = target_attention_forward(a["h"], a["h0"], a, score="bilinear")
    *_, expected = target_attention_backward(contexts, cache)
    into = {"W": np.ones((H, H))}
    *_, grads = target_attention_backward(contexts, cache, into=into)
    assert grads["W"] is into["W"]
    np.testing.assert_allclose(grads["W"], 1 + expected["W"])


def test_what_does_not_fit_is_named(rng):
    a = inputs("additive", rng)
    with pytest.raises(ValueError, match=re.escape("target_attention_forward: h has shape (3, 4, 2)")):
        target_attention_forward(a["h"][:, :, 1:], a["h0"], a)
    with pytest.raises(ValueError, match="target_attention_forward: params has no Wq"):
        target_attention_forward(a["h"], a["h0"], {})
    contexts, weights, cache = target_attention_forward(a["h"], a["h0"], a)
    with pytest.raises(ValueError, match="target_attention_backward: dcontexts has shape"):
        target_attention_backward(contexts[1:], cache)
    with pytest.raises(ValueError, match="target_attention_backward: dweights has shape"):
        target_attention_backward(contexts, cache, dweights=weights[1:])
