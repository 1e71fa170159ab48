import json
from dataclasses import replace

import h5py
import numpy as np
import pytest

from rnnlab.data.photographs.encoding import ImageEncoding, read_encoding, recorded_encodings
from rnnlab.data.photographs.preprocessing import Preprocessing
from rnnlab.data.projection import Projection

PCA = Projection(np.array([[1, 2, 3], [0, 1, 0]], np.float32), np.array([1, 2], np.float32))
PLAIN = ImageEncoding("/a/net.onnx", "12ab", "pool", False, Preprocessing(8, 9, mean=(1, 2, 3), scale=(0.1,)))
REDUCED = replace(PLAIN, grid=True, projection=PCA, dtype="float32")


@pytest.mark.parametrize("encoding", [PLAIN, REDUCED])
def test_files_and_checkpoints_record_everything(tmp_path, encoding):
    with h5py.File(tmp_path / "f.h5", "w") as file:
        encoding.write(file)
    arrays = json.loads(json.dumps({k: v for k, v in encoding.arrays("f").items() if "pca" not in k}))
    arrays |= {k: v for k, v in encoding.arrays("f").items() if "pca" in k}
    for found in (read_encoding(tmp_path / "f.h5"), ImageEncoding.from_arrays(arrays, "f")):
        assert found.same_as(encoding)
        assert (found.path, found.preprocessing) == (encoding.path, encoding.preprocessing)
    assert ImageEncoding.from_arrays(arrays, "g") is None


def test_numbers_of_numpy_are_recorded_as_numbers():
    found = replace(PLAIN, grid=np.bool_(False), preprocessing=replace(PLAIN.preprocessing, size=np.int64(8)))
    assert json.dumps(found.settings()) == json.dumps(PLAIN.settings())
    assert found.same_as(PLAIN)


def test_encodings_are_compared_by_hash_settings_and_pca():
    assert PLAIN.same_as(replace(PLAIN, path="/b/renamed.onnx"))
    assert not PLAIN.same_as(None)
    other = replace(REDUCED, projection=PCA._replace(intercept=np.zeros(2, np.float32)))
    for found in (
        replace(REDUCED, sha256="34cd"),
        replace(REDUCED, layer="map"),
        replace(REDUCED, preprocessing=Preprocessing(8)),
        replace(REDUCED, projection=None),
        other,
    ):
        assert not REDUCED.same_as(found)
        assert not found.same_as(REDUCED)


def test_files_without_a_record(tmp_path):
    with h5py.File(tmp_path / "f.h5", "w") as file:
        file["features"] = np.zeros((2, 3))
    assert read_encoding(tmp_path / "f.h5") is None
    assert recorded_encodings({"features": tmp_path / "f.h5"}) == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "found '{', expected JSON"),
        (b"\xff", "found '\ufffd', expected JSON"),
        ("[1]", "expected a JSON object"),
        ('{"layer": "a"}', "expected the settings of an encoder"),
        (json.dumps(PLAIN.settings() | {"speed": 1}), "speed.*expected the settings of an encoder"),
        (json.dumps(PLAIN.settings() | {"dtype": "S1000000000"}), "dtype is 'S1000000000', expected one"),
        (json.dumps(PLAIN.settings() | {"layer": 7}), "layer is 7, expected a string"),
        (
            json.dumps(PLAIN.settings() | {"preprocessing": {"size": 1_000_000}}),
            r"size is 1000000, expected an integer in \[1, 2048\]",
        ),
        (
            json.dumps(PLAIN.settings() | {"preprocessing": {"mean": [10**400, 0, 0]}}),
            "too large to convert to float.*expected the settings of an encoder",
        ),
        ("[" * 30_000, "expected JSON"),
    ],
)
def test_damaged_records(tmp_path, text, message):
    with h5py.File(tmp_path / "f.h5", "w") as file:
        file.attrs["encoder"] = np.bytes_(text)
    with pytest.raises(ValueError, match=rf"f\.h5: attribute encoder: .*{message}"):
        read_encoding(tmp_path / "f.h5")


def test_a_record_is_of_fixed_length(tmp_path):
    """HDF5 may loop forever where a string of variable length is damaged."""
    with h5py.File(tmp_path / "f.h5", "w") as file:
        PLAIN.write(file)
        assert all(file.attrs.get_id(name).dtype.kind == "S" for name in file.attrs)
        file.attrs["encoder"] = "{}"
    with pytest.raises(ValueError, match=r"attribute encoder: found a string of variable length"):
        read_encoding(tmp_path / "f.h5")


def test_described_in_a_line():
    assert PLAIN.describe() == "net.onnx (12ab), layer pool, one vector"
    assert REDUCED.describe() == "net.onnx (12ab), layer pool, a grid, PCA to 2"
