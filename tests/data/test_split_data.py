import numpy as np
import pytest

from rnnlab.data import (
    ArrayData,
    CaptionData,
    CaptionedImages,
    CaptionGroups,
    CaptionSplit,
    ParallelData,
    PixelData,
    TextData,
    Vocabulary,
)
from rnnlab.data.joint import JointCaptionData
from rnnlab.data.split_data import SplitData, batches, drawn

_tokens = np.array([[1, 4, 2], [1, 5, 2]])
_split = CaptionSplit(np.ones((2, 3), np.float32), _tokens, np.array([0, 1]), ("x", "y"), (["a"], ["b"]))
_captions = CaptionData(Vocabulary(["a", "b"]), {"train": _split})
DATA = [
    ArrayData({"train": (np.ones((2, 3)), np.array([0, 1]))}),
    _captions,
    CaptionedImages(_captions),
    JointCaptionData({"run": _captions}),
    ParallelData({"train": [(["a"], ["b"])] * 2}),
    PixelData({"train": (np.zeros((2, 2, 2), np.uint8), np.array([0, 1]))}),
    TextData({"train": [["a"]] * 2}),
]


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


@pytest.mark.parametrize("data", DATA, ids=lambda data: type(data).__name__)
def test_the_indices_of_a_batch(data):
    of_indices = f"^{type(data).__name__}.batch: indices"
    for right in ([1, 0], np.array([1, 0], np.uint8), []):
        assert len(data.batch("train", right)[-1]) == len(right)
    for number in (1, np.int64(1), np.array(1)):
        with pytest.raises(TypeError, match=rf"{of_indices} is .*1.*, expected an array \(N,\) of integers"):
            data.batch("train", number)
    for wrong in ([1.0], [True, False], ["a"], None):
        with pytest.raises(TypeError, match=f"{of_indices} have dtype .*, expected integers"):
            data.batch("train", wrong)
    with pytest.raises(ValueError, match=rf"{of_indices} have shape \(1, 2\), expected \(N,\)"):
        data.batch("train", [[0, 1]])
    with pytest.raises(ValueError, match=f"{of_indices} has rows of different lengths, expected an array"):
        data.batch("train", [[0, 1], [0]])


@pytest.mark.parametrize("data", [*DATA[:3], *DATA[4:], CaptionGroups(_captions, 2)], ids=repr)
def test_a_seed_would_give_the_same_order_in_every_epoch(data):
    with pytest.raises(TypeError, match="^epoch: rng is 0, expected a numpy Generator or None"):
        data.epoch("train", 2, 0)


def test_the_indices_of_a_batch_of_groups():
    data = CaptionGroups(_captions, 2)
    assert data.batch("train", [[0, 0], [1, 1]])[1].shape == (2, 2, 3)
    with pytest.raises(ValueError, match=r"Groups.batch: indices have shape \(2,\), expected \(N, S\)"):
        data.batch("train", [0, 1])
    with pytest.raises(TypeError, match=r"batch: indices is 1, expected an array \(N, S\) of integers"):
        data.batch("train", 1)
