from __future__ import annotations

import math

import numpy as np
import pytest

from rnnlab.ops.numpy import optim
from rnnlab.parameters import Parameters
from rnnlab.training.clipping import clip_by_norm, clip_by_value, gradient_norm, norm_scale


@pytest.fixture
def grads(rng):
    grads = Parameters({"W": (30, 40), "b": (40,)})
    grads.flat[...] = rng.standard_normal(grads.flat.size)
    return grads


def test_norm_is_that_of_all_gradients(grads, monkeypatch):
    monkeypatch.setattr(optim, "_BLOCK_BYTES", 1024)
    assert gradient_norm(grads) == pytest.approx(np.linalg.norm(grads.flat.astype(np.float64)), rel=1e-6)


def test_norm_of_huge_gradients_is_finite(grads):
    expected = np.linalg.norm(grads.flat.astype(np.float64)) * 1e30
    grads.flat *= np.float32(1e30)
    assert gradient_norm(grads) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_norm_is_not_finite_if_an_element_is_not(grads, value):
    grads.flat[777] = value
    assert not np.isfinite(gradient_norm(grads))


def test_norm_of_nothing_is_zero():
    assert gradient_norm(Parameters({})) == 0
    assert gradient_norm(Parameters({"W": (2, 2)})) == 0


def test_clip_by_norm(grads):
    before = grads.flat.copy()
    norm = clip_by_norm(grads, 2.0)
    assert norm == pytest.approx(np.linalg.norm(before), rel=1e-6)
    assert gradient_norm(grads) == pytest.approx(2, rel=1e-6)
    np.testing.assert_allclose(grads.flat, before * (2 / norm), rtol=1e-6)


def test_clip_by_norm_leaves_a_small_gradient(grads):
    before = grads.flat.copy()
    clip_by_norm(grads, 1000.0)
    np.testing.assert_array_equal(grads.flat, before)


def test_clip_by_value(grads):
    before = grads.flat.copy()
    clip_by_value(grads, 0.5)
    np.testing.assert_array_equal(grads.flat, np.clip(before, -0.5, 0.5))


def test_an_infinite_norm_changes_nothing(grads):
    before = grads.flat.copy()
    assert clip_by_norm(grads, math.inf) == gradient_norm(grads)
    np.testing.assert_array_equal(grads.flat, before)


@pytest.mark.parametrize("bound", [-1.0, 0, math.nan, "1", None])
def test_bounds_that_are_not_positive(grads, bound):
    before = grads.flat.copy()
    with pytest.raises(ValueError, match="^clip_by_norm: max_norm is .*, expected a positive number"):
        clip_by_norm(grads, bound)
    with pytest.raises(ValueError, match="^clip_by_value: bound is .*, expected a positive number"):
        clip_by_value(grads, bound)
    np.testing.assert_array_equal(grads.flat, before)


@pytest.mark.parametrize(("max_norm", "scale"), [(None, 1), (8, 1), (4, 1), (1, 0.25)])
def test_norm_scale(max_norm, scale):
    assert norm_scale(4, max_norm) == scale
