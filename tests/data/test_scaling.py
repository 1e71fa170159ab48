import h5py
import numpy as np
import pytest

from rnnlab.data.lazy import LazyFeatures
from rnnlab.data.scaling import FeatureScaling, Scaling


@pytest.fixture
def scaling(rng):
    def drawn(D):
        return Scaling(rng.standard_normal(D).astype(np.float32), rng.random(D, np.float32) + 0.5)

    return FeatureScaling({"features": drawn(4), "global_features": drawn(3)})


def test_both_fields_are_scaled(scaling, rng):
    grid, vectors = rng.standard_normal((2, 5, 4)), rng.standard_normal((2, 3))
    found = scaling.standardise((grid, vectors))
    for each, given, (mean, std) in zip(found, (grid, vectors), scaling.values(), strict=True):
        np.testing.assert_allclose(each, (given - mean) / std, rtol=1e-6)
        assert each.dtype == np.float32


def test_saved_arrays_give_the_same_scaling(scaling):
    saved = {**scaling.arrays(), "tokenizer": "alphanumeric"}
    again = FeatureScaling.from_arrays(saved)
    assert list(again) == list(scaling)
    for name in scaling:
        np.testing.assert_array_equal(again[name].mean, scaling[name].mean)
        np.testing.assert_array_equal(again[name].std, scaling[name].std)


def test_lazy_features_stay_lazy(scaling, tmp_path, rng):
    values = rng.standard_normal((6, 4)).astype(np.float32)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["features"] = values
    del scaling["global_features"]
    found = scaling.standardise(LazyFeatures(tmp_path / "x.h5"))
    assert isinstance(found, LazyFeatures)
    np.testing.assert_allclose(found[:], scaling.standardise(values), rtol=1e-6)


@pytest.mark.parametrize(
    ("features", "error", "message"),
    [
        (np.zeros((2, 4)), ValueError, "x.h5: found 1 array, expected one each of features, global_features"),
        (
            (np.zeros((2, 5)), np.zeros((2, 3))),
            ValueError,
            r"x.h5: features: found shape \(2, 5\), expected .* 4",
        ),
        ((np.zeros((2, 4)), np.zeros(2)), ValueError, r"x.h5: global_features: found shape \(2,\)"),
        (
            (np.zeros((2, 4), complex), np.zeros((2, 3))),
            TypeError,
            "features: found dtype complex128, expected real",
        ),
    ],
)
def test_features_that_do_not_fit_name_the_file(scaling, features, error, message):
    with pytest.raises(error, match=message):
        scaling.standardise(features, "x.h5")
