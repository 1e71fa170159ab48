import h5py
import numpy as np
import pytest

from rnnlab.data.blocks import block_shuffle, feature_statistics
from rnnlab.data.lazy import LazyFeatures


@pytest.mark.parametrize("window", [1, 3, 4, 12, 100])
def test_a_shuffle_has_all_examples_and_few_blocks_at_a_time(rng, window):
    blocks = np.repeat(np.arange(12) * 3, 40)
    order = block_shuffle(blocks, rng, window)
    np.testing.assert_array_equal(np.sort(order), np.arange(480))
    groups = -(-12 // window)
    size = 480 // groups
    for start in range(0, 480, size):
        assert len(np.unique(blocks[order[start : start + size]])) <= window
    assert (order != block_shuffle(blocks, rng, window)).any()


def test_the_shuffle_follows_the_generator():
    first, second = (block_shuffle(np.arange(100) // 10, np.random.default_rng(3), 2) for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("window", [1, 2, 4])
def test_every_example_is_as_likely_early_as_late(rng, window):
    blocks = np.arange(8) // 2
    places = np.zeros((8, 8))
    for _ in range(4000):
        places[np.arange(8), block_shuffle(blocks, rng, window)] += 1
    assert np.abs(places / 4000 - 1 / 8).max() < 0.03


def test_one_group_is_a_plain_shuffle(rng):
    pairs = {tuple(block_shuffle(np.array([0, 0, 1, 2]), rng, 3)) for _ in range(600)}
    assert len(pairs) == 24


def test_no_examples(rng):
    assert block_shuffle(np.array([], np.int64), rng, 4).shape == (0,)


@pytest.mark.parametrize("shape", [(700, 6), (90, 5, 3)])
def test_statistics(tmp_path, rng, shape, monkeypatch):
    monkeypatch.setattr("rnnlab.data.blocks.BLOCK_BYTES", 1000)
    monkeypatch.setattr("rnnlab.data.lazy.BLOCK_BYTES", 1000)
    features = (1000 + rng.standard_normal(shape) * np.arange(shape[-1])).astype(np.float32)
    axes = tuple(range(len(shape) - 1))
    expected = features.mean(axes, dtype=np.float64), features.std(axes, dtype=np.float64)
    expected[1][0] = 1  # never changes
    with h5py.File(tmp_path / "file.h5", "w") as file:
        file["features"] = features
    rows = rng.permutation(shape[0])
    with LazyFeatures(tmp_path / "file.h5", rows=rows, cache_bytes=2000) as lazy:
        for found in (feature_statistics(features), feature_statistics(lazy)):
            for ours, theirs in zip(found, expected, strict=True):
                assert ours.dtype == np.float32
                np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_statistics_of_nothing():
    with pytest.raises(ValueError, match=r"found features of shape \(0, 4\), expected at least one row"):
        feature_statistics(np.zeros((0, 4), np.float32))
