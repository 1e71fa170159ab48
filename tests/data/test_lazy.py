import gc
import threading
import weakref

import h5py
import numpy as np
import pytest

from rnnlab.data.block_cache import BlockCache
from rnnlab.data.lazy import LazyFeatures

ROW_BYTES = 4 * 6


@pytest.fixture
def values(rng):
    return rng.standard_normal((50, 6)).astype(np.float32)


@pytest.fixture
def path(tmp_path, values):
    path = tmp_path / "features.h5"
    write(path, values)
    return path


def write(path, values, field="features", offset=None, scale=None, **options):
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset(field, data=values, **options)
        for name, value in (("offset", offset), ("scale", scale)):
            if value is not None:
                dataset.attrs[name] = value


def small(path, blocks=3, **options):
    """Features with blocks of one row, of which few fit the cache."""
    return LazyFeatures(path, cache_bytes=blocks * ROW_BYTES, **options)


def count_reads(features):
    """A list that grows with each block that is read."""
    starts, read = [], features._read_block

    def counted(start):
        starts.append(start)
        return read(start)

    features._read_block = counted
    return starts


INDICES = {
    "integer": 3,
    "negative": -1,
    "numpy integer": np.int32(7),
    "slice": slice(4, 40, 3),
    "backwards": slice(None, None, -1),
    "all": slice(None),
    "list": [5, 1, 5, -2],
    "none": [],
    "empty slice": slice(9, 9),
    "repeats": np.repeat([8, 2, 49], 30),
    "grid": np.arange(12).reshape(3, 4),
    "mask": np.arange(50) % 7 == 0,
    "unsigned": np.array([1, 49], np.uint8),
}


@pytest.mark.parametrize("indices", INDICES.values(), ids=INDICES)
@pytest.mark.parametrize(
    "options", [{}, {"chunks": (8, 6), "compression": "gzip"}, {"chunks": (7, 2)}], ids=str
)
def test_indexing_is_that_of_an_array(tmp_path, values, indices, options):
    write(tmp_path / "file.h5", values, **options)
    with LazyFeatures(tmp_path / "file.h5", cache_bytes=20 * ROW_BYTES) as features:
        assert (features.shape, features.ndim, len(features)) == (values.shape, 2, 50)
        for _ in range(2):
            found = features[indices]
            assert found.dtype == features.dtype == np.float32
            np.testing.assert_array_equal(found, values[indices])


@pytest.mark.parametrize(
    "indices", [50, -51, [0, 50], np.zeros(49, bool), 1.5, (0, 1), (..., 0), "a"], ids=str
)
def test_bad_indices_name_the_file(path, indices):
    with LazyFeatures(path) as features, pytest.raises(IndexError, match=f"{path}: features: "):
        features[indices]


def test_what_is_returned_is_the_callers(path, values):
    with LazyFeatures(path) as features:
        features[:][...] = 0
        features[3][...] = 0
        np.testing.assert_array_equal(features[:], values)


def test_rows_choose_and_order(path, values, rng):
    rows = rng.permutation(50)[:20]
    with small(path, rows=rows) as features:
        assert features.shape == (20, 6)
        np.testing.assert_array_equal(features[:], values[rows])
        np.testing.assert_array_equal(features[[3, 0]], values[rows[[3, 0]]])
    with small(path, rows=np.array([], int)) as features:
        assert features[:].shape == (0, 6)


