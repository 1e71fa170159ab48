"""How steps are divided among threads, and which chunks a kernel of all steps runs."""

import numpy as np
import pytest

pytest.importorskip("numba")

from hypothesis import given
from hypothesis import strategies as st

from rnnlab.ops.numba import chunks, kernel, products
from rnnlab.ops.steps import Steps


def lengths_to_alive(lengths):
    return [sum(length > t for length in lengths) for t in range(max(lengths))]


@given(st.lists(st.integers(1, 9), min_size=1, max_size=20), st.integers(1, 5))
def test_edges_divide_all_sequences(lengths, parts):
    counts = np.array(lengths_to_alive(lengths))
    found = chunks.edges(counts, parts)
    assert found.dtype == np.int64
    assert found.shape == (parts + 1,)
    assert found[0] == 0
    assert found[-1] == len(lengths)
    assert (np.diff(found) >= 0).all()


def test_parts_have_about_the_same_number_of_steps():
    counts = np.array(lengths_to_alive([100] * 4 + [10] * 40))
    assert chunks.edges(counts, 2).tolist() == [0, 4, 44]
    assert chunks.edges(np.array([10, 10]), 2).tolist() == [0, 5, 10]


def test_large_weights_are_not_run_by_sequences(monkeypatch):
    monkeypatch.setattr(kernel, "_threads", 2)
    steps = Steps(50, [50] * 20)
    small, large = (products.prepacked(np.zeros((units, units), np.float32)) for units in (256, 1024))
    assert chunks.shared([small], steps) == (2, True)
    assert chunks.shared([small] * 4, steps) == (2, True)
    assert chunks.shared([small] * 5, steps) == (2, False)
    assert chunks.shared([large], steps) == (2, False)
    monkeypatch.setattr(kernel, "_threads", 1)
    assert chunks.shared([large], steps) == (1, True)


def test_little_work_is_for_one_thread(monkeypatch):
    monkeypatch.setattr(kernel, "_threads", 2)
    assert chunks.shared([products.prepacked(np.zeros((32, 32)))], Steps(4, [4] * 5)) == (1, True)


@pytest.mark.parametrize("name", ["states", "rows", "own", "first"])
def test_every_row_of_the_steps_must_exist(name):
    steps = Steps(3, [3, 2, 1])
    arrays = {"states": np.empty((9, 2)), "rows": np.empty((6, 2)), "own": np.empty((3, 2))}
    arrays["first"] = np.empty((2, 2))
    assert chunks.are_inside(steps[1:], **arrays)
    arrays[name] = arrays[name][:-1]
    assert not chunks.are_inside(steps[1:], **arrays)


def test_no_steps_and_slices_are_not_inside():
    states = np.empty((9, 2))
    assert not chunks.are_inside(Steps(3, [3, 2])[:0], states=states)
    assert not chunks.are_inside(tuple(Steps(3, [3, 2])), states=states)


def test_a_weight_is_in_panels():
    weight = products.prepacked(np.zeros((16, 32)))
    assert chunks.is_weight(weight, (16, 32), np.dtype(float))
    assert not chunks.is_weight(weight, (32, 16), np.dtype(float))
    assert not chunks.is_weight(weight, (16, 32), np.dtype(np.float32))
    assert not chunks.is_weight(np.zeros((16, 32)), (16, 32), np.dtype(float))
