from __future__ import annotations

import matplotlib.image
import numpy as np
import pytest

from rnnlab import plots
from rnnlab.plots.images import attention_shade


def test_caption_grid(rng):
    images = [rng.integers(0, 256, shape, np.uint8) for shape in ((20, 30, 3), (30, 20, 3), (8, 8, 3))]
    captions = ["a small red square", "word " * 30, "one\ntwo"]
    figure = plots.caption_grid(images, captions, columns=2, colors=["green", "red", "black"])
    shown = [axes for axes in figure.axes if axes.images]
    assert len(shown) == 3
    assert len(figure.axes) == 4
    for axes, image in zip(shown, images, strict=True):
        np.testing.assert_array_equal(axes.images[0].get_array(), image)
    labels = [axes.xaxis.label for axes in shown]
    assert labels[0].get_text() == captions[0]
    assert labels[1].get_text().replace("\n", " ") == captions[1].strip()
    assert labels[1].get_text().count("\n") > 2
    assert labels[2].get_text() == captions[2]
    assert [label.get_color() for label in labels] == ["green", "red", "black"]


def test_dollar_signs_are_drawn(tmp_path):
    image, text = np.zeros((5, 5, 3), np.uint8), "a sign $x_{1$ y"
    plots.save(plots.caption_grid([image], [text]), tmp_path / "captions.png")
    plots.save(plots.attention_grid([image], [[text]], [np.ones((1, 4))]), tmp_path / "attention.png")


def test_caption_grid_of_one(rng):
    image = rng.integers(0, 256, (5, 5, 3), np.uint8)
    (axes,) = plots.caption_grid([image], [""], colors="blue").axes
    assert axes.xaxis.label.get_color() == "blue"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], []), "images is empty, expected at least one"),
        ((["cat.jpg"], ["a"]), r"images\[0\] is 'cat.jpg', expected an array \(h, w, 3\)"),
        ((np.zeros((4, 4, 3)), ["a"]), r"images\[0\] has shape \(4, 3\), expected an array \(h, w, 3\)"),
        (([np.zeros((2, 2, 4))], ["a"]), r"images\[0\] has shape \(2, 2, 4\), expected an array \(h, w, 3\)"),
        (([np.zeros((2, 2, 3), np.uint8)], ["a", "b"]), "got 1 images and 2 captions"),
    ],
)
def test_caption_grid_needs_a_caption_for_every_image(arguments, message):
    with pytest.raises(ValueError, match=message):
        plots.caption_grid(*arguments)


def test_caption_grid_needs_a_color_for_every_image():
    with pytest.raises(ValueError, match="got 2 colors for 1 images"):
        plots.caption_grid([np.zeros((2, 2, 3), np.uint8)], ["a"], colors=["red", "red"])


def test_attention_grid_has_a_picture_for_each_word(rng, tmp_path):
    images = [rng.integers(0, 256, (12, 12, 3), np.uint8), rng.integers(0, 256, (8, 16, 3), np.uint8)]
    words = [["a", "star"], ["a", "red", "square"]]
    figure = plots.attention_grid(images, words, [rng.random((2, 9)), rng.random((3, 4))])
    assert [axes.get_title() for axes in figure.axes] == ["", "a", "star", "", "", "a", "red", "square"]
    assert {axes.get_subplotspec().get_gridspec().get_geometry() for axes in figure.axes} == {(2, 4)}
    plots.save(figure, tmp_path / "attention.png")
    assert matplotlib.image.imread(tmp_path / "attention.png").ndim == 3


def test_attention_grid_prints_the_largest_weight_of_each_word():
    """Maps have no common scale: without the number, uniform attention looks like any other."""
    weights = np.array([[0.25] * 4, [0.91, 0.03, 0.03, 0.03]])
    figure = plots.attention_grid([np.zeros((4, 4, 3), np.uint8)], [["a", "dog"]], [weights])
    assert [text.get_text() for axes in figure.axes for text in axes.texts] == ["0.25", "0.91"]


def test_attention_grid_darkens_an_image_but_for_the_largest_weight():
    image, weights = np.full((6, 6, 3), 200, np.uint8), np.array([[0.5, 0.25, 0.25, 0.0]])
    alone, attended = plots.attention_grid([image], [["dog"]], [weights]).axes
    np.testing.assert_array_equal(alone.images[0].get_array(), image)
    picture, shade = (each.get_array() for each in attended.images)
    np.testing.assert_array_equal(picture, image)
    assert not shade[..., :3].any()  # black
    np.testing.assert_allclose(shade[..., 3] / 255, [[0, 0.36], [0.36, 0.72]], atol=1 / 255)


def test_the_shade_of_no_attention():
    """Padding has weights of zero."""
    assert (attention_shade(np.zeros(4))[..., 3] == round(0.72 * 255)).all()


def test_attention_grid_wraps_long_sentences(rng):
    words = [[f"word{k}" for k in range(16)], ["a", "star"], []]
    weights = [rng.random((len(sentence), 4)) for sentence in words]
    figure = plots.attention_grid([np.zeros((4, 4, 3), np.uint8)] * 3, words, weights, width=1.25)
    grid = np.array(figure.axes).reshape(5, 8)
    titles = [[axes.get_title() for axes in row if axes.get_title()] for row in grid]
    assert titles == [words[0][:7], words[0][7:14], words[0][14:], words[1], words[2]]
    assert [bool(row[0].images) for row in grid] == [True, False, False, True, True]  # the images alone
    assert figure.get_figwidth() == 8 * 1.25


def test_attention_grid_has_room_for_several_lines_above_a_map(rng):
    """The maps keep their size: the figure becomes higher."""
    image, weights = np.zeros((4, 4, 3), np.uint8), [rng.random((1, 4))]
    sizes = []
    for word in ("star", "block 1\nstep 1\na\nstar"):
        figure = plots.attention_grid([image] * 2, [[word]] * 2, weights * 2)
        figure.draw_without_rendering()
        sizes.append([axes.get_window_extent().height for axes in figure.axes])
    np.testing.assert_allclose(sizes[1], sizes[0], rtol=0.05)


@pytest.mark.parametrize(
    ("words", "weights", "message"),
    [
        ([], [], "1 images, 0 sentences and 0 weights"),
        ([["a"]], [np.ones((2, 4))], r"shape \(2, 4\), expected \(1, L\)"),
        ([["a"]], [np.ones((1, 5))], "L a square number"),
    ],
)
def test_attention_grid_needs_weights_of_a_square_grid_for_every_word(words, weights, message):
    with pytest.raises(ValueError, match=message):
        plots.attention_grid([np.zeros((4, 4, 3), np.uint8)], words, weights)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(9), r"weights have shape \(9,\), expected \(1, L\)"),
        (np.ones((1, 0)), r"weights have shape \(1, 0\), expected \(1, L\)"),
        ([[0.1] * 9, [0.2] * 9], r"weights have shape \(2, 9\)"),
        ([[np.nan] * 9], "weights hold NaN or infinity, expected finite numbers"),
    ],
)
def test_weights_that_are_no_grid(weights, message):
    with pytest.raises(ValueError, match=f"attention_grid: {message}"):
        plots.attention_grid([np.zeros((4, 4, 3), np.uint8)], [["a"]], [weights])


def test_images_of_numbers_beyond_1():
    image = np.full((4, 4, 3), 255.0)
    with pytest.raises(ValueError, match=r"images\[0\] has float64 from 255.0 to 255.0, expected integers"):
        plots.caption_grid([image], ["a"])
    plots.caption_grid([image / 255], ["a"])
    plots.caption_grid([image.astype(int)], ["a"])
