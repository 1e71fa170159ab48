"""Update rules on NumPy by hand; tests/training/test_optim.py compares them with PyTorch."""

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


def test_a_later_step_of_adam_by_hand():
    """The corrections of the bias, the scale of the gradient, and an epsilon that is large enough to see."""
    w, m, v = W.copy(), np.array([1.0, 0.0, -1.0]), np.array([1.0, 2.0, 3.0])
    next_m, next_v = 0.9 * m + 0.1 * (2 * DW), 0.99 * v + 0.01 * (2 * DW) ** 2
    options = {"learning_rate": 0.1, "beta1": 0.9, "beta2": 0.99, "epsilon": 0.5, "scale": 2.0}
    ops.adam(w, DW, m, v, step=3, **options)
    np.testing.assert_allclose(m, next_m)
    np.testing.assert_allclose(v, next_v)
    m_hat, v_hat = next_m / (1 - 0.9**3), next_v / (1 - 0.99**3)
    np.testing.assert_allclose(w, W - 0.1 * m_hat / (np.sqrt(v_hat) + 0.5))


def test_rmsprop_adagrad_and_adadelta_by_hand():
    g, start = 2 * DW, np.array([1.0, 2.0, 3.0])
    options = {"learning_rate": 0.1, "epsilon": 0.5, "scale": 2.0}
    mean = 0.9 * start + 0.1 * g**2

    w, cache = W.copy(), start.copy()
    ops.rmsprop(w, DW, cache, decay_rate=0.9, **options)
    np.testing.assert_allclose(cache, mean)
    np.testing.assert_allclose(w, W - 0.1 * g / (np.sqrt(mean) + 0.5))

    w, cache = W.copy(), start.copy()
    ops.adagrad(w, DW, cache, **options)
    np.testing.assert_allclose(cache, start + g**2)
    np.testing.assert_allclose(w, W - 0.1 * g / (np.sqrt(start + g**2) + 0.5))

    w, cache, delta_cache = W.copy(), start.copy(), start[::-1].copy()
    ops.adadelta(w, DW, cache, delta_cache, decay_rate=0.9, **options)
    delta = np.sqrt((start[::-1] + 0.5) / (mean + 0.5)) * g
    np.testing.assert_allclose(cache, mean)
    np.testing.assert_allclose(delta_cache, 0.9 * start[::-1] + 0.1 * delta**2)
    np.testing.assert_allclose(w, W - 0.1 * delta)


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
