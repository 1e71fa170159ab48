"""Arrays on NumPy."""

import numpy as np

from rnnlab.ops import numpy as ops


def test_arrays_of_numpy_are_not_copied(rng):
    x = rng.standard_normal((2, 3))
    for same in (ops.asarray(x), ops.asnumpy(x), ops.prefetch(x, x)):
        assert same is x
    assert ops.prefetch(x, np.zeros(1, np.float32)).dtype == np.float32
    assert ops.scalar(np.float32(2)) == 2.0
    assert ops.empty(3).dtype == ops.zeros((2, 1)).dtype == np.float64


def test_rows_are_taken_and_put(rng):
    x, rows = rng.standard_normal((5, 3)), np.array([4, 0, 2])
    out, back = np.empty((3, 3)), np.zeros((5, 3))
    ops.take(x, rows, out)
    np.testing.assert_array_equal(out, x[rows])
    ops.put(out, rows, back)
    np.testing.assert_array_equal(back[rows], x[rows])
    np.testing.assert_array_equal(back[[1, 3]], 0)


def test_no_rows_are_taken_and_put():
    x, rows, out = np.ones((5, 3)), np.zeros(0, int), np.empty((0, 3))
    for _ in range(2):  # the second call has the shapes that the first one has checked
        ops.take(x, rows, out)
        ops.put(out, rows, x)
    np.testing.assert_array_equal(x, 1)


def test_concatenate():
    halves = [np.zeros((2, 1)), np.ones((2, 3))]
    assert ops.concatenate(halves, axis=1).shape == (2, 4)
    assert ops.concatenate([half.T for half in halves]).shape == (4, 2)
