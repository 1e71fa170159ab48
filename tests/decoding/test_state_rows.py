"""The rows of decoding states: selected, counted, and in chunks."""

from typing import NamedTuple

import numpy as np
import pytest

from rnnlab.decoding.state_rows import chunks, num_rows, repeated_rows, select


def test_select_rows_of_nested_states():
    h, c = np.arange(6.0).reshape(3, 2), np.arange(3)
    rows = np.array([2, 0, 0])
    first, nothing, (second,) = select((h, None, (c,)), rows)
    np.testing.assert_array_equal(first, [[4, 5], [0, 1], [0, 1]])
    assert nothing is None
    np.testing.assert_array_equal(second, [2, 0, 0])


class Named(NamedTuple):
    h: np.ndarray
    shared: object


def test_a_named_tuple_stays_one():
    shared = object()
    (state,) = select((Named(np.arange(3), shared),), np.array([2, 0]))
    np.testing.assert_array_equal(state.h, [2, 0])
    assert state.shared is shared


def test_what_belongs_to_all_rows_is_handed_on():
    shared = object()
    assert select((np.zeros(3), shared), np.array([1]))[1] is shared


@pytest.mark.parametrize("count", [1, 3])
def test_repeated_rows(count):
    state, nothing = repeated_rows((np.arange(2), None), count)
    np.testing.assert_array_equal(state, np.repeat([0, 1], count))
    assert nothing is None


def test_num_rows():
    assert num_rows(np.zeros((3, 2))) == 3
    assert num_rows((None, (np.zeros((0, 2)), np.zeros(5)))) == 0
    assert num_rows(((None, object()), (np.zeros(5),))) == 5
    for state in (None, (None, None)):
        with pytest.raises(ValueError, match="the state has no array in it"):
            num_rows(state)
    for state in ([np.zeros(5)], (np.zeros(5), [np.zeros(5)]), (np.zeros(5), {"c": np.zeros(5)})):
        with pytest.raises(TypeError, match="has a (list|dict) of arrays in it, .* expected a tuple"):
            num_rows(state)
    assert num_rows((np.zeros(5), [3], {"words": 4})) == 5


@pytest.mark.parametrize(("rows", "sizes"), [(0, []), (1, [1]), (3, [3]), (4, [2, 2]), (7, [3, 2, 2])])
def test_chunks(rows, sizes):
    state = np.arange(rows), None
    parts = list(chunks(state, 3))
    assert [len(part) for part, _ in parts] == sizes
    for part, (numbers, nothing) in parts:
        np.testing.assert_array_equal(numbers, part)
        assert nothing is None
    assert [row for part, _ in parts for row in part] == list(range(rows))


def test_rows_with_several_slots_are_in_smaller_chunks():
    assert [len(rows) for rows, _ in chunks(np.arange(7), 6, 2)] == [3, 2, 2]
    assert [len(rows) for rows, _ in chunks(np.arange(2), 1, 2)] == [1, 1]


def test_chunks_on_a_gpu_are_eight_times_as_large(simulated):
    parts = list(chunks(simulated.arange(9), 1))
    assert [len(part) for part, _ in parts] == [5, 4]
    assert [part.get().tolist() for _, part in parts] == [[0, 1, 2, 3, 4], [5, 6, 7, 8]]
    assert len(list(chunks(simulated.arange(9), 4, 2))) == 1
