import numpy as np
import pytest

from rnnlab.data.caption_inputs import CaptionInputs
from rnnlab.data.scaling import FeatureScaling, Scaling
from rnnlab.data.vocabulary import Vocabulary

SCALING = FeatureScaling(
    {
        "features": Scaling(np.array([1, 2], np.float32), np.array([2, 4], np.float32)),
        "global_features": Scaling.none(3),
    }
)


def test_from_a_checkpoint():
    saved = {**SCALING.arrays(), "tokenizer": "alphanumeric"}
    inputs = CaptionInputs.from_saved(["a", "b"], saved)
    assert inputs.vocabulary == Vocabulary(["a", "b"])
    assert inputs.num_global_features == 3
    assert inputs.image_dir is None
    del saved["global_features_mean"]
    assert CaptionInputs.from_saved(["a"], saved).num_global_features is None


def test_new_features_are_scaled_as_the_training_data():
    inputs = CaptionInputs(Vocabulary(["a"]), FeatureScaling({"features": SCALING["features"]}))
    found = inputs.standardise(np.array([[3.0, 2.0]]))
    np.testing.assert_array_equal(found, [[1, 0]])
    assert found.dtype == np.float32
    with pytest.raises(ValueError, match=r"new.npy: features: found shape \(1, 3\), expected \(..., 2\)"):
        inputs.standardise(np.zeros((1, 3)), "new.npy")
