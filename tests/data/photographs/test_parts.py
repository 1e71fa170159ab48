import h5py
import numpy as np
import pytest

from rnnlab.data.photographs.parts import Parts, Photograph

A, B, C = (Photograph(name, hash) for name, hash in (("a", "01"), ("b", "02"), ("c", "03")))


def test_parts_are_found_again(tmp_path):
    parts = Parts(tmp_path / "f.parts", {"layer": "pool"})
    assert parts.photographs == []
    parts.add([A, B], np.arange(4, dtype=np.float16).reshape(2, 2))
    parts.add([C], np.full((1, 2), 7, np.float16))
    found = Parts(tmp_path / "f.parts", {"layer": "pool"})
    assert found.photographs == parts.photographs == [A, B, C]
    ((names, features), (others, _)) = found.read({B, C})
    assert (names, others) == (["b"], ["c"])
    np.testing.assert_array_equal(features, [[2, 3]])
    assert features.dtype == np.float32
    found.remove()
    assert not (tmp_path / "f.parts").exists()


def test_a_part_that_was_deleted_costs_no_other_part(tmp_path):
    folder = tmp_path / "f.parts"
    for photograph, value in ((A, 1), (B, 2)):
        Parts(folder, {}).add([photograph], np.full((1, 1), value, np.float16))
    (folder / "part-00000.h5").unlink()
    parts = Parts(folder, {})
    parts.add([C], np.full((1, 1), 3, np.float16))
    for each in (parts, Parts(folder, {})):
        assert [(names, features.item()) for names, features in each.read({A, B, C})] == [
            (["b"], 2),
            (["c"], 3),
        ]


def test_a_photograph_is_a_name_and_a_content(tmp_path):
    parts = Parts(tmp_path / "f.parts", {})
    changed = Photograph("a", "04")
    parts.add([A, B], np.zeros((2, 1), np.float16))
    parts.add([changed], np.ones((1, 1), np.float16))
    assert [(names, features.tolist()) for names, features in parts.read({changed, B})] == [
        (["b"], [[0]]),
        (["a"], [[1]]),
    ]


def test_other_settings_are_refused(tmp_path):
    Parts(tmp_path / "f.parts", {"layer": "pool", "grid": False}).add([A], np.zeros((1, 1), np.float16))
    with pytest.raises(ValueError, match=r"f\.parts .*other settings \(layer pool, not map\): repeat"):
        Parts(tmp_path / "f.parts", {"layer": "map", "grid": False})


def test_a_folder_without_parts_takes_other_settings(tmp_path):
    Parts(tmp_path / "f.parts", {"dtype": "float16"})
    Parts(tmp_path / "f.parts", {"dtype": "float32"}).add([A], np.zeros((1, 1), np.float32))
    assert Parts(tmp_path / "f.parts", {"dtype": "float32"}).photographs == [A]


def test_parts_without_settings_are_refused(tmp_path):
    Parts(tmp_path / "f.parts", {"layer": "pool"}).add([A], np.zeros((1, 1), np.float16))
    (tmp_path / "f.parts" / "encoder.json").unlink()
    message = r"f\.parts: found features without encoder\.json, expected the settings .*: delete the folder"
    for layer in ("pool", "map"):
        with pytest.raises(ValueError, match=message):
            Parts(tmp_path / "f.parts", {"layer": layer})


def test_parts_without_hashes_are_refused(tmp_path):
    """They may be of other photographs of the same names."""
    Parts(tmp_path / "f.parts", {}).add([A, B], np.zeros((2, 1), np.float16))
    with h5py.File(tmp_path / "f.parts" / "part-00000.h5", "a") as file:
        del file["sha256"]
    with pytest.raises(
        ValueError,
        match=r"part-00000\.h5: sha256: found 0 values, expected one for each of 2 photographs: delete the "
        r"folder .*f\.parts to begin again",
    ):
        Parts(tmp_path / "f.parts", {})
