"""Images with their captions, or with the attention of each word.

Dollar signs in a caption do not start mathematics.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from rnnlab.errors import InputError
from rnnlab.plots.figures import INK, new_figure
from rnnlab.types import Array

_DARKEST = 0.72  # opacity of the shade at weight 0


def caption_grid(
    images: Sequence[Array],
    captions: Sequence[str],
    *,
    columns: int = 4,
    colors: Sequence[str] | str | None = None,
    width: float = 2.6,
) -> Figure:
    """Images in rows, each with its caption below it.

    Parameters
    ----------
    images : sequence of (h, w, 3) uint8 arrays
        Of any sizes.
    captions : sequence of str
        One per image. Long lines are wrapped; line breaks are kept.
    columns : int
        The number of images in a row.
    colors : sequence of str, or str, optional
        The colour of each caption, or of all captions.
    width : float
        The width of a column in inches.

    Raises
    ------
    ValueError
        If there are no images, or the number of captions or colours differs from that of the images.
    """
    _check_images("caption_grid", images)
    if len(captions) != len(images):
        raise InputError(f"caption_grid: got {len(images)} images and {len(captions)} captions")
    if colors is None or isinstance(colors, str):
        colors = [colors or INK] * len(images)
    if len(colors) != len(images):
        raise InputError(f"caption_grid: got {len(colors)} colors for {len(images)} images")
    columns = max(1, min(columns, len(images)))
    wrapped = [_wrap(caption, round(width * 14)) for caption in captions]
    return _draw_grid(images, wrapped, list(colors), columns, width)


def attention_grid(
    images: Sequence[Array],
    words: Sequence[Sequence[str]],
    weights: Sequence[Array],
    *,
    columns: int = 7,
    width: float = 1.25,
) -> Figure:
    """Images in rows, each followed by the attention of each word of its caption.

    An image keeps its brightness at the word's largest weight, which is printed below it, and is darker
    elsewhere. The weights of uniform attention are 1 / L. A caption with more words than ``columns``
    continues in the next row, below its first word.

    Parameters
    ----------
    images : sequence of (h, w, 3) uint8 arrays
        Of any sizes.
    words : sequence of sequences of str
        The sentence of each image. A word may have several lines.
    weights : sequence of (T, L) arrays
        The attention of each word to the L regions of a square grid, row by row.
    columns : int
        The maximum number of words in a row.
    width : float
        The width of a picture in inches.

    Raises
    ------
    ValueError
        If there are no images, the numbers of images, sentences and weights differ, a sentence has more or
        fewer words than weights, a weight is not finite, or the grid is not square.
    """
    _check_images("attention_grid", images)
    if not len(images) == len(words) == len(weights):
        raise InputError(
            f"attention_grid: got {len(images)} images, {len(words)} sentences and {len(weights)} weights"
        )
    columns = max(1, min(columns, max(map(len, words))))
    heights = [max(1, -(-len(sentence) // columns)) for sentence in words]  # in rows
    lines = 1 + max(word.count("\n") for sentence in [[""], *words] for word in sentence)
    inches = sum(heights) * (width + 0.3 + 0.15 * (lines - 1))
    figure = new_figure((1 + columns) * width, inches, w_pad=0.04)
    grid = figure.subplots(sum(heights), 1 + columns, squeeze=False)
    for axes in grid.ravel():
        axes.axis("off")
    blocks = np.split(grid, np.cumsum(heights)[:-1])
    for block, image, sentence, attended in zip(blocks, images, words, weights, strict=True):
        attended = _checked_weights(attended, len(sentence))
        height, length = np.shape(image)[:2]
        block[0, 0].imshow(image)
        for axes, word, regions in zip(block[:, 1:].ravel(), sentence, attended, strict=False):
            axes.imshow(image)
            axes.imshow(attention_shade(regions), extent=(0, length, height, 0), interpolation="bilinear")
            axes.set_title(word, color=INK, fontsize=9, pad=2, parse_math=False)
            below = {"transform": axes.transAxes, "ha": "center", "va": "top"}
            axes.text(0.5, -0.03, f"{regions.max():.2f}", color=INK, fontsize=8, **below)
    return figure


def _checked_weights(weights: Array, words: int) -> Array:
    """The weights of a sentence as an array (T, L), after a check."""
    weights = np.asarray(weights)
    L = weights.shape[1] if weights.ndim == 2 else 0
    if not L or len(weights) != words or math.isqrt(L) ** 2 != L:
        raise InputError(
            f"attention_grid: weights have shape {weights.shape}, expected ({words}, L) for {words} words, "
            "L a square number"
        )
    if not np.isfinite(weights).all():
        raise InputError("attention_grid: weights hold NaN or infinity, expected finite numbers")
    return weights


def attention_shade(weights: Array) -> Array:
    """Black to lay over an image, (side, side, 4) uint8, the thinner the greater the weight of a region.

    It is transparent at the largest of the weights (L,), which are those of a square grid, row by row.
    """
    side = math.isqrt(weights.size)
    shares = weights.reshape(side, side) / max(float(weights.max()), 1e-12)
    shade = np.zeros((side, side, 4), np.uint8)
    shade[..., 3] = np.round(255 * _DARKEST * (1 - shares))
    return shade


def _check_images(function: str, images: Sequence[Array]) -> None:
    """Raise ValueError unless there are images, each an array (h, w, 3)."""
    if not len(images):
        raise InputError(f"{function}: images is empty, expected at least one")
    for number, image in enumerate(images):
        if np.ndim(image) != 3 or np.shape(image)[2] != 3:
            found = f"has shape {image.shape}" if hasattr(image, "shape") else f"is {image!r:.60}"
            raise InputError(f"{function}: images[{number}] {found}, expected an array (h, w, 3)")
        image = np.asarray(image)
        most = 255 if image.dtype.kind in "iu" else 1
        if image.size and not (image.min() >= 0 and image.max() <= most):
            raise InputError(
                f"{function}: images[{number}] has {image.dtype} from {image.min()} to {image.max()}, "
                "expected integers from 0 to 255, or numbers from 0 to 1"
            )


def _draw_grid(
    images: Sequence[Array], captions: list[str], colors: list[str], columns: int, width: float
) -> Figure:
    rows = -(-len(images) // columns)
    tallest = max(np.shape(image)[0] / np.shape(image)[1] for image in images)
    lines = max(caption.count("\n") + 1 for caption in captions)
    figure = new_figure(columns * width, rows * (width * min(tallest, 1.5) + 0.16 * lines + 0.12))
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes in grid:
        axes.set(xticks=[], yticks=[], anchor="S")  # next to the caption below
        axes.spines[:].set_visible(False)
    for axes, image, caption, color in zip(grid, images, captions, colors, strict=False):
        axes.imshow(image, interpolation="bilinear")
        axes.set_xlabel(caption, color=color, fontsize=9, labelpad=4, parse_math=False)
    return figure


def _wrap(text: str, width: int) -> str:
    return "\n".join(textwrap.fill(line, width) for line in text.splitlines())
