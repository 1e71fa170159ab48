"""The features that fit, and the errors of those that do not."""

import re

import numpy as np
import pytest

from rnnlab.models.parts.features import checked_features, features_of, named_arrays

N, L, D, G = 2, 3, 4, 5
VECTORS = {"regions": False, "input_dim": D, "global_dim": None}
REGIONS = {"regions": True, "input_dim": D, "global_dim": None}
BOTH = {"regions": True, "input_dim": D, "global_dim": G}


def single(name, array):
    """Stands for the conversion of a model in single precision."""
    return np.asarray(array, np.float32)


@pytest.mark.parametrize(("shape", "kind"), [((N, D), VECTORS), ((N, L, D), REGIONS), ((0, L, D), REGIONS)])
def test_an_array_is_converted(shape, kind, rng):
    features = rng.standard_normal(shape)
    found, rows = checked_features("f", features, single, **kind)
    assert rows == shape[0]
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, single("", features))


def test_a_pair_is_converted(rng):
    features = rng.standard_normal((N, L, D)), rng.standard_normal((N, G))
    found, rows = checked_features("f", features, single, **BOTH)
    assert rows == N
    for array, given in zip(found, features, strict=True):
        assert array.dtype == np.float32
        np.testing.assert_array_equal(array, single("", given))


@pytest.mark.parametrize(
    ("features", "kind", "error", "message"),
    [
        (np.ones((N, D + 1)), VECTORS, ValueError, "f has shape (2, 5), expected (N, D) with D = 4"),
        (np.ones((N, L, D)), VECTORS, ValueError, "f has shape (2, 3, 4), expected (N, D) with D = 4"),
        (np.ones((N, D)), REGIONS, ValueError, "f has shape (2, 4), expected (N, L, D) with D = 4"),
        (np.ones((N, 0, D)), REGIONS, ValueError, "f has shape (2, 0, 4), expected (N, L, D) with D = 4"),
        (
            np.ones((N, L, D)),
            BOTH,
            TypeError,
            "f is a ndarray, expected a tuple of arrays (N, L, D) and (N, G)",
        ),
        (
            (np.ones((N, L, D)),),
            BOTH,
            TypeError,
            "f is a tuple of 1, expected a tuple of arrays (N, L, D) and (N, G)",
        ),
        (
            (np.ones((N, D)), np.ones((N, G))),
            BOTH,
            ValueError,
            "f[0] has shape (2, 4), expected (N, L, D) with D = 4",
        ),
        (
            (np.ones((N, L, D)), np.ones((N, D))),
            BOTH,
            ValueError,
            "f[1] has shape (2, 4), expected (N, G) with G = 5",
        ),
        (
            (np.ones((N, L, D)), np.ones((N + 1, G))),
            BOTH,
            ValueError,
            "f[1] has shape (3, 5), expected N = 2 as features[0]",
        ),
        (
            (np.ones((N, L, D)), np.ones((N, G))),
            REGIONS,
            TypeError,
            "f is a tuple, expected an array (N, L, D): the model has no global_dim",
        ),
    ],
)
def test_features_that_do_not_fit(features, kind, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        checked_features("f", features, single, **kind)


@pytest.mark.parametrize("features", [np.ones((N, D)), (np.ones((N, L, D)), np.zeros((N, G)))])
def test_a_padded_batch_holds_the_same_features(features):
    found = features_of({"tokens": np.zeros(3)} | named_arrays(features))
    if isinstance(features, tuple):
        assert all(one is other for one, other in zip(found, features, strict=True))
    else:
        assert found is features
