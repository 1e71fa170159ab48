import numpy as np
import pytest

from rnnlab.data.shapes import features
from rnnlab.data.shapes.drawing import PALETTE, draw
from rnnlab.data.shapes.features import HUES, global_features, hue_maps, local_features, see
from rnnlab.data.shapes.scenes import COLOURS, SHAPES, Scene, SceneObject, draw_scene


def scene_of(*things):
    return Scene(tuple(things), "middle", 0.4)


def thing(shape, colour, x=0.5, y=0.5, radius=0.2, angle=0.0):
    return SceneObject(shape, colour, "large", x, y, radius, angle)


def seen(*scenes):
    return see(np.stack([draw(scene)[0] for scene in scenes]))


def strongest(blobs):
    """The channel of the largest blob of each picture."""
    return blobs.maps.sum(axis=(2, 3)).argmax(axis=1)


def test_each_colour_has_a_channel_of_its_own():
    pixels = np.array([[[PALETTE[colour] for colour in COLOURS]]], np.float32) / 255
    channels = hue_maps(pixels)[0, :, 0, :].argmax(axis=0)
    assert len(set(channels.tolist())) == len(COLOURS)


def test_backgrounds_excite_no_channel():
    blobs = seen(*(Scene((), "middle", hue) for hue in np.linspace(0, 1, 7)))
    assert blobs.maps.max() == 0
    assert not global_features(blobs).any()
    assert not local_features(blobs).any()


@pytest.mark.parametrize("colour", COLOURS)
@pytest.mark.parametrize("radius", [0.1, 0.2])
def test_shapes_are_told_apart(colour, radius):
    angles = (-0.17, 0.03, 0.12)
    blobs = seen(
        *(scene_of(thing(shape, colour, radius=radius, angle=a)) for shape in SHAPES for a in angles)
    )
    alike = blobs.kind[np.arange(len(blobs.kind)), strongest(blobs), 2:]
    told = alike.argmax(axis=1) == np.repeat(np.arange(len(SHAPES)), len(angles))
    assert told.mean() > 0.85


def test_size_and_place():
    small, large = thing("circle", "blue", x=0.2, y=0.7, radius=0.1), thing("circle", "blue", x=0.6, y=0.3)
    blobs = seen(scene_of(small), scene_of(large))
    first, second = (blobs.place[n, channel] for n, channel in enumerate(strongest(blobs)))
    presence = [blobs.kind[n, channel, 0] for n, channel in enumerate(strongest(blobs))]
    np.testing.assert_allclose(first[:2] / presence[0], (2 * 0.2 - 1, 2 * 0.7 - 1), atol=0.02)
    np.testing.assert_allclose(second[:2] / presence[1], (2 * 0.6 - 1, 2 * 0.3 - 1), atol=0.02)
    sizes = [blobs.kind[n, channel, 1] for n, channel in enumerate(strongest(blobs))]
    assert sizes[1] > 1.7 * sizes[0]


def test_directions_from_the_middle_are_opposite():
    blobs = seen(scene_of(thing("circle", "blue", y=0.25), thing("circle", "red", y=0.75)))
    channels = np.argsort(blobs.maps[0].sum(axis=(1, 2)))[-2:]
    red, blue = sorted(channels)
    assert blobs.place[0, blue, 3] < -0.7
    assert blobs.place[0, red, 3] > 0.7


def test_cells_know_the_blob_that_covers_them():
    object_ = thing("star", "purple", x=0.25, y=0.6, radius=0.15)
    blobs = seen(scene_of(object_))
    local = local_features(blobs).reshape(36, HUES, -1)
    _, coverage = draw(scene_of(object_))
    shares = coverage[0].reshape(6, 16, 6, 16).mean(axis=(1, 3)).ravel()
    known = local.any(axis=(1, 2))
    assert known[shares > 0.05].all()
    assert not known[shares == 0].any()
    centre = local[3 * 6 + 1, strongest(blobs)[0], 2:]
    assert centre.argmax() == SHAPES.index("star")


def test_shapes_and_dtypes(rng):
    blobs = seen(*(draw_scene(rng) for _ in range(3)))
    whole, local = global_features(blobs), local_features(blobs, grid=4)
    assert whole.shape == (3, HUES * (6 + len(SHAPES)))
    assert local.shape == (3, 16, HUES * (2 + len(SHAPES)))
    assert whole.dtype == local.dtype == np.float32
    assert np.isfinite(whole).all()


def test_pictures_of_any_multiple_of_the_size_look_alike():
    scene = scene_of(thing("heart", "green", radius=0.3))
    small, large = (global_features(see(draw(scene, pixels)[0][None])) for pixels in (features.PIXELS, 192))
    np.testing.assert_allclose(small, large, atol=0.08)
