import numpy as np
import pytest

from rnnlab.data import PixelData, open_digits
from rnnlab.data.pixels import PixelInputs


def made(count, rng, shape=(3, 4)):
    return rng.integers(0, 256, (count, *shape), dtype=np.uint8), rng.integers(0, 10, count)


@pytest.fixture
def images(rng):
    return {"train": made(23, rng), "val": made(5, rng), "test": made(0, rng)}


def test_a_batch_is_the_pixels_row_by_row_and_the_labels(images):
    data, (pictures, labels) = PixelData(images), images["train"]
    x, y = data.batch("train", np.array([4, 0]))
    assert x.dtype == np.float32
    np.testing.assert_array_equal(x, (pictures[[4, 0]].reshape(2, 12, 1) / 255).astype(np.float32))
    np.testing.assert_array_equal(y, labels[[4, 0]])
    assert data.num_tokens((x, y)) == 2
    assert data.in_memory
    assert data.batch("val", np.array([], int))[0].shape == (0, 12, 1)


def test_the_brightest_byte_is_one():
    pictures = np.array([[[0, 8], [16, 4]]], np.uint8)
    data = PixelData({"train": (pictures, np.array([1]))}, white=16)
    np.testing.assert_array_equal(data.batch("train", np.array([0]))[0][0, :, 0], [0, 0.5, 1, 0.25])


def test_one_permutation_for_all_images(images):
    plain, permuted = PixelData(images), PixelData(images, permute_seed=3)
    assert sorted(permuted.permutation.tolist()) == list(range(12))
    assert (permuted.permutation != np.arange(12)).any()
    for split in ("train", "val"):
        rows = plain.split(split).pixels[:, permuted.permutation]
        np.testing.assert_array_equal(permuted.split(split).pixels, rows)
    again, other = PixelData(images, permute_seed=3), PixelData(images, permute_seed=4)
    np.testing.assert_array_equal(again.permutation, permuted.permutation)
    assert (other.permutation != permuted.permutation).any()


def test_pooling_reads_the_means_of_blocks(rng):
    pictures = np.array([[[0, 2, 255, 255], [4, 4, 255, 254], [0, 0, 9, 9], [0, 1, 9, 10]]], np.uint8)
    data = PixelData({"train": (pictures, np.array([1]))}, pool=2)
    assert data.split("train").pixels.tolist() == [[3, 255, 0, 9]]  # 2.5, 254.75, 0.25, 9.25
    x, _ = data.batch("train", np.array([0]))
    assert x.shape == (1, 4, 1)
    inputs = PixelInputs.from_saved(data.preprocessing())
    np.testing.assert_array_equal(inputs.sequences(pictures), x)
    assert "2 x 2 images of means of 2 x 2 pixels, 4 pixels each" in data.describe()


def test_means_of_nine_pixels(rng):
    images = made(5, rng, (6, 3))
    blocks = images[0].reshape(5, 2, 9)  # the rows of three lines
    expected = np.floor(blocks.mean(axis=2) + 0.5)
    np.testing.assert_array_equal(PixelData({"train": images}, pool=3).split("train").pixels, expected)


def test_new_images_are_pooled_and_permuted_like_the_data(rng):
    images = {"train": made(6, rng, (4, 6)), "val": made(2, rng, (4, 6))}
    data = PixelData(images, pool=2, permute_seed=1)
    plain = PixelData(images, pool=2)
    np.testing.assert_array_equal(data.split("val").pixels, plain.split("val").pixels[:, data.permutation])
    inputs = PixelInputs.from_saved(data.preprocessing())
    x, _ = data.batch("val", np.arange(2))
    np.testing.assert_array_equal(inputs.sequences(images["val"][0]), x)
    assert "pool" not in PixelData(images).preprocessing()  # as checkpoints had it before there was a pool


@pytest.mark.parametrize("pool", [3, 4])
def test_pool_must_divide_the_sizes(images, pool):
    images = {"train": (np.zeros((2, 4, 6), np.uint8), np.zeros(2, int))}
    with pytest.raises(ValueError, match=rf"PixelData: pool is {pool}, expected a common divisor .* 4 x 6"):
        PixelData(images, pool=pool)


def test_max_train_keeps_some_training_images_and_all_others(images):
    data, few = PixelData(images), PixelData(images, max_train=7)
    assert [len(split) for split in few.splits.values()] == [7, 5, 0]
    kept = np.sort(np.random.default_rng(0).permutation(23)[:7])
    np.testing.assert_array_equal(few.split("train").pixels, data.split("train").pixels[kept])
    np.testing.assert_array_equal(few.split("train").labels, data.split("train").labels[kept])
    assert len(PixelData(images, max_train=100).split("train")) == 23


@pytest.mark.parametrize("batch_size", [1, 4, 23, 100])
def test_every_image_comes_once(images, batch_size, rng):
    data = PixelData(images)
    for order in (None, rng):
        batches = data.epoch("train", batch_size, order)
        assert sorted(np.concatenate(batches).tolist()) == list(range(23))
        assert {len(batch) for batch in batches[:-1]} <= {batch_size}
    np.testing.assert_array_equal(np.concatenate(data.epoch("train", batch_size)), np.arange(23))
    assert data.epoch("test", batch_size) == []


