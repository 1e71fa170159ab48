import numpy as np
import pytest

from rnnlab.decoding.search import forbidden, num_rows, select


def test_select_rows_of_nested_states():
    h, c = np.arange(6.0).reshape(3, 2), np.arange(3)
    rows = np.array([2, 0, 0])
    first, nothing, (second,) = select((h, None, (c,)), rows)
    np.testing.assert_array_equal(first, [[4, 5], [0, 1], [0, 1]])
    assert nothing is None
    np.testing.assert_array_equal(second, [2, 0, 0])


def test_num_rows():
    assert num_rows(np.zeros((3, 2))) == 3
    assert num_rows((None, (np.zeros((0, 2)), np.zeros(5)))) == 0
    for state in (None, (None, None)):
        with pytest.raises(ValueError, match="the state has no array in it"):
            num_rows(state)


def test_forbidden_copies_only_where_it_writes():
    log_probs = np.zeros((2, 4))
    assert forbidden(log_probs, ()) is log_probs
    out = forbidden(log_probs, (0, 3))
    np.testing.assert_array_equal(out, [[-np.inf, 0, 0, -np.inf]] * 2)
    assert not log_probs.any()
