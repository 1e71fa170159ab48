import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from rnnlab.layers import dropout_backward, dropout_forward

from .reference import assert_gradients, assert_same, every_dtype, spoil


def test_units_are_dropped_or_scaled(rng):
    x = rng.standard_normal((200, 300))
    for p in (0.2, 0.5, 0.9):
        out, _ = dropout_forward(x, p, rng=rng)
        dropped = out == 0
        np.testing.assert_allclose(out[~dropped], x[~dropped] / (1 - p), rtol=1e-12)
        assert dropped.mean() == pytest.approx(p, abs=0.01)  # five standard deviations of 60,000 draws
        assert out.mean() == pytest.approx(x.mean(), abs=0.05)


def test_units_are_dropped_independently(rng):
    dropped = dropout_forward(np.ones((300, 300)), 0.5, rng=rng)[0] == 0
    assert dropped.mean(axis=0).std() == pytest.approx(0.5 / np.sqrt(300), rel=0.2)
    assert dropped.mean(axis=1).std() == pytest.approx(0.5 / np.sqrt(300), rel=0.2)


@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 4), (0, 4)])
def test_gradients(shape, rng):
    assert_gradients(
        lambda x: dropout_forward(x, 0.4, rng=np.random.default_rng(1)),
        dropout_backward,
        {"x": rng.standard_normal(shape)},
        rng,
    )


def test_the_generator_alone_decides(rng):
    x = rng.standard_normal((5, 6))
    one, other, third = (dropout_forward(x, 0.5, rng=np.random.default_rng(seed))[0] for seed in (1, 1, 2))
    assert_same(one, other)
    assert (one != third).any()


@pytest.mark.parametrize(("p", "training"), [(0.0, True), (0.7, False)])
def test_nothing_is_dropped(p, training, rng):
    x = rng.standard_normal((3, 4))
    out, cache = dropout_forward(x, p, rng=rng if training else None)
    assert out is x
    dout = rng.standard_normal((3, 4))
    assert dropout_backward(dout, cache) is dout


def test_p_zero_draws_nothing(rng):
    before = rng.bit_generator.state
    dropout_forward(np.ones((3, 4)), 0.0, rng=rng)
    assert rng.bit_generator.state == before


@every_dtype
def test_dtype(dtype, rng):
    out, cache = dropout_forward(rng.standard_normal((3, 4)).astype(dtype), 0.3, rng=rng)
    assert out.dtype == dropout_backward(out, cache).dtype == dtype


def test_outputs_may_be_overwritten(rng):
    out, cache = dropout_forward(np.ones((3, 4)), 0.5, rng=rng)
    before = dropout_backward(np.ones((3, 4)), cache)
    spoil(out)
    assert_same(dropout_backward(np.ones((3, 4)), cache), before)


@pytest.mark.parametrize("p", [0.0, 0.5])
def test_a_seed_is_no_generator(p):
    with pytest.raises(TypeError, match="dropout_forward: rng is 3, expected a numpy Generator or None"):
        dropout_forward(np.ones(2), p, rng=3)


@pytest.mark.parametrize("p", [-0.1, 1.0, 1.5, float("nan")])
def test_not_a_probability(p, rng):
    with pytest.raises(ValueError, match=rf"dropout_forward: p is {p}, expected a probability in \[0, 1\)"):
        dropout_forward(np.ones(3), p, rng=rng)


@given(
    shape=npst.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=5),
    p=st.floats(0, 0.95),
    dtype=st.sampled_from([np.float32, np.float64]),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=40)
def test_the_backward_multiplies_with_the_mask_of_the_forward(shape, p, dtype, seed):
    x = np.random.default_rng(seed).standard_normal(shape).astype(dtype)
    mask, cache = dropout_forward(np.ones(shape, dtype), p, rng=np.random.default_rng(seed))
    out, _ = dropout_forward(x, p, rng=np.random.default_rng(seed))
    np.testing.assert_allclose(out, x * mask, rtol=1e-6)
    assert_same(dropout_backward(x, cache), out)
    assert set(np.unique(mask)) <= {dtype(0), dtype(1 / (1 - p))}


def test_a_gradient_that_does_not_fit(rng):
    _, cache = dropout_forward(np.ones((3, 4)), 0.5, rng=rng)
    with pytest.raises(
        ValueError, match=re.escape("dropout_backward: dout has shape (4, 3), expected (3, 4)")
    ):
        dropout_backward(np.ones((4, 3)), cache)
    with pytest.raises(TypeError, match="dropout_backward: dout has dtype float32, expected float64"):
        dropout_backward(np.ones((3, 4), np.float32), cache)
    _, cache = dropout_forward(np.ones((3, 4)), 0.5, rng=None)
    with pytest.raises(ValueError, match="dropout_backward: dout has shape"):
        dropout_backward(np.ones((4, 3)), cache)
