"""Update rules on NumPy by hand; tests/training/test_update_rule.py compares them with PyTorch."""

import numpy as np
import pytest

from rnnlab.ops import numpy as ops
from rnnlab.ops.numpy import optim

from ..cases import EXPLODED, RULES, assert_scaled_first

W, DW = np.array([1.0, -2.0, 3.0]), np.array([0.5, 4.0, -2.0])


def test_sgd_and_momentum_by_hand():
    w, velocity = W.copy(), np.array([1.0, 0.0, -1.0])
    ops.sgd(w, DW, learning_rate=0.1, scale=2.0)
    np.testing.assert_allclose(w, W - 0.2 * DW)
    w = W.copy()
    ops.momentum(w, DW, velocity, learning_rate=0.1, momentum=0.9, scale=2.0)
    np.testing.assert_allclose(velocity, [0.9 - 0.1, -0.8, -0.9 + 0.4])
    np.testing.assert_allclose(w, W + velocity)


def test_adam_by_hand():
    w, m, v = W.copy(), np.zeros(3), np.zeros(3)
    ops.adam(w, DW, m, v, step=1, learning_rate=0.1, beta1=0.9, beta2=0.99, epsilon=0.0)
    np.testing.assert_allclose(w, W - 0.1 * np.sign(DW))  # the first step has the size of the rate
    np.testing.assert_allclose(m, 0.1 * DW)
    np.testing.assert_allclose(v, 0.01 * DW**2)
    decayed, m, v = W.copy(), np.zeros(3), np.zeros(3)
    ops.adamw(
        decayed, DW, m, v, step=1, learning_rate=0.1, beta1=0.9, beta2=0.99, epsilon=0.0, weight_decay=0.5
    )
    np.testing.assert_allclose(decayed, W * 0.95 - 0.1 * np.sign(DW))


@pytest.mark.parametrize("name", RULES)
def test_blocks_do_not_change_a_number(name, rng, monkeypatch):
    slots, options = RULES[name]
    arrays = [rng.standard_normal(1000) for _ in range(2)] + [rng.random(1000) for _ in range(slots)]
    results = []
    for bytes_of_block in (1 << 17, 8 * 7):
        monkeypatch.setattr(optim, "_BLOCK_BYTES", bytes_of_block)
        copies = [array.copy() for array in arrays]
        getattr(ops, name)(*copies, learning_rate=0.1, scale=0.5, **options)
        results.append(copies)
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(results[0][1], arrays[1])  # the gradient is only read


def test_sums_and_checks():
    x = np.array([3.0, -4.0, 0.5])
    assert ops.sum_of_squares(x) == 25.25
    assert ops.sum_of_squares(np.zeros(0)) == 0
    assert ops.first_non_finite(x) is None
    assert ops.first_non_finite(np.zeros(0)) is None
    assert ops.first_non_finite(np.array([1.0, np.inf, np.nan])) == 1
    ops.clip_values(x, 1.0)
    np.testing.assert_array_equal(x, [1, -1, 0.5])
    small = np.array([2e-38, 1e-39, -1e-39, 0.0], np.float32)
    ops.flush_subnormals(small)
    np.testing.assert_array_equal(small, np.array([2e-38, 0, 0, 0], np.float32))


def test_decay_of_weights_by_hand():
    w = np.array([1.0, -2.0, 0.0])
    ops.decay_weights(w, rate=0.25, scale=0.1)  # the scale is that of a gradient
    np.testing.assert_array_equal(w, [0.75, -1.5, 0.0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1, 40_000])
def test_a_move_towards_a_target(size, dtype):
    x, target = np.random.default_rng(0).standard_normal((2, size)).astype(dtype)
    target[::3] = x[::3]
    at_first, expected = x.copy(), x.astype(float) + 0.001 * (target.astype(float) - x)
    ops.move_towards(x, target, rate=0.001)
    np.testing.assert_allclose(x, expected, rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(x[::3], at_first[::3])


@pytest.mark.parametrize("largest", EXPLODED)
@pytest.mark.parametrize("name", RULES)
def test_an_exploded_gradient_is_scaled_first(name, largest):
    with np.errstate(all="raise", under="ignore"):
        assert_scaled_first(ops, name, largest)
