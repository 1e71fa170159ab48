"""A network and photographs."""

import numpy as np
import pytest
from PIL import Image


@pytest.fixture
def network(tmp_path):
    """The path of a small ONNX classifier."""
    from .networks import write_network

    return write_network(tmp_path / "network.onnx")


@pytest.fixture
def photographs(tmp_path, rng):
    """A folder of seven photographs of different sizes."""
    folder = tmp_path / "photographs"
    folder.mkdir()
    for number in range(7):
        pixels = rng.integers(0, 256, (10 + number, 12, 3), np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.png")
    return folder
