import h5py
import numpy as np
import pytest

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


def test_missing_and_cut_files(tmp_path, path):
    with pytest.raises(FileNotFoundError, match=r"absent.h5: found no such file"):
        LazyFeatures(tmp_path / "absent.h5")
    cut = tmp_path / "cut.h5"
    cut.write_bytes(path.read_bytes()[:-100])
    for content, found in (
        (path.read_bytes()[:-100], "that is cut short"),
        (b"not HDF5 at all", "of another kind"),
    ):
        cut.write_bytes(content)
        with pytest.raises(OSError, match=f"cut.h5: found a file {found}, expected a complete HDF5 file"):
            LazyFeatures(cut)
    with pytest.raises(KeyError, match=r"features.h5: found the fields features, expected local"):
        LazyFeatures(path, "local")


def test_a_damaged_chunk_is_told_when_it_is_read(tmp_path, values):
    path = tmp_path / "file.h5"
    write(path, values, chunks=(10, 6), compression="gzip")
    with h5py.File(path) as file:
        chunk = file["features"].id.get_chunk_info(2)
    content = bytearray(path.read_bytes())
    content[chunk.byte_offset : chunk.byte_offset + chunk.size] = bytes(chunk.size)
    path.write_bytes(content)
    with LazyFeatures(path, cache_bytes=20 * ROW_BYTES) as features:
        for _ in range(2):
            np.testing.assert_array_equal(features[:20], values[:20])
            with pytest.raises(OSError, match=r"file.h5: features: found a part that cannot be read"):
                features[25]
        np.testing.assert_array_equal(features[30:], values[30:])


@pytest.mark.parametrize(
    ("values", "attributes", "message"),
    [
        (np.zeros(5), {}, r"found shape \(5,\), expected \(num_images, ..., D\)"),
        (np.zeros((5, 0)), {}, r"found shape \(5, 0\), expected .*, each but the first at least 1"),
        (np.zeros((5, 2), np.uint8), {}, "found dtype uint8, expected a floating-point"),
        (np.zeros((5, 2), complex), {"offset": 0.0, "scale": 1.0}, "found dtype complex128"),
        (np.zeros((5, 2), np.uint8), {"offset": 0.0}, "found only one of the attributes"),
    ],
)
def test_bad_fields(tmp_path, values, attributes, message):
    write(tmp_path / "bad.h5", values, **attributes)
    with pytest.raises(ValueError, match=rf"bad.h5: features: {message}"):
        LazyFeatures(tmp_path / "bad.h5")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rows": [0, 50]}, "rows: found rows from 0 to 50, expected at least 0 and less than the 50"),
        ({"rows": [-1]}, "rows: found rows from -1"),
        ({"rows": [0.5]}, "rows: found float64"),
        ({"rows": np.zeros(50, bool)}, "rows: found bool"),
        ({"rows": [[0]]}, r"rows: found int64 \(1, 1\)"),
        ({"cache_bytes": ROW_BYTES - 1}, "cache_bytes: found 23, expected at least the 24 bytes of a block"),
        ({"mean": np.zeros(6)}, r"std: found shape \(\), expected \(6,\)"),
        ({"mean": np.zeros(5), "std": np.ones(6)}, r"mean: found shape \(5,\), expected \(6,\)"),
        ({"mean": np.zeros(6), "std": np.zeros(6)}, "std: found .*expected finite numbers, std above 0"),
    ],
)
def test_bad_arguments(path, options, message):
    with pytest.raises(ValueError, match=f"features: {message}"):
        LazyFeatures(path, **options)


def test_nan_is_told_with_its_row(tmp_path, values):
    values[31, 2] = np.nan
    write(tmp_path / "file.h5", values)
    with LazyFeatures(tmp_path / "file.h5", cache_bytes=3 * ROW_BYTES) as features:
        np.testing.assert_array_equal(features[:31], values[:31])
        with pytest.raises(ValueError, match=r"file.h5: features: found NaN or infinity in row 31"):
            features[31]


def test_numbers_beyond_32_bits_are_refused(tmp_path, values):
    """They would be infinity as models read them."""
    path = tmp_path / "large.h5"
    write(path, np.full((3, 6), 1e300))
    with (
        LazyFeatures(path) as features,
        pytest.raises(ValueError, match="large.h5: features: found NaN or infinity"),
    ):
        features[0]


def test_a_shape_whose_size_does_not_fit_an_integer(tmp_path):
    path = tmp_path / "none.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset(
            "features", (0, 2**40, 2**40), "f4", chunks=(1, 1, 1), maxshape=(None, None, None)
        )
    with pytest.raises(
        ValueError, match="cache_bytes: found .*, expected at least the 4835703278458516698824704 b"
    ):
        LazyFeatures(path)
