import dataclasses

import numpy as np
import pytest
from PIL import Image

from rnnlab.data.caption_inputs import CaptionInputs
from rnnlab.data.photograph_inputs import frame_of, unlike_training
from rnnlab.data.scaling import FeatureScaling, Scaling
from rnnlab.data.vocabulary import Vocabulary


@pytest.fixture
def inputs(tmp_path):
    """Those of a model that reads a grid, and a vector beside it, of the same encoder."""
    from .photographs.networks import write_network

    scaling = FeatureScaling({"global_features": Scaling.identity(5), "features": Scaling.identity(5)})
    found = CaptionInputs(Vocabulary(["a"]), scaling, reads_grid=True)
    return found.with_encoder(write_network(tmp_path / "network.onnx"))


@pytest.fixture
def photograph(tmp_path, rng):
    pixels = rng.integers(0, 256, (30, 50, 3), np.uint8)
    exif = Image.Exif()
    exif[274] = 3  # upside down
    Image.fromarray(pixels[::-1, ::-1]).save(tmp_path / "photo.png", exif=exif)
    return tmp_path / "photo.png", pixels


def test_the_frame_is_what_the_encoder_of_the_grid_sees(inputs, photograph):
    path, pixels = photograph
    np.testing.assert_array_equal(frame_of(inputs, path), pixels[:, 10:40])
    vector, grid = inputs.encodings["global_features"], inputs.encodings["features"]
    whole = dataclasses.replace(grid, preprocessing=dataclasses.replace(grid.preprocessing, crop="none"))
    changed = dataclasses.replace(inputs, encodings={"global_features": vector, "features": whole})
    np.testing.assert_array_equal(frame_of(changed, path), pixels)


def test_photographs_unlike_those_of_training():
    features = np.ones((3, 4), np.float32)
    features[1] = 3.5
    (found,) = unlike_training(["a", "b", "c"], features)
    assert found.startswith("b: its features are 3.5 standard deviations from those of the training images")
    grids = np.ones((3, 2, 2), np.float32)
    grids[2, 0] = 9.0  # the root mean square of 9, 9, 1 and 1 is 6.4
    assert [each[:24] for each in unlike_training(["a", "b", "c"], (features, grids))] == [
        "b: its features are 3.5 ",
        "c: its features are 6.4 ",
    ]
    assert list(unlike_training(["a"], np.full((1, 4), 2.9))) == []
