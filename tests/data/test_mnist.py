"""MNIST's files: read as they are, and refused when they are not what they say."""

import gzip
import os
import struct
from pathlib import Path

import numpy as np
import pytest

from rnnlab.data import open_mnist, read_idx

SIZES = {"train": 30, "t10k": 8}


def idx(array, *, magic=None, shape=None):
    """The bytes of an IDX file."""
    shape = array.shape if shape is None else shape
    header = struct.pack(f">{1 + len(shape)}I", 0x0800 | len(shape) if magic is None else magic, *shape)
    return header + array.astype(np.uint8).tobytes()


def write(path, content):
    path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)


@pytest.fixture
def folder(tmp_path, rng):
    """The four files, some gzipped; the first pixel of each training image is its number."""
    for stem, count in SIZES.items():
        images = rng.integers(0, 256, (count, 2, 3))
        images[:, 0, 0] = np.arange(count)
        write(tmp_path / f"{stem}-images-idx3-ubyte.gz", idx(images))
        write(tmp_path / f"{stem}-labels-idx1-ubyte", idx(np.arange(count) % 10))
    return tmp_path


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_bytes_in_their_shape(tmp_path, ending, rng):
    array = rng.integers(0, 256, (4, 2, 3), dtype=np.uint8)
    write(tmp_path / f"file{ending}", idx(array))
    found = read_idx(tmp_path / f"file{ending}", 3)
    assert found.dtype == np.uint8
    np.testing.assert_array_equal(found, array)


def test_the_last_training_images_are_for_validation(folder):
    data = open_mnist(folder, num_val=4)
    assert {name: len(split) for name, split in data.splits.items()} == {"train": 26, "val": 4, "test": 8}
    assert data.split("val").pixels[:, 0].tolist() == [26, 27, 28, 29]
    assert data.split("val").labels.tolist() == [6, 7, 8, 9]
    assert data.split("train").pixels[:, 0].tolist() == list(range(26))
    assert data.split("test").labels.tolist() == list(range(8))
    assert (data.name, data.image_shape, data.num_classes) == (folder.name, (2, 3), 10)


def test_or_those_that_a_seed_draws(folder):
    numbers = [
        open_mnist(folder, num_val=9, val_seed=seed).split("val").pixels[:, 0].tolist() for seed in (0, 0, 1)
    ]
    assert numbers[0] == numbers[1] != numbers[2]
    train = open_mnist(folder, num_val=9, val_seed=0).split("train")
    assert sorted([*train.pixels[:, 0].tolist(), *numbers[0]]) == list(range(30))
    assert train.labels.tolist() == [number % 10 for number in train.pixels[:, 0].tolist()]


def test_options_of_the_data_reach_them(folder):
    data = open_mnist(folder, num_val=4, permute_seed=2, max_train=5)
    assert (len(data.split("train")), data.permute_seed) == (5, 2)
    with pytest.raises(ValueError, match="pool is 2, expected a common divisor of the sizes 2 x 3"):
        open_mnist(folder, num_val=4, pool=2)


IMAGES, LABELS = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"
PIXELS = np.zeros((30, 2, 3))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            IMAGES,
            idx(PIXELS)[:-1],
            "data: found 179 bytes, expected 30 x 2 x 3 = 180 bytes, as the header says",
        ),
        (IMAGES, idx(PIXELS) + b"\0", "data: found 181 bytes, expected 30 x 2 x 3 = 180"),
        (IMAGES, idx(PIXELS)[:15], "header: found 15 bytes, expected 16 bytes"),
        (IMAGES, b"", "header: found 0 bytes, expected 16 bytes"),
        (
            IMAGES,
            idx(PIXELS, magic=0x00000D03),
            "magic number: found 0x00000d03, expected 0x00000803, unsigned",
        ),
        (IMAGES, idx(np.zeros(30)), "magic number: found 0x00000801, expected 0x00000803"),
        (IMAGES, b"<html>" * 9, "magic number: found 0x3c68746d"),
        (LABELS, idx(PIXELS), "expected 0x00000801, unsigned bytes in 1 dimension$"),
        (
            LABELS,
            idx(np.zeros(29)),
            "number of labels: found 29, expected 30, one for each image of train-images",
        ),
        (LABELS, idx(np.array([3] * 7 + [10] + [4] * 22)), "label 7: found 10, expected a class from 0 to 9"),
        (LABELS, gzip.compress(idx(np.zeros(30)), mtime=0)[:-9], "found a damaged gzip file"),
    ],
)
def test_bad_files_are_named(folder, name, content, message):
    for path in (folder / name, folder / f"{name}.gz"):
        path.unlink(missing_ok=True)
    (folder / name).write_bytes(content)
    with pytest.raises(ValueError, match=message) as error:
        open_mnist(folder, num_val=4)
    assert str(error.value).startswith(str(folder / name))


def test_images_of_another_size_in_the_test_set(folder):
    write(folder / "t10k-images-idx3-ubyte.gz", idx(np.zeros((8, 3, 3))))
    with pytest.raises(
        ValueError, match=r"test: images: found uint8 \(8, 3, 3\), expected uint8 \(N, 2, 3\)"
    ):
        open_mnist(folder, num_val=4)


def test_what_is_missing(folder):
    with pytest.raises(
        FileNotFoundError, match="found no such folder, expected a folder with the files of MNIST"
    ):
        open_mnist(folder / "nowhere")
    (folder / "t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(FileNotFoundError, match=r"found neither t10k-labels-idx1-ubyte\.gz nor t10k-labels"):
        open_mnist(folder, num_val=4)
    with pytest.raises(FileNotFoundError):
        read_idx(folder / "nothing", 1)


@pytest.mark.parametrize("num_val", [0, -3, 30, 5000])
def test_bad_numbers_of_validation_images(folder, num_val):
    with pytest.raises(ValueError, match=f"num_val is {num_val:,}, expected at least 1 and less than the 30"):
        open_mnist(folder, num_val=num_val)


@pytest.mark.slow
@pytest.mark.skipif("RNNLAB_DATA" not in os.environ, reason="RNNLAB_DATA names no folder of real data")
def test_mnist_itself():
    data = open_mnist(Path(os.environ["RNNLAB_DATA"]) / "mnist", permute_seed=0)
    assert {name: len(split) for name, split in data.splits.items()} == {
        "train": 55000,
        "val": 5000,
        "test": 10000,
    }
    assert data.image_shape == (28, 28)
    assert data.split("train").labels[:8].tolist() == [5, 0, 4, 1, 9, 2, 1, 3]
    assert data.split("test").labels[:8].tolist() == [7, 2, 1, 0, 4, 1, 4, 9]
    x, _ = data.batch("train", np.arange(500))
    assert x.shape == (500, 784, 1)
    assert (x.min(), x.max()) == (0, 1)
    assert x.mean() == pytest.approx(0.13, abs=0.01)
