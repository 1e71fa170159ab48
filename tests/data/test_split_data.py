import numpy as np
import pytest

from rnnlab.data.split_data import SplitData, batches, drawn


def test_a_split_by_its_name():
    data = SplitData()
    data.name, data.splits = "toys", {"train": "a", "val": "b"}
    assert data.split("val") == "b"
    with pytest.raises(KeyError, match="toys has the splits train, val, not 'dev'"):
        data.split("dev")


def test_some_examples_are_drawn_with_seed_0():
    assert np.flatnonzero(drawn(23, 7)).tolist() == sorted(np.random.default_rng(0).permutation(23)[:7])
    assert drawn(3, 5).tolist() == [True] * 3
    assert drawn(0, 5).shape == (0,)


@pytest.mark.parametrize(
    ("count", "batch_size", "sizes"), [(7, 3, [3, 3, 1]), (6, 3, [3, 3]), (2, 5, [2]), (0, 5, [])]
)
def test_batches_keep_the_order_and_the_last_may_be_smaller(count, batch_size, sizes):
    order = np.arange(count)[::-1]
    found = batches(order, batch_size)
    assert [len(batch) for batch in found] == sizes
    np.testing.assert_array_equal(np.concatenate([[], *found]), order)


@pytest.mark.parametrize("batch_size", [0, -1])
def test_empty_batches(batch_size):
    with pytest.raises(ValueError, match=f"epoch: batch_size is {batch_size}, expected at least 1"):
        batches(np.arange(3), batch_size)
