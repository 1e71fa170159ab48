import numpy as np
import pytest

from rnnlab.data import PCA, pca
from rnnlab.data.pca import Projected


@pytest.fixture
def features(rng):
    return (rng.normal(size=(60, 7)) @ rng.normal(size=(7, 7)) + 5).astype(np.float32)


def test_agrees_with_the_singular_values(features):
    fitted = PCA.fit(features, 4)
    centred = features.astype(np.float64) - features.mean(axis=0, dtype=np.float64)
    _, values, rows = np.linalg.svd(centred, full_matrices=False)
    np.testing.assert_allclose(fitted.variances, values[:4] ** 2 / 60, rtol=1e-6)
    np.testing.assert_allclose(np.abs(np.sum(fitted.components.T * rows[:4], axis=1)), 1, rtol=1e-6)
    assert fitted.explained == pytest.approx(np.sum(values[:4] ** 2) / np.sum(values**2))


def test_components_are_orthonormal_with_a_fixed_sign(features):
    components = PCA.fit(features, 7).components
    np.testing.assert_allclose(components.T @ components, np.eye(7), atol=1e-12)
    assert (components[np.abs(components).argmax(axis=0), range(7)] > 0).all()


def test_projections_are_centred_and_uncorrelated(features):
    fitted = PCA.fit(features, 5)
    projected = fitted.transform(features)
    assert projected.dtype == np.float32
    np.testing.assert_allclose(projected.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(np.cov(projected.T, bias=True), np.diag(fitted.variances), atol=1e-4)


def test_chunks_change_nothing(features, monkeypatch):
    whole = PCA.fit(features, 3)
    monkeypatch.setattr(pca, "_ROWS", 16)
    np.testing.assert_allclose(PCA.fit(features, 3).components, whole.components, rtol=1e-9)


def test_projected_as_it_is_read(features):
    fitted = PCA.fit(features, 3)
    lazily = Projected(features, fitted)
    assert (len(lazily), lazily.shape, lazily.dtype) == (60, (60, 3), np.float32)
    np.testing.assert_array_equal(lazily[10:20], fitted.transform(features)[10:20])


@pytest.mark.parametrize("dims", [0, 8])
def test_refuses_more_components_than_there_are(features, dims):
    with pytest.raises(ValueError, match=rf"dims is {dims}, expected 1 to 7 for features of shape \(60, 7\)"):
        PCA.fit(features, dims)


def test_regions_of_grids_are_vectors(features, monkeypatch):
    monkeypatch.setattr(pca, "_ROWS", 16)
    grids = features.reshape(12, 5, 7)
    whole = PCA.fit(features, 3)
    np.testing.assert_allclose(PCA.fit(grids, 3).components, whole.components, rtol=1e-9)
    assert Projected(grids, whole).shape == (12, 5, 3)
    np.testing.assert_array_equal(Projected(grids, whole)[:2], whole.transform(grids[:2]))


def test_as_a_projection(features):
    fitted = PCA.fit(features, 3)
    np.testing.assert_allclose(
        fitted.projection().apply(features), fitted.transform(features), rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize("shape", [(5,), (3, 0, 4), (0, 4)])
def test_there_are_no_features(shape):
    with pytest.raises(ValueError, match=r"PCA: features have shape .*, expected \(N, D\) or"):
        PCA.fit(np.ones(shape), 1)


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_numbers_that_are_not_finite(features, number):
    features[3, 2] = number
    with pytest.raises(ValueError, match="PCA: features hold NaN or infinity, expected finite numbers"):
        PCA.fit(features, 2)
