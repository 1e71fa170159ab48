import numpy as np
import pytest

from rnnlab.data import open_digits
from rnnlab.data.pixels import PixelInputs

pytest.importorskip("sklearn")


def test_the_splits_are_disjoint_and_complete():
    data = open_digits()
    assert {name: len(split) for name, split in data.splits.items()} == {
        "train": 1257,
        "val": 180,
        "test": 360,
    }
    assert data.batch("val", np.arange(5))[0].shape == (5, 64, 1)
    assert data.batch("train", np.arange(1257))[0].max() == 1


def test_new_images_are_read_as_those_of_the_data():
    data, digits = open_digits(permute_seed=3), open_digits()
    inputs = PixelInputs.from_saved(data.preprocessing())
    images = digits.split("val").pixels.reshape(-1, 8, 8)
    np.testing.assert_array_equal(inputs.sequences(images), data.batch("val", np.arange(180))[0])
    with pytest.raises(
        ValueError, match=r"PixelInputs: images: found uint8 \(180, 64\), expected uint8 \(N, 8, 8\)"
    ):
        inputs.sequences(images.reshape(180, 64))