def test_grids_of_bytes(tmp_path, rng):
    raw = rng.integers(0, 256, (9, 4, 3), np.uint8)
    offset, scale = rng.standard_normal((2, 3)).astype(np.float32)
    write(tmp_path / "grid.h5", raw, "local/grid", offset, scale)
    with LazyFeatures(tmp_path / "grid.h5", "local/grid") as features:
        assert features.shape == (9, 4, 3)
        np.testing.assert_allclose(features[[5, 5, 1]], (offset + scale * raw)[[5, 5, 1]], rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_other_floats(tmp_path, values, dtype):
    write(tmp_path / "file.h5", values.astype(dtype))
    with LazyFeatures(tmp_path / "file.h5") as features:
        assert features[:].dtype == np.float32
        np.testing.assert_array_equal(features[:], values.astype(dtype).astype(np.float32))


def test_standardised(path, values, rng):
    mean, std = rng.standard_normal(6).astype(np.float32), rng.uniform(1, 2, 6).astype(np.float32)
    expected = (values - mean) / std
    rows = np.arange(50)[::-1]
    with small(path, rows=rows) as features, features.standardised(mean, std) as standardised:
        np.testing.assert_array_equal(standardised[:], expected[rows])
        np.testing.assert_array_equal(features[:], values[rows])
        with standardised.standardised(std, 2 * std) as twice:
            np.testing.assert_allclose(twice[:], (expected[rows] - std) / (2 * std), rtol=1e-4, atol=1e-5)


def test_blocks_are_whole_chunks(tmp_path, values):
    write(tmp_path / "file.h5", values, chunks=(8, 6))
    features = LazyFeatures(tmp_path / "file.h5", rows=[49, 0, 8], cache_bytes=20 * ROW_BYTES)
    np.testing.assert_array_equal(features.blocks, [6, 0, 1])
    assert features.window == 2


def test_the_block_used_last_stays(path):
    features = small(path, blocks=2)
    starts = count_reads(features)
    for row in (0, 1, 0, 2, 0, 1):
        features[row]
    assert starts == [0, 1, 2, 1]
    assert features._cache.num_bytes == 2 * ROW_BYTES


def test_many_rows_pass_through_a_small_cache_once(path, values, rng):
    features = small(path, blocks=3)
    starts = count_reads(features)
    order = np.tile(rng.permutation(50), 2)
    np.testing.assert_array_equal(features[order], values[order])
    assert len(starts) == 50


def test_an_epoch_reads_every_block_about_once(tmp_path, rng):
    values = rng.standard_normal((2000, 6)).astype(np.float32)
    write(tmp_path / "file.h5", values, chunks=(10, 6))
    features = LazyFeatures(tmp_path / "file.h5", cache_bytes=200 * ROW_BYTES)
    starts = count_reads(features)
    image_idxs = np.repeat(np.arange(2000), 5)
    order = features.epoch_order(image_idxs, rng)
    np.testing.assert_array_equal(np.sort(order), np.arange(10_000))
    for batch in np.split(image_idxs[order], 200):
        np.testing.assert_array_equal(features[batch], values[batch])
    assert set(starts) == set(range(0, 2000, 10))
    assert len(starts) < 1.15 * 200
    mixed = [len(np.unique(features.blocks[batch])) for batch in np.split(image_idxs[order], 200)]
    assert np.median(mixed) > 15  # of the 20 in the window, in a batch of 50


def test_no_arithmetic_behind_the_back(path, values):
    with LazyFeatures(path) as features:
        for accident in (
            lambda: features - values[0],
            lambda: values - features,
            lambda: np.asarray(features),
        ):
            with pytest.raises(TypeError):
                accident()
        assert str(path) in repr(features)


def test_threads(path, values):
    features, wrong = small(path, blocks=2), []

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(50):
            chosen = rng.integers(50, size=8)
            if (features[chosen] != values[chosen]).any():
                wrong.append(chosen)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.slow
def test_closing(path):
    with LazyFeatures(path) as features:
        features[0]
    features.close()
    with pytest.raises(ValueError, match=f"{path}: features: found the features closed"):
        features[0]
    forgotten = LazyFeatures(path)
    dataset, gone = forgotten._dataset, weakref.ref(forgotten)
    del forgotten
    gc.collect()
    assert gone() is None
    assert not dataset  # closed


# ------------------------------------------------------------------ the cache that features share


@pytest.fixture
def shared(monkeypatch):
    """A shared cache of eight rows."""
    cache = BlockCache(8 * ROW_BYTES)
    monkeypatch.setattr("rnnlab.data.lazy.SHARED", cache)
    return cache


def test_files_share_one_cache(tmp_path, path, values, shared):
    """However many there are, their blocks are no larger together, and those used last stay."""
    write(tmp_path / "other.h5", -values)
    features, other = LazyFeatures(path), LazyFeatures(tmp_path / "other.h5")
    starts = count_reads(features)
    np.testing.assert_array_equal(features[:8], values[:8])
    np.testing.assert_array_equal(other[:5], -values[:5])
    assert shared.num_bytes == 8 * ROW_BYTES
    assert len(starts) == 8
    np.testing.assert_array_equal(features[[7, 6, 5]], values[[7, 6, 5]])
    assert len(starts) == 8
    np.testing.assert_array_equal(features[[0, 1]], values[:2])
    assert len(starts) == 10


def test_an_order_mixes_half_of_the_shared_cache(path, shared):
    """The other half is for features that are read beside these."""
    features = LazyFeatures(path)
    assert features.window == 4
    one = features.epoch_order(np.arange(50), np.random.default_rng(1))
    other = small(path, blocks=4).epoch_order(np.arange(50), np.random.default_rng(1))
    np.testing.assert_array_equal(one, other)


@pytest.mark.slow
def test_closed_and_forgotten_features_leave_the_cache(path, shared):
    with LazyFeatures(path) as features:
        kept = LazyFeatures(path)
        features[:4], kept[:2]
    assert shared.num_bytes == 2 * ROW_BYTES
    del kept
    gc.collect()
    assert shared.num_bytes == 0


def test_blocks_in_use_are_not_changed_by_the_cache(path, values, shared):
    features = LazyFeatures(path)
    first = features[0]
    features[:]
    np.testing.assert_array_equal(first, values[0])
    assert shared.num_bytes <= 8 * ROW_BYTES
