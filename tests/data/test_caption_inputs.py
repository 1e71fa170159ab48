from dataclasses import replace

import h5py
import numpy as np
import pytest
from PIL import Image

from rnnlab.data import caption_inputs
from rnnlab.data.caption_inputs import CaptionInputs
from rnnlab.data.joint import JointCaptionInputs
from rnnlab.data.projection import Projection
from rnnlab.data.scaling import FeatureScaling, Scaling
from rnnlab.data.vocabulary import Vocabulary

SCALING = FeatureScaling(
    {
        "features": Scaling(np.array([1, 2], np.float32), np.array([2, 4], np.float32)),
        "global_features": Scaling.identity(3),
    }
)


def test_from_a_checkpoint():
    saved = {**SCALING.arrays(), "tokenizer": "alphanumeric"}
    inputs = CaptionInputs.from_saved(["a", "b"], saved)
    assert inputs.vocabulary == Vocabulary(["a", "b"])
    assert inputs.num_global_features == 3
    assert inputs.image_dir is None
    del saved["global_features_mean"]
    found = CaptionInputs.from_saved(["a"], saved, reads_grid=True)
    assert found.num_global_features is None
    assert found.reads == "a grid of vectors of 2 numbers of each image"


def test_new_features_are_scaled_as_the_training_data():
    inputs = CaptionInputs(Vocabulary(["a"]), FeatureScaling({"features": SCALING["features"]}))
    found = inputs.standardise(np.array([[3.0, 2.0]]))
    np.testing.assert_array_equal(found, [[1, 0]])
    assert found.dtype == np.float32
    with pytest.raises(ValueError, match=r"new.npy: features: found shape \(1, 3\), expected \(..., 2\)"):
        inputs.standardise(np.zeros((1, 3)), "new.npy")


def test_what_a_model_reads_in_words():
    inputs = CaptionInputs(Vocabulary(["a"]), SCALING, reads_grid=True)
    expected = "a grid of vectors of 2 numbers and a vector of 3 numbers of each image"
    assert inputs.reads == expected
    plain = CaptionInputs(Vocabulary(["a"]), FeatureScaling({"features": Scaling.identity(4)}))
    assert plain.reads == "one vector of 4 numbers of each image"


@pytest.fixture
def network(tmp_path):
    from .photographs.networks import write_network

    return write_network(tmp_path / "network.onnx")


@pytest.fixture
def photograph(tmp_path, rng):
    Image.fromarray(rng.integers(0, 256, (9, 12, 3), np.uint8)).save(tmp_path / "photo.png")
    return tmp_path / "photo.png"


def test_a_photograph_is_a_grid_and_a_vector(network, photograph):
    scaling = FeatureScaling(
        {
            "features": Scaling(np.ones(5, np.float32), np.full(5, 2, np.float32)),
            "global_features": Scaling.identity(5),
        }
    )
    inputs = CaptionInputs(Vocabulary(["a"]), scaling, reads_grid=True)
    assert not inputs.knows_encoders
    with pytest.raises(ValueError, match="do not record which encoder made them: give its ONNX file with"):
        inputs.encode([photograph])
    known = inputs.with_encoder(network, dtype="float32")
    grid, vector = known.encode([photograph, photograph])
    assert known.knows_encoders
    assert (grid.shape, vector.shape) == ((2, 16, 5), (2, 5))
    np.testing.assert_allclose((grid * 2 + 1).mean(axis=1), vector, rtol=1e-4, atol=1e-5)


def test_a_pca_projects_the_grid_and_not_the_vector(network, photograph, tmp_path, rng):
    pca = Projection(rng.normal(size=(2, 5)).astype(np.float32), np.array([3, 4], np.float32))
    with h5py.File(tmp_path / "pca.h5", "w") as file:
        pca.write(file)
    scaling = FeatureScaling({"features": Scaling.identity(2), "global_features": Scaling.identity(5)})
    inputs = CaptionInputs(Vocabulary(["a"]), scaling, reads_grid=True)
    grid, vector = inputs.with_encoder(network, tmp_path / "pca.h5", dtype="float32").encode([photograph])
    assert (grid.shape, vector.shape) == ((1, 16, 2), (1, 5))
    np.testing.assert_allclose(grid.mean(axis=1), pca.apply(vector), rtol=1e-4, atol=1e-5)


def test_encodings_are_saved_with_the_scaling(network, photograph, tmp_path):
    scaling = FeatureScaling({"features": Scaling.identity(5)})
    known = CaptionInputs(Vocabulary(["a"]), scaling).with_encoder(network, pixels="unit")
    saved = scaling.arrays() | known.encodings["features"].arrays("features")
    found = CaptionInputs.from_saved(["a"], saved)
    features = known.encode([photograph])
    assert features.shape == (1, 5)
    np.testing.assert_array_equal(found.encode([photograph]), features)
    moved = network.rename(tmp_path / "moved.onnx")
    np.testing.assert_array_equal(
        found.with_encoder(moved).encode([photograph]), known.with_encoder(moved).encode([photograph])
    )
    with pytest.raises(FileNotFoundError, match="network.onnx: found no such file, expected the ONNX file"):
        found.with_encoder(network)
    with pytest.raises(ValueError, match="pca, layer given, but the features .* record their encoder"):
        found.with_encoder(moved, "pca.h5", layer="pool")
    other = replace(known, scaling=FeatureScaling({"features": Scaling.identity(4)})).with_encoder(moved)
    with pytest.raises(
        ValueError, match="layer pool has 5 numbers, and the model reads 4 .*: give with --pca"
    ):
        other.encode([photograph])


def test_fields_by_different_encoders(network, photograph, tmp_path):
    from .photographs.networks import KERNEL, write_network

    other = write_network(tmp_path / "other.onnx", kernel=2 * KERNEL)
    scaling = FeatureScaling({"features": Scaling.identity(5), "global_features": Scaling.identity(5)})
    plain = CaptionInputs(Vocabulary(["a"]), scaling)
    encodings = {
        name: plain.with_encoder(path).encodings[name]
        for name, path in (("features", network), ("global_features", other))
    }
    known = replace(plain, encodings=encodings)
    expected = known.encode([photograph])
    moved, other_moved = network.rename(tmp_path / "moved.onnx"), other.rename(tmp_path / "other_moved.onnx")
    found = known.with_encoder(moved)
    assert [found.encodings[name].path for name in scaling] == [str(moved), str(other)]
    found = found.with_encoder(other_moved).encode([photograph])
    np.testing.assert_array_equal(found, expected)
    third = write_network(tmp_path / "third.onnx", kernel=3 * KERNEL)
    with pytest.raises(
        ValueError, match=r"third.onnx: sha256: found .* of features or .* of global_features"
    ):
        known.with_encoder(third)
    partly = replace(plain, encodings={"features": encodings["features"]}).with_encoder(moved)
    message = (
        "the global_features that .* record which encoder made them: --encoder cannot .* features record"
    )
    with pytest.raises(ValueError, match=message):
        partly.encode([photograph])


def test_features_of_another_encoding_name_the_run(network, monkeypatch):
    plain = CaptionInputs(Vocabulary(["a"]), FeatureScaling({"features": Scaling.identity(5)}))
    runs = {"runs/a": plain.with_encoder(network), "runs/b": plain.with_encoder(network, pixels="unit")}
    monkeypatch.setattr(caption_inputs, "recorded_encodings", lambda files: runs["runs/a"].encodings)
    with pytest.raises(ValueError, match="^runs/b: new.h5: found features by network.onnx.*, expected by"):
        JointCaptionInputs(runs).check_files({"features": "new.h5"})
