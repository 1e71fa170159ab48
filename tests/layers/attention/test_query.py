"""Attention of one query: the equations, numeric gradients, errors."""

import re

import numpy as np
import pytest

from rnnlab.layers.attention.query import (
    attention_keys_backward,
    attention_keys_forward,
    attention_shapes,
    attention_step_backward,
    attention_step_forward,
)
from rnnlab.plain import attention as plain

from ..reference import assert_gradients, assert_same, every_dtype, spoil

SCORES = ["additive", "dot", "bilinear"]
N, L, H, C, A = 3, 4, 5, 2, 3
MASK = np.array([[1, 0, 1, 1], [0, 0, 0, 0], [1, 1, 1, 1]], bool)

every_score = pytest.mark.parametrize("score", SCORES)
every_mask = pytest.mark.parametrize("mask", [None, MASK], ids=["full", "masked"])


def inputs(score, rng, n=N, slots=L):
    """A query, a memory and the parameters of a score."""
    columns = H if score == "dot" else C
    shapes = attention_shapes(score, query_dim=H, memory_dim=columns, attention_dim=A)
    arrays = {"query": (n, H), "memory": (n, slots, columns)} | shapes
    return {name: rng.standard_normal(shape) for name, shape in arrays.items()}


def functions(score, mask=None):
    """Keys and step as one forward and one backward, of all inputs."""

    def forward(query, memory, **params):
        keys, keys_cache = attention_keys_forward(memory, params, score=score)
        *outs, cache = attention_step_forward(query, keys, memory, params, score=score, mask=mask)
        return *outs, (keys_cache, cache)

    def backward(dcontext, dweights, caches):
        keys_cache, cache = caches
        dquery, dkeys, dmemory, dparams = attention_step_backward(dcontext, cache, dweights=dweights)
        through_keys, of_keys = attention_keys_backward(dkeys, keys_cache)
        grads = of_keys | dparams
        names = attention_shapes(score, query_dim=H, memory_dim=H, attention_dim=A)
        return dquery, dmemory + through_keys, *(grads[name] for name in names)

    return forward, backward


@every_score
@every_mask
def test_it_is_the_equations(score, mask, rng):
    a = inputs(score, rng)
    context, weights, _ = functions(score, mask)[0](**a)
    expected_context, expected, _ = plain.attend_forward(a["query"], a["memory"], a, score=score, mask=mask)
    np.testing.assert_allclose(weights, expected, rtol=1e-12)
    np.testing.assert_allclose(context, expected_context, rtol=1e-12)
    np.testing.assert_allclose(weights.sum(axis=1), 1 if mask is None else mask.any(axis=1), rtol=1e-12)


@every_score
@every_mask
@pytest.mark.parametrize("sizes", [(N, L), (1, 1), (0, L)], ids=str)
def test_gradients(score, mask, sizes, rng):
    mask = None if mask is None else mask[: sizes[0], : sizes[1]]
    assert_gradients(*functions(score, mask), inputs(score, rng, *sizes), rng)


@every_score
def test_what_is_masked_is_not_read(score, rng):
    a = inputs(score, rng)
    keys, _ = attention_keys_forward(a["memory"], a, score=score)
    clean = attention_step_forward(a["query"], keys, a["memory"], a, score=score, mask=MASK)
    for array in (keys, a["memory"]):
        array[~MASK] = np.nan
    spoilt = attention_step_forward(a["query"], keys, a["memory"], a, score=score, mask=MASK)
    assert_same(spoilt[:2], clean[:2])
    douts = rng.standard_normal(clean[0].shape), spoilt[2]
    *grads, dparams = attention_step_backward(*douts)
    *expected, dparams_expected = attention_step_backward(douts[0], clean[2])
    assert_same((*grads, *dparams.values()), (*expected, *dparams_expected.values()))


@every_score
def test_lengths_say_the_same_as_a_mask(score, rng):
    a = inputs(score, rng)
    keys, _ = attention_keys_forward(a["memory"], a, score=score)
    lengths = np.array([2, 0, 4])
    mask = np.arange(L) < lengths[:, None]
    by_lengths = attention_step_forward(a["query"], keys, a["memory"], a, score=score, lengths=lengths)
    for dtype in (bool, int, float):
        by_mask = attention_step_forward(
            a["query"], keys, a["memory"], a, score=score, mask=mask.astype(dtype)
        )
        assert_same(by_mask[:2], by_lengths[:2])


@pytest.mark.slow
@every_score
@every_dtype
def test_dtype_in_is_dtype_out(score, dtype, rng):
    forward, backward = functions(score, MASK)
    a = inputs(score, rng)
    *outs, caches = forward(**{name: array.astype(dtype) for name, array in a.items()})
    *expected, exact = forward(**a)
    for actual, wanted in zip(
        (*outs, *backward(*outs, caches)), (*expected, *backward(*expected, exact)), strict=True
    ):
        assert actual.dtype == dtype
        np.testing.assert_allclose(actual, wanted, rtol=1e-4, atol=1e-5)


