import numpy as np
import pytest

from rnnlab.metrics import mean_of, paired_bootstrap

rng = np.random.default_rng(0)


def test_the_interval_is_that_of_the_normal_distribution():
    first, gains = rng.standard_normal(400), 0.1 + 0.5 * rng.standard_normal(400)
    found = paired_bootstrap(mean_of(first), mean_of(first + gains), samples=5000)
    error = gains.std() / np.sqrt(400)
    assert found.value == pytest.approx(gains.mean())
    assert found.low == pytest.approx(gains.mean() - 1.96 * error, abs=0.1 * error)
    assert found.high == pytest.approx(gains.mean() + 1.96 * error, abs=0.1 * error)
    assert found.p < 0.01


def test_p_is_uniform_for_models_that_do_not_differ():
    found = [
        paired_bootstrap(mean_of(rng.standard_normal(50)), mean_of(rng.standard_normal(50)), samples=200).p
        for _ in range(200)
    ]
    assert 0.02 < np.mean(np.array(found) < 0.1) < 0.2


def test_equal_models_do_not_differ():
    scores = mean_of([1.0, 0.0, 1.0])
    assert paired_bootstrap(scores, scores) == (0, 0, 0, 1)


def test_rounding_is_no_difference():
    scores = rng.random(20)
    found = paired_bootstrap(mean_of(scores), mean_of(scores + 1e-15 * rng.standard_normal(20)))
    assert found == (0, 0, 0, 1)


def test_the_smallest_p_depends_on_the_number_of_samples():
    found = paired_bootstrap(mean_of([0.0] * 9), mean_of([1.0] * 9), samples=99)
    assert found == pytest.approx((1, 1, 1, 0.02))


def test_a_seed_repeats_the_samples():
    first, second = mean_of(rng.standard_normal(30)), mean_of(rng.standard_normal(30))
    assert paired_bootstrap(first, second, rng=3) == paired_bootstrap(first, second, rng=3)
    assert paired_bootstrap(first, second, rng=3) != paired_bootstrap(first, second, rng=4)
    with pytest.raises(TypeError, match="paired_bootstrap: rng is None, expected a numpy Generator"):
        paired_bootstrap(first, second, rng=None)


@pytest.mark.parametrize(
    ("first", "second", "samples", "message"),
    [
        ([], [], 9, "first has 0 examples and second 0, expected the same number"),
        ([1.0], [1.0, 2.0], 9, "first has 1 examples and second 2, expected the same number"),
        ([1.0], [1.0], 0, "samples is 0, expected an integer of at least 1"),
    ],
)
def test_errors(first, second, samples, message):
    with pytest.raises(ValueError, match=message):
        paired_bootstrap(mean_of(first), mean_of(second), samples=samples)


def test_scores_without_their_statistics():
    with pytest.raises(TypeError, match=r"paired_bootstrap: second is a list, .*, such as mean_of\(scores\)"):
        paired_bootstrap(mean_of([0.5]), [0.5])


def test_scores_that_are_no_numbers():
    with pytest.raises(ValueError, match="mean_of: scores hold NaN or infinity"):
        mean_of([1, np.nan])
    with pytest.raises(ValueError, match=r"mean_of: scores have shape \(3, 2\), expected \(N,\)"):
        mean_of(np.ones((3, 2)))
    scores = mean_of([1.0, 2.0])
    with pytest.raises(ValueError, match="paired_bootstrap: second holds NaN or infinity"):
        paired_bootstrap(scores, scores._replace(examples=np.array([[1.0], [np.inf]])))
    with pytest.raises(ValueError, match=r"samples is 10\.5, expected an integer"):
        paired_bootstrap(scores, scores, samples=10.5)
