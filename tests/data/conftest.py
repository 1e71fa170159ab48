import shutil

import pytest

from rnnlab.data.shapes import write_shapes

SIZES = {"train": 40, "val": 8, "test": 6}


@pytest.fixture(scope="session")
def shapes(tmp_path_factory):
    """A small set of shapes on disk, not to be written to."""
    folder = tmp_path_factory.mktemp("datasets") / "shapes"
    write_shapes(folder, SIZES, seed=3)
    return folder


@pytest.fixture
def shapes_copy(shapes, tmp_path):
    """The same without the pictures, to be spoiled."""
    folder = tmp_path / "shapes"
    shutil.copytree(shapes, folder, ignore=shutil.ignore_patterns("*.png"))
    return folder