@every_score
def test_outputs_and_gradients_may_be_overwritten(score, rng):
    forward, backward = functions(score, MASK)
    *outs, caches = forward(**inputs(score, rng))
    douts = [rng.standard_normal(out.shape) for out in outs]
    first = backward(*douts, caches)
    saved = tuple(grad.copy() for grad in first)
    spoil(*first, *outs)
    assert_same(backward(*douts, caches), saved)


@every_score
def test_large_scores(score, rng):
    a = {name: 1e3 * array for name, array in inputs(score, rng).items()}
    context, weights, _ = functions(score)[0](**a)
    assert np.isfinite(context).all()
    np.testing.assert_allclose(weights.sum(axis=1), 1)


def test_gradients_of_keys_are_added_into_arrays_that_are_given(rng):
    a = inputs("additive", rng)
    keys, cache = attention_keys_forward(a["memory"], a)
    _, expected = attention_keys_backward(keys, cache)
    into = {name: np.ones_like(array) for name, array in expected.items()}
    _, grads = attention_keys_backward(keys, cache, into=into)
    for name, grad in grads.items():
        assert grad is into[name]
        np.testing.assert_allclose(grad, 1 + expected[name])


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"score": "cosine"}, "score is 'cosine', expected one of additive, dot, bilinear"),
        ({"params": {}}, "params has no Wq, Wm, b, v, expected Wq, Wm, b, v"),
        ({"mask": np.ones((3, 3))}, "mask has shape (3, 3), expected (N, L) = (3, 4)"),
        ({"mask": MASK, "lengths": np.ones(3, int)}, "both lengths and mask are given, expected one of them"),
        ({"lengths": np.ones(3)}, "lengths has shape (3,) and dtype float64, expected 3 integers"),
        ({"lengths": np.array([1, 2, 5])}, "lengths holds 5, expected numbers from 0 to L = 4"),
        ({"query": np.ones((3, 4))}, "Wq has shape (5, 3), expected (H, A) = (4, 3)"),
        ({"memory": np.ones((3, 3, 2))}, "keys has shape (3, 4, 3), expected (N, L, A) = (3, 3, 3)"),
    ],
)
def test_what_does_not_fit_is_named(change, message, rng):
    a = inputs("additive", rng)
    params = {name: a[name] for name in ("Wq", "Wm", "b", "v")}
    keys, _ = attention_keys_forward(a["memory"], params)
    given = {"query": a["query"], "keys": keys, "memory": a["memory"], "params": params}
    error = TypeError if "float64" in message else ValueError
    with pytest.raises(error, match=re.escape(f"attention_step_forward: {message}")):
        attention_step_forward(**given | change)


def test_backward_refuses_gradients_that_do_not_fit(rng):
    a = inputs("additive", rng)
    keys, _ = attention_keys_forward(a["memory"], a)
    context, weights, cache = attention_step_forward(a["query"], keys, a["memory"], a)
    with pytest.raises(ValueError, match="attention_step_backward: dcontext has shape"):
        attention_step_backward(context[:, 1:], cache)
    with pytest.raises(TypeError, match="attention_step_backward: dweights has dtype float32"):
        attention_step_backward(context, cache, dweights=weights.astype(np.float32))


@pytest.mark.parametrize("score", ["additive", "dot", "bilinear"])
def test_backward_of_keys_refuses_gradients_that_do_not_fit(score, rng):
    a = inputs(score, rng)
    keys, cache = attention_keys_forward(a["memory"], a, score=score)
    with pytest.raises(ValueError, match="attention_keys_backward: dkeys has shape"):
        attention_keys_backward(keys.swapaxes(0, 1), cache)
    with pytest.raises(TypeError, match="attention_keys_backward: dkeys has dtype float32"):
        attention_keys_backward(keys.astype(np.float32), cache)


def test_a_gradient_may_be_part_of_a_wider_array(rng):
    shapes = attention_shapes("additive", query_dim=4, memory_dim=3, attention_dim=2)
    params = {name: rng.standard_normal(shape) for name, shape in shapes.items()}
    query, memory = rng.standard_normal((2, 4)), rng.standard_normal((2, 5, 3))
    keys, _ = attention_keys_forward(memory, params)
    _, _, cache = attention_step_forward(query, keys, memory, params)
    wide = rng.standard_normal((2, 8))
    found, expected = (attention_step_backward(each, cache) for each in (wide[:, 2:5], wide[:, 2:5].copy()))
    for one, other in zip(found[:3], expected[:3], strict=True):
        np.testing.assert_array_equal(one, other)
