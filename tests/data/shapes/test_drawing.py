import numpy as np
import pytest

from rnnlab.data.shapes.drawing import OUTLINES, PALETTE, draw
from rnnlab.data.shapes.scenes import COLOURS, SHAPES, Scene, SceneObject, draw_scene


def thing(shape="square", colour="red", x=0.5, y=0.5, radius=0.2, angle=0.0):
    return SceneObject(shape, colour, "large", x, y, radius, angle)


@pytest.mark.parametrize("pixels", [24, 96])
def test_a_picture_and_what_each_object_covers(rng, pixels):
    scene = draw_scene(rng)
    picture, coverage = draw(scene, pixels)
    assert picture.shape == (pixels, pixels, 3)
    assert picture.dtype == np.uint8
    assert coverage.shape == (len(scene.objects), pixels, pixels)
    assert coverage.min() == 0
    assert coverage.max() == 1
    np.testing.assert_array_equal(picture, draw(scene, pixels)[0])


def test_every_shape_has_an_outline_and_every_colour_a_paint():
    assert set(OUTLINES) == set(SHAPES)
    assert set(PALETTE) == set(COLOURS)


@pytest.mark.parametrize("colour", COLOURS)
def test_an_object_has_its_colour(colour):
    picture, _ = draw(Scene((thing(colour=colour),), "middle", 0.3))
    np.testing.assert_allclose(picture[48, 48], PALETTE[colour], atol=12)


@pytest.mark.parametrize("shape", SHAPES)
def test_an_object_fills_about_the_circle_of_its_radius(shape):
    object_ = thing(shape, x=0.4, y=0.6, radius=0.3, angle=0.2)
    _, (coverage,) = draw(Scene((object_,), "middle", 0.0))
    rows, columns = np.nonzero(coverage)
    distance = np.hypot((columns + 0.5) / 96 - 0.4, (rows + 0.5) / 96 - 0.6)
    assert 0.8 * 0.3 < distance.max() < 1.09 * 0.3
    assert coverage[57, 38] == 1


def test_edges_are_smooth():
    _, (coverage,) = draw(Scene((thing("circle", radius=0.3),), "middle", 0.0))
    partly = (coverage > 0) & (coverage < 1)
    assert 100 < partly.sum() < 400
    assert coverage.mean() == pytest.approx(np.pi * (0.86 * 0.3) ** 2, rel=0.01)


def test_what_is_in_front_hides_what_is_behind():
    small, large = thing("circle", "blue", radius=0.1), thing(radius=0.3)
    picture, coverage = draw(Scene((small, large), "inside", 0.0))
    assert coverage[0, 48, 48] == 1
    assert coverage[1, 48, 48] == 0
    assert coverage.sum(axis=0).max() <= 1 + 1e-6
    np.testing.assert_allclose(picture[48, 48], PALETTE["blue"], atol=12)


def test_the_background_is_pale_and_shadows_fall_on_it():
    empty, _ = draw(Scene((), "middle", 0.6))
    assert empty.min() > 190
    picture, coverage = draw(Scene((thing(),), "middle", 0.6))
    ground = coverage[0] == 0
    darker = empty[ground].astype(int).sum(axis=1) - picture[ground].astype(int).sum(axis=1)
    assert darker.min() >= 0
    assert (darker > 30).sum() > 50
