import pytest

from rnnlab.data import write_shapes


@pytest.fixture(scope="module")
def shapes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data") / "shapes"
    write_shapes(folder, {"train": 24, "val": 6, "test": 6})
    return folder
