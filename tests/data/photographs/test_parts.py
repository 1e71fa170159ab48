import numpy as np
import pytest

from rnnlab.data.photographs.parts import Parts


def test_parts_are_found_again(tmp_path):
    parts = Parts(tmp_path / "f.parts", {"layer": "pool"})
    assert parts.names == []
    parts.add(["a", "b"], np.arange(4, dtype=np.float16).reshape(2, 2))
    parts.add(["c"], np.full((1, 2), 7, np.float16))
    found = Parts(tmp_path / "f.parts", {"layer": "pool"})
    assert found.names == parts.names == ["a", "b", "c"]
    ((names, features), (others, _)) = found.read({"b", "c"})
    assert (names, others) == (["b"], ["c"])
    np.testing.assert_array_equal(features, [[2, 3]])
    assert features.dtype == np.float32
    found.remove()
    assert not (tmp_path / "f.parts").exists()


def test_other_settings_are_refused(tmp_path):
    Parts(tmp_path / "f.parts", {"layer": "pool", "grid": False})
    with pytest.raises(ValueError, match=r"f\.parts .*other settings \(layer pool, not map\): repeat"):
        Parts(tmp_path / "f.parts", {"layer": "map", "grid": False})
