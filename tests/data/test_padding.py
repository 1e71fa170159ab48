import numpy as np

from rnnlab.data import Vocabulary
from rnnlab.data.padding import PaddedRows, pad, source_row

ROWS = [np.array([1]), np.array([2, 3]), np.array([], int)]


def test_padding_by_hand():
    padded = pad(ROWS)
    np.testing.assert_array_equal(padded, [[1, 0], [2, 3], [0, 0]])
    assert padded.dtype == np.int32
    assert pad([]).shape == (0, 0)


def test_a_slice_is_as_wide_as_its_longest_row():
    rows = PaddedRows(ROWS)
    np.testing.assert_array_equal(rows[:1], [[1]])
    np.testing.assert_array_equal(rows[1:], [[2, 3], [0, 0]])
    np.testing.assert_array_equal(rows.lengths(), [1, 2, 0])
    assert len(rows) == 3


def test_a_source_has_no_start():
    np.testing.assert_array_equal(source_row(Vocabulary(["a"]), ["a", "b"]), [4, 3, 2])
    np.testing.assert_array_equal(source_row(Vocabulary(["a"]), []), [2])
