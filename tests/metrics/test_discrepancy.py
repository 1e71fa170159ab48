"""The distances, by hand."""

import numpy as np
import pytest

from rnnlab.metrics import mean_centroid_distance, pointwise_distance

TAUGHT = np.array([[3.0, 4.0], [1.0, 0.0]])
FREE = np.array([[4.0, 3.0], [0.0, 2.0]])
both = pytest.mark.parametrize("distance", [mean_centroid_distance, pointwise_distance])


def test_golden_values():
    # cosines 24/25 and 0; the mean states are (2, 2) and (2, 2.5), their cosine 9 / (sqrt(8) sqrt(10.25))
    assert pointwise_distance(TAUGHT, FREE) == pytest.approx((1 / 25 + 1) / 2)
    assert mean_centroid_distance(TAUGHT, FREE) == pytest.approx(1 - 9 / np.sqrt(82))


def test_centroids_may_meet_where_points_do_not():
    u = np.array([[1.0, 0.0], [0.0, 1.0]])
    assert mean_centroid_distance(u, u[::-1]) == pytest.approx(0, abs=1e-15)
    assert pointwise_distance(u, u[::-1]) == 1


@both
def test_opposite_and_same_directions(distance):
    assert distance(TAUGHT, -3 * TAUGHT) == pytest.approx(2)
    assert 0 <= distance(TAUGHT, 5 * TAUGHT) <= 1e-15
    assert distance(np.ones((3, 3)), np.ones((3, 3))) >= 0


@both
def test_norms_of_all_states_do_not_matter(distance, rng):
    u, v = rng.standard_normal((2, 7, 5))
    assert distance(10 * u, v / 3) == pytest.approx(distance(u, v), rel=1e-12)
    assert distance(u, v) == pytest.approx(distance(v, u), rel=1e-12)


def test_lengths_of_single_states_matter_to_the_centroids_alone(rng):
    u, v = rng.standard_normal((2, 7, 5))
    stretched = u * rng.uniform(1, 5, (7, 1))
    assert pointwise_distance(stretched, v) == pytest.approx(pointwise_distance(u, v), rel=1e-12)
    assert mean_centroid_distance(stretched, v) != pytest.approx(mean_centroid_distance(u, v), rel=1e-3)


@both
def test_float32_states_are_measured_in_float64(distance, rng):
    u, v = rng.standard_normal((2, 7, 5)).astype(np.float32)
    assert distance(u, v) == distance(u.astype(np.float64), v.astype(np.float64))


@both
def test_what_does_not_fit(distance):
    name = distance.__name__
    with pytest.raises(
        ValueError,
        match=rf"{name}: teacher_forced has shape \(2, 2\) and free_running \(1, 2\), expected both",
    ):
        distance(TAUGHT, FREE[:1])
    with pytest.raises(ValueError, match="N of at least 1"):
        distance(TAUGHT[:0], FREE[:0])
    for state in (0.0, np.nan, np.inf):
        with pytest.raises(ValueError, match=f"{name}: the states of row 0 have no angle"):
            distance(np.full((1, 2), state), FREE[:1])
