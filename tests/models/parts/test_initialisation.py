import numpy as np
import pytest

from rnnlab.models.parts.initialisation import initialise
from rnnlab.parameters import Parameters

SHAPES = {"W_embed": (300, 50), "Wx": (100, 400), "b": (400,), "W_vocab": (400, 300), "b_vocab": (300,)}


def filled(kind, *, seed=0, scale=0.08, dtype=np.float64):
    params = Parameters(SHAPES, dtype)
    params.flat[...] = 7
    initialise(params, kind, scale=scale, rng=np.random.default_rng(seed))
    return params


def test_course():
    params = filled("course")
    for name, std in (("W_embed", 1 / 100), ("Wx", 1 / np.sqrt(100)), ("W_vocab", 1 / np.sqrt(400))):
        assert params[name].std() == pytest.approx(std, rel=0.03)
        assert abs(params[name].mean()) < 0.03 * std
        assert np.abs(params[name]).max() > 3 * std  # normal, not uniform


@pytest.mark.parametrize("scale", [0.08, 0.5])
def test_uniform(scale):
    params = filled("uniform", scale=scale)
    for name in ("W_embed", "Wx", "W_vocab"):
        assert params[name].std() == pytest.approx(scale / np.sqrt(3), rel=0.03)
        assert 0.99 * scale < np.abs(params[name]).max() <= scale


@pytest.mark.parametrize("kind", ["course", "uniform"])
def test_biases_are_zero_and_the_seed_decides_the_rest(kind):
    one, again, other = filled(kind), filled(kind), filled(kind, seed=1)
    assert not one["b"].any()
    assert not one["b_vocab"].any()
    np.testing.assert_array_equal(one.flat, again.flat)
    assert (one["Wx"] != other["Wx"]).all()


def test_float32_has_the_same_numbers():
    np.testing.assert_allclose(filled("course", dtype=np.float32).flat, filled("course").flat, rtol=1e-6)


def test_wrong_options():
    with pytest.raises(ValueError, match="initialisation is 'xavier', expected one of course, uniform"):
        filled("xavier")
    for scale in (0.0, -1.0, float("nan")):
        with pytest.raises(ValueError, match=f"init_scale is {scale}, expected a number above 0"):
            filled("uniform", scale=scale)
