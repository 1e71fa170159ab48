"""Sequences in reverse order."""

import numpy as np
import pytest

from rnnlab.layers import reversed_in_time

N, T, D = 4, 5, 3
LENGTHS = np.array([T, 2, 0, 1])


def test_real_steps_are_reversed_and_padding_stays(rng):
    x = rng.standard_normal((N, T, D))
    before, y = x.copy(), reversed_in_time(x, LENGTHS)
    np.testing.assert_array_equal(y[0], x[0, ::-1])
    np.testing.assert_array_equal(y[1], x[1, [1, 0, 2, 3, 4]])
    np.testing.assert_array_equal(y[2:], x[2:])
    np.testing.assert_array_equal(reversed_in_time(y, LENGTHS), x)
    np.testing.assert_array_equal(x, before)
    assert not np.shares_memory(x, y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_without_lengths_all_steps_are_reversed(dtype, rng):
    x = rng.standard_normal((N, T, D)).astype(dtype)
    y = reversed_in_time(x)
    assert y.dtype == dtype
    np.testing.assert_array_equal(y, x[:, ::-1])
    mask = np.arange(T) < LENGTHS[:, None]
    np.testing.assert_array_equal(reversed_in_time(x, mask=mask), reversed_in_time(x, LENGTHS))


def test_it_is_its_own_backward(rng):
    x, dy = rng.standard_normal((2, N, T, D))
    dx = reversed_in_time(dy, LENGTHS)
    assert np.vdot(reversed_in_time(x, LENGTHS), dy) == pytest.approx(np.vdot(x, dx))


@pytest.mark.parametrize("shape", [(0, 3, 2), (2, 0, 3), (2, 3, 0), (1, 1, 1)])
def test_small_shapes(shape):
    assert reversed_in_time(np.zeros(shape), np.minimum(np.ones(shape[0], int), shape[1])).shape == shape


def test_other_layouts(rng):
    x = rng.standard_normal((N, T, 2 * D))
    for part in (x[:, :, :D], x[:, ::-1, ::2], np.asfortranarray(x), x.transpose(0, 2, 1)):
        ends = np.minimum(LENGTHS, part.shape[1])
        np.testing.assert_array_equal(
            reversed_in_time(part, ends), reversed_in_time(np.ascontiguousarray(part), ends)
        )


@pytest.mark.parametrize(
    ("x", "lengths", "error", "message"),
    [
        (np.zeros((N, T)), LENGTHS, ValueError, "reversed_in_time: x has shape"),
        (np.zeros((N, T, D)), LENGTHS + 1, ValueError, "lengths holds 6, expected numbers from 0 to T = 5"),
        (np.zeros((N, T, D)), LENGTHS[:2], ValueError, "lengths has shape"),
        (np.zeros((N, T, D), int), LENGTHS, TypeError, "reversed_in_time: x has dtype int64"),
        ([[[1.0]]], None, TypeError, "reversed_in_time: x is a list"),
    ],
)
def test_bad_input(x, lengths, error, message):
    with pytest.raises(error, match=message):
        reversed_in_time(x, lengths)
