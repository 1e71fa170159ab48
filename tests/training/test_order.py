from __future__ import annotations

import numpy as np
import pytest

from rnnlab.training.order import DataOrder


def make(data, seed=3):
    return DataOrder(data, 8, np.random.default_rng(seed))


def epochs(order, number):
    found = []
    for _ in range(number):
        found.append(np.concatenate(order.batches()))
        order.end_epoch()
    return found


def test_every_epoch_has_every_example_in_another_order(data):
    first, second = epochs(make(data), 2)
    assert sorted(first) == sorted(second) == list(range(50))
    assert not np.array_equal(first, second)


def test_order_follows_from_the_seed(data):
    np.testing.assert_array_equal(epochs(make(data), 3), epochs(make(data), 3))
    assert not np.array_equal(epochs(make(data), 1), epochs(make(data, seed=4), 1))


def test_asking_again_changes_nothing(data):
    order = make(data)
    first = np.concatenate(order.batches())
    np.testing.assert_array_equal(np.concatenate(order.batches()), first)
    assert order.epoch == order.batch == 0


@pytest.mark.parametrize("begun", [False, True])
def test_state_continues(data, begun):
    one, other = make(data), make(data, seed=99)
    epochs(one, 2)
    if begun:
        one.batches()
        one.batch = 4
    other.load_state(one.state())
    assert (other.epoch, other.batch) == (2, 4 if begun else 0)
    np.testing.assert_array_equal(epochs(other, 3), epochs(one, 3))


def test_other_data_are_noticed(data, make_data):
    order = make(data)
    order.batches()
    other = make(make_data())
    other.load_state(order.state())
    x, y = data.splits["train"]
    other._data.splits["train"] = x[:40], y[:40]
    with pytest.raises(ValueError, match="has 5 batches of 8, expected 7 as when the run was saved"):
        other.batches()


def test_no_examples(data):
    data.splits["train"] = tuple(array[:0] for array in data.splits["train"])
    with pytest.raises(ValueError, match="'train' split has no examples"):
        make(data).batches()


def test_indices_in_the_place_of_batches(make_data, rng):
    data = make_data()
    data.epoch = lambda split, batch_size, rng: [0, 1]
    with pytest.raises(TypeError, match=r"the data's epoch returned .*, expected arrays of indices"):
        DataOrder(data, 10, rng).batches()


@pytest.mark.parametrize("kind", [np.array, iter])
def test_batches_in_another_container(kind, make_data, rng):
    data = make_data()
    rows = [np.arange(10), np.arange(10, 20)]
    data.epoch = lambda split, batch_size, rng: kind(rows)
    assert [batch.tolist() for batch in DataOrder(data, 10, rng).batches()] == [row.tolist() for row in rows]