def test_what_is_in_it_is_described(images):
    text = PixelData(images, name="noise", permute_seed=3).describe()
    assert text.splitlines()[0] == "noise: 3 x 4 images, 12 pixels each, permuted with seed 3"
    count = np.bincount(images["train"][1], minlength=10)
    assert text.splitlines()[2].split() == ["train", "23", *map(str, count)]
    assert "row by row" in PixelData(images).describe()
    assert repr(PixelData(images, name="noise")).startswith("PixelData(noise: train 23 images, val 5 images")


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({"train": None}, {}, "found val 5, test 0, expected images of a split train"),
        ({"train": (np.zeros((0, 3, 4), np.uint8), np.zeros(0, int))}, {}, "found train 0, val 5, test 0"),
        ({"val": (np.zeros((2, 12), np.uint8), np.zeros(2, int))}, {}, r"val: images: found uint8 \(2, 12\)"),
        ({"val": (np.zeros((2, 3, 4)), np.zeros(2, int))}, {}, "val: images: found float64"),
        (
            {"val": (np.zeros((2, 4, 3), np.uint8), np.zeros(2, int))},
            {},
            r"found uint8 \(2, 4, 3\), expected uint8 \(N, 3, 4\)",
        ),
        (
            {"train": (np.zeros((2, 12), np.uint8), np.zeros(2, int)), "val": None},
            {},
            r"train: images: found uint8 \(2, 12\), expected uint8 \(N, height, width\)",
        ),
        ({"val": (np.zeros((2, 3, 4), np.uint8), np.zeros(3, int))}, {}, "one for each of 2 images"),
        ({"val": (np.zeros((2, 3, 4), np.uint8), np.zeros(2))}, {}, r"val: labels: found float64 \(2,\)"),
        (
            {"val": (np.zeros((2, 3, 4), np.uint8), np.array([3, 10]))},
            {},
            "found 10 at row 1, expected classes",
        ),
        ({"val": (np.zeros((2, 3, 4), np.uint8), np.array([-1, 3]))}, {}, "found -1 at row 0"),
        ({}, {"white": 0}, "white is 0, expected an integer of at least 1"),
        ({}, {"white": 16}, "found the byte 2.., expected at most 16"),
        ({}, {"max_train": 0}, "max_train is 0, expected an integer of at least 1"),
        ({}, {"pool": 0}, "pool is 0, expected an integer of at least 1"),
        ({}, {"permute_seed": -1}, "PixelData: permute_seed is -1, expected an integer of at least 0"),
        ({}, {"num_classes": True}, "num_classes is True, expected an integer of at least 1"),
    ],
)
def test_bad_images_and_options(images, change, options, message):
    given = {name: split for name, split in {**images, **change}.items() if split is not None}
    with pytest.raises(ValueError, match=message):
        PixelData(given, **options)


def test_images_that_are_no_array(images):
    pictures, labels = images["train"]
    with pytest.raises(TypeError, match="PixelData: train: labels are a list, expected an array"):
        PixelData({"train": (pictures, labels.tolist())})


def test_new_images():
    inputs = PixelInputs(16, (1, 2), np.arange(2))
    np.testing.assert_array_equal(inputs.sequences(np.array([[[16, 4]]], np.uint8)), [[[1], [0.25]]])
    assert inputs.sequences(np.zeros((0, 1, 2), np.uint8)).shape == (0, 2, 1)
    for images, found in (
        (np.array([[[17, 4]]], np.uint8), "the byte 17, expected at most 16"),
        (np.zeros((1, 2, 1), np.uint8), r"uint8 \(1, 2, 1\), expected uint8 \(N, 1, 2\)"),
        (np.zeros((1, 1, 2)), r"float64 \(1, 1, 2\), expected uint8 \(N, 1, 2\)"),
    ):
        with pytest.raises(ValueError, match=f"PixelInputs: images: found {found}"):
            inputs.sequences(images)


def test_no_split_at_all():
    with pytest.raises(ValueError, match="found no split"):
        PixelData({})


def test_bad_calls(images):
    data = PixelData(images)
    with pytest.raises(KeyError, match="has the splits train, val, test, not 'dev'"):
        data.split("dev")
    with pytest.raises(ValueError, match="batch_size is 0"):
        data.epoch("train", 0)


def test_the_digits():
    pytest.importorskip("sklearn")
    data = open_digits()
    assert {name: len(split) for name, split in data.splits.items()} == {
        "train": 1257,
        "val": 180,
        "test": 360,
    }
    rows = np.concatenate([split.pixels for split in data.splits.values()])
    assert rows.shape == (1797, 64)
    assert len(np.unique(rows, axis=0)) == 1797  # no digit is there twice, so none is in two splits
    assert all((np.bincount(split.labels, minlength=10) > 8).all() for split in data.splits.values())
    x, _ = data.batch("train", np.arange(1257))
    assert (x.min(), x.max()) == (0, 1)
    assert len(open_digits(max_train=50, permute_seed=1).split("train")) == 50


def test_the_digits_need_their_extra(monkeypatch):
    monkeypatch.setattr("rnnlab.extras.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r'pip install "rnnlab\[sklearn\]"'):
        open_digits()
