import h5py
import numpy as np
import pytest

from rnnlab.data.projection import Projection, projection_in, read_projection


@pytest.fixture
def projection(rng):
    return Projection(rng.normal(size=(2, 4)).astype(np.float32), rng.normal(size=2).astype(np.float32))


def test_projects_vectors_and_grids(projection, rng):
    grid = rng.normal(size=(3, 5, 4)).astype(np.float16)
    expected = np.einsum("nrd,kd->nrk", grid.astype(np.float64), projection.components) + projection.intercept
    found = projection.apply(grid)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match="the PCA projects 4 numbers to 2, and the features have 3"):
        projection.apply(grid[..., :3])


def test_one_after_another(projection, rng):
    second = Projection(rng.normal(size=(3, 2)).astype(np.float32), rng.normal(size=3).astype(np.float32))
    features = rng.normal(size=(6, 4)).astype(np.float32)
    both = second.after(projection)
    np.testing.assert_allclose(
        both.apply(features), second.apply(projection.apply(features)), rtol=1e-4, atol=1e-5
    )
    assert second.after(None) is second


def test_files_with_and_without_a_group(projection, tmp_path):
    with h5py.File(tmp_path / "grouped.h5", "w") as file:
        assert projection_in(file) is None
        projection.write(file)
        assert projection.same_as(projection_in(file))
    with h5py.File(tmp_path / "plain.h5", "w") as file:
        file["components"], file["intercept"] = projection
    for name in ("grouped.h5", "plain.h5"):
        assert projection.same_as(read_projection(tmp_path / name))
    assert not projection.same_as(projection._replace(intercept=projection.intercept + 1))


@pytest.mark.parametrize(
    ("components", "intercept", "message"),
    [
        (
            np.ones((2, 4)),
            np.ones(3),
            r"components \(2, 4\) and intercept \(3,\), expected \(K, D\) and \(K,\)",
        ),
        (np.ones(4), np.ones(4), r"expected \(K, D\) and \(K,\)"),
        (np.ones((2, 4)), np.array([1, np.nan]), "intercept: .*expected finite"),
        (np.ones((2, 4), int), np.ones(2), "components: found dtype int64"),
        (np.ones((2, 4)), None, "found the fields components, expected intercept or pca/intercept"),
    ],
)
def test_damaged_files_are_named(tmp_path, components, intercept, message):
    with h5py.File(tmp_path / "p.h5", "w") as file:
        file["components"] = components
        if intercept is not None:
            file["intercept"] = intercept
    with pytest.raises(ValueError, match=message) as caught:
        read_projection(tmp_path / "p.h5")
    assert "p.h5" in str(caught.value)
