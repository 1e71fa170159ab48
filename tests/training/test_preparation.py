"""Batches in the form that an update takes: which rows each rank computes, their sizes, and memory errors."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from rnnlab.training.preparation import Part, Preparation, Prepared, batch_of, padded

OPTIONS = SimpleNamespace(accumulate=2)


def rank_of(rank, size):
    return SimpleNamespace(rank=rank, size=size)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_the_ranks_share_the_parts_of_a_batch(model, data, size):
    indices = np.array([4, 2, 9, 0, 7, 7, 1, 30])
    of_ranks = [Preparation(model, data, OPTIONS, rank_of(rank, size))(indices) for rank in range(size)]
    assert [part.number for batch in of_ranks for part in batch.parts] == list(range(2 * size))
    assert sum(batch.examples for batch in of_ranks) == len(indices)
    assert all(batch.padded is None for batch in of_ranks)
    x = np.concatenate([part.arrays[0] for batch in of_ranks for part in batch.parts])
    np.testing.assert_array_equal(x, data.batch("train", indices)[0])


def test_parts_have_about_as_many_tokens(model, data):
    data.row_lengths = lambda split, indices: np.where(indices == 0, 9, 1)
    first, second = Preparation(model, data, OPTIONS)(np.arange(9)).parts
    assert (len(first.arrays[0]), len(second.arrays[0])) == (1, 8)


@pytest.mark.parametrize(
    ("lengths", "found"),
    [
        (np.ones(2, int), r"an array of shape \(2,\) .*"),
        (np.ones((9, 1), int), r"an array of shape \(9, 1\) .*"),
        (3, "an int"),
        ([1.5] * 9, r"\[1.5 .*"),
        ([np.nan] * 9, r"\[nan .*"),
        ([2] * 8 + [-1], r"\[ ?2 .* -1\]"),
    ],
)
def test_lengths_that_are_not_one_for_each_row(model, data, lengths, found):
    data.row_lengths = lambda split, indices: lengths
    with pytest.raises(ValueError, match=f"^Solver: data.row_lengths returned {found}, expected the number"):
        Preparation(model, data, OPTIONS)(np.arange(9))


@pytest.mark.parametrize(
    ("name", "count", "message"),
    [
        ("num_tokens", -1, "num_tokens returned -1, expected an integer of at least 0"),
        ("num_tokens", 3.5, "num_tokens returned 3.5, expected an integer of at least 0"),
        ("num_tokens", np.ones(3), "num_tokens returned an array of shape .*, expected an integer"),
        ("num_examples", math.nan, "num_examples returned nan, expected an integer of at least 0"),
        ("num_examples", "x", "num_examples returned .*, expected an integer of at least 0"),
    ],
)
def test_counts_that_are_no_integers(model, data, name, count, message):
    setattr(data, name, lambda batch: count)
    with pytest.raises(TypeError, match=f"^Solver: {message}"):
        Preparation(model, data, OPTIONS)(np.arange(9))


@pytest.mark.parametrize("kind", [int, float, np.int16, np.float32, np.array])
def test_integers_of_all_types(model, data, kind):
    data.num_tokens = lambda batch: kind(3)
    data.row_lengths = lambda split, indices: [kind(2)] * len(indices)
    batch = Preparation(model, data, OPTIONS)(np.arange(9))
    assert batch.tokens == 6
    assert isinstance(batch.tokens, int)


def test_examples_are_counted_by_the_data(model, data):
    data.num_examples = lambda batch: 5 * len(batch[0])
    assert Preparation(model, data, OPTIONS)(np.arange(4)).examples == 20


def test_otherwise_the_rows_of_the_last_array(model, data):
    batch = data.batch
    data.batch = lambda split, indices: (*batch(split, indices), None)  # lengths of a classifier's sequences
    assert Preparation(model, data, OPTIONS)(np.arange(5)).examples == 5
    data.batch = lambda split, indices: (np.zeros(2), np.zeros(96), None)  # one index is a whole batch
    assert Preparation(model, data, SimpleNamespace(accumulate=1))(np.arange(1)).examples == 96


def test_tokens_are_not_counted_before_an_objective_has_sampled_them(model, data):
    indices = np.arange(4)
    assert Preparation(model, data, OPTIONS)(indices).tokens == data.num_tokens(data.batch("train", indices))
    data.num_tokens = None
    assert Preparation(model, data, OPTIONS, objective=object())(indices).tokens == 0


def test_memory_that_is_full_names_the_size_of_the_batch(model, data):
    def full(arrays):
        raise MemoryError("no memory")

    model.prefetch = full
    with pytest.raises(MemoryError, match="out of memory: no memory; for a batch of 4 examples"):
        Preparation(model, data, OPTIONS)(np.arange(4))


def test_parts_are_padded_with_the_sizes_of_the_batch():
    class Model:
        def padded(self, *arrays, part_of, **options):
            return arrays, part_of, options

        def prefetch_padded(self, part):
            return ("sent", *part)

    batch = Prepared([Part(0, (1,), {"weights": 2}), Part(1, (3,))], examples=5, tokens=7)
    made = padded(Model(), batch)
    assert made.padded == [("sent", (1,), (5, 7), {"weights": 2}), ("sent", (3,), (5, 7), {})]
    assert made.parts == batch.parts


def test_a_batch_is_a_tuple(rng):
    class Data:
        splits = ("train",)

        def batch(self, split, indices):
            return rng.standard_normal((len(indices), 2))

    with pytest.raises(TypeError, match=r"data.batch returned a ndarray, expected a tuple of the arguments"):
        batch_of(Data(), "train", np.arange(3))


@pytest.mark.parametrize("objective", [None, object()], ids=["likelihood", "objective"])
def test_the_model_counts_its_own_batches(model, data, objective):
    """Those of an objective have no sentences yet: their examples are rows."""
    model.num_examples = lambda batch: 5 * len(batch[0])
    found = Preparation(model, data, OPTIONS, objective=objective)(np.arange(4))
    assert found.examples == (20 if objective is None else 4)
