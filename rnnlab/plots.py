"""Pictures: losses, gradients, images with captions, attention over images and sentences, maps of states.

Every function returns a matplotlib Figure on the Agg canvas. A notebook displays it, and :func:`save` writes
it. The functions do not use the state of pyplot, so they work in threads and without a display.
"""

from __future__ import annotations

import itertools
import math
import os
import textwrap
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.legend import Legend
from matplotlib.ticker import MaxNLocator

from rnnlab.errors import InputError, NotInstalledError
from rnnlab.types import Array

_LABELS = {
    "val_perplexity": "validation perplexity",
    "val_accuracy": "validation accuracy",
}
_BLUE, _ORANGE, _GREY, _INK = "#2a6f97", "#d1603d", "#9aa5ad", "#2b2d33"
_BINS = 1000  # bins of a long line, more than a picture has columns of pixels
_COLORS = (_BLUE, _ORANGE, "#5b8c5a", "#8a5a9e", "#b08d3c")  # for several models


def loss_curve(
    losses: Sequence[float],
    history: Sequence[Mapping[str, float]] = (),
    *,
    metric: str = "val_loss",
    best: int | None = None,
    title: str | None = None,
) -> Figure:
    """The training loss of every iteration and the validation loss of every epoch, on one pair of axes.

    For self-critical training, the mean rewards of each epoch are drawn instead of the loss.

    Parameters
    ----------
    losses : sequence of float
        The training loss of each iteration, drawn as it is (light) and smoothed.
    history : sequence of mappings, optional
        One row for each finished epoch, as :attr:`rnnlab.training.Solver.history` has them. With it both
        losses are in nats per token: the loss of an iteration, which may be a mean over examples, is divided
        by the tokens that an example has on average in that epoch. Without it the x axis counts iterations.
    metric : str
        The name of the monitored metric. One other than "val_loss" is drawn in a second panel.
    best : int, optional
        The epoch to mark.
    title : str, optional
    """
    values = {int(row["epoch"]): row[metric] for row in history if metric in row}
    is_rewarded = bool(history) and all("reward" in row for row in history)
    panels = 2 if values and (metric != "val_loss" or is_rewarded) else 1
    figure = _figure(5.2 * panels, 3.6)
    axes = figure.subplots(1, panels, squeeze=False)[0]
    if is_rewarded:
        _draw_rewards(axes[0], history)
    elif history:
        _draw_per_token(axes[0], np.asarray(losses, dtype=float), history)
    else:
        _draw_losses(axes[0], np.arange(1, len(losses) + 1), np.asarray(losses, dtype=float))
        _label(axes[0], "iteration", "training loss (nats)")
    if panels == 2:
        _draw_metric(axes[1], values)
        _label(axes[1], "epoch", _LABELS.get(metric, metric))
    if best in values:
        _mark(axes[-1], best, values[best])
    if title:
        figure.suptitle(title, color=_INK, fontsize=11)
    return figure


def gradient_statistics(
    iterations: Sequence[int],
    norms: Mapping[str, Sequence[float]],
    histograms: Mapping[str, Sequence[Array]],
    edges: Array,
    *,
    columns: int = 3,
) -> Figure:
    """The distribution of the gradient of each parameter over the iterations, and its norm as a line.

    The y axis is the decimal logarithm of absolute values. A darker cell has a larger share of the elements;
    the lowest row includes the elements that are zero.

    Parameters
    ----------
    iterations : sequence of K int
        In increasing order.
    norms : mapping of str to sequence of K float
        The norms by parameter.
    histograms : mapping of str to sequence of K (B,) arrays
        The number of elements in each bin, by parameter.
    edges : (B + 1,)
        The edges of the bins, as decimal logarithms.
    columns : int
        The number of panels in a row.

    Raises
    ------
    ValueError
        If there are no iterations, or the parameters or the numbers of records differ.
    """
    records = [len(rows) for each in (norms, histograms) for rows in each.values()]
    if not iterations or not norms or set(norms) != set(histograms) or {*records} != {len(iterations)}:
        raise InputError(
            f"gradient_statistics: got {len(iterations)} iterations, norms of {list(norms)} and histograms "
            f"of {list(histograms)} with {sorted({*records})} records, expected one of each parameter for "
            "each iteration"
        )
    columns = min(columns, len(norms))
    rows = -(-len(norms) // columns)
    figure = _figure(3.6 * columns, 2.4 * rows)
    panels = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).ravel()
    for axes in panels[len(norms) :]:
        axes.set_visible(False)
    # a record is drawn from its iteration to the next one
    last = iterations[-1] + (iterations[-1] - iterations[-2] if len(iterations) > 1 else 1)
    for axes, (name, norm) in zip(panels, norms.items(), strict=False):
        counts = np.asarray(histograms[name], dtype=float).T
        shares = counts / np.maximum(counts.sum(axis=0), 1)
        axes.pcolormesh([*iterations, last], edges, shares, cmap="Blues", vmin=0, rasterized=True)
        logarithms = [math.log10(value) if value > 0 else math.nan for value in norm]
        axes.plot(iterations, logarithms, color=_ORANGE, linewidth=1.2)
        _label(axes, "iteration", "log10 |gradient|")
        axes.label_outer()
        axes.set_title(name, color=_INK, fontsize=9, parse_math=False)
    return figure


def gradient_flow(gradients: Mapping[str, Array] | Array, *, title: str | None = None) -> Figure:
    """The norm of the gradient of the loss with respect to the hidden state at each time step.

    The line of a model is the median over its sequences, and the band is their range. The y axis is
    logarithmic. At steps where the gradient of a sequence is zero, as in padding, the sequence is ignored.

    Parameters
    ----------
    gradients : (N, T, H), or mapping of str to such arrays
        The array ``hidden`` that ``loss(..., inputs=True)`` returns, of one model, or of several by name. N
        and T may differ.
    title : str, optional

    Raises
    ------
    ValueError
        If there is no model, an array has another number of axes, or its numbers are all zero or not all
        finite.
    """
    models = gradients if isinstance(gradients, Mapping) else {"": gradients}
    if not models:
        raise InputError("gradient_flow: gradients is empty, expected at least one model")
    figure = _figure(5.2, 3.6)
    axes = figure.subplots()
    for color, (name, gradient) in zip(itertools.cycle(_COLORS), models.items(), strict=False):
        low, middle, high = _norms_of_steps(f"gradients[{name!r}]" if name else "gradients", gradient)
        steps = np.arange(1, middle.size + 1)
        axes.fill_between(steps, low, high, color=color, alpha=0.2, linewidth=0)
        axes.plot(steps, middle, color=color, linewidth=1.8, marker="." * (middle.size <= 30), label=name)
    axes.set_yscale("log")
    _label(axes, "time step $t$", r"$\Vert\,\partial L \,/\, \partial h_t\,\Vert$")
    if models is gradients:
        for text in _legend(axes).get_texts():
            text.set_parse_math(False)
    if title:
        figure.suptitle(title, color=_INK, fontsize=11)
    return figure


def losses_per_token(losses: Array, history: Sequence[Mapping[str, float]]) -> tuple[Array, Array]:
    """The loss of each iteration in the unit of the validation loss, and its position on an axis of epochs.

    The loss of an iteration may be a mean over examples. It is divided by the number of tokens that an
    example has on average in that epoch.

    Parameters
    ----------
    losses : (iterations,)
    history : sequence of mappings
        One row for each finished epoch, at least one.

    Returns
    -------
    places, losses : (iterations,)
        The first epoch extends from 0 to 1. For the unfinished epoch, the length and the number of tokens of
        the last finished one are assumed.
    """
    ends = [0, *(int(row["iteration"]) for row in history)]
    scales = np.array([row["train_loss_per_token"] / (row["train_loss"] or 1.0) for row in history])
    epochs = np.array([int(row["epoch"]) for row in history])
    iterations = np.arange(1, len(losses) + 1)
    index = np.minimum(np.searchsorted(ends[1:], iterations), len(history) - 1)
    lengths = np.diff(ends)
    places = epochs[index] - 1 + (iterations - np.array(ends)[index]) / lengths[index]
    return places, losses * scales[index]


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
        colors = [colors or _INK] * len(images)
    if len(colors) != len(images):
        raise InputError(f"caption_grid: got {len(colors)} colors for {len(images)} images")
    columns = min(columns, len(images))
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

    A caption with more words than ``columns`` continues in the next row, below its first word.

    Parameters
    ----------
    images : sequence of (h, w, 3) uint8 arrays
        Of any sizes.
    words : sequence of sequences of str
        The sentence of each image.
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
        fewer words than weights, or the grid is not square.
    """
    _check_images("attention_grid", images)
    if not len(images) == len(words) == len(weights):
        raise InputError(
            f"attention_grid: got {len(images)} images, {len(words)} sentences and {len(weights)} weights"
        )
    columns = max(1, min(columns, max(map(len, words))))
    heights = [max(1, -(-len(sentence) // columns)) for sentence in words]  # in rows
    figure = _figure((1 + columns) * width, sum(heights) * (width + 0.3))
    grid = figure.subplots(sum(heights), 1 + columns, squeeze=False)
    for axes in grid.ravel():
        axes.axis("off")
    blocks = np.split(grid, np.cumsum(heights)[:-1])
    for block, image, sentence, attended in zip(blocks, images, words, weights, strict=True):
        side = math.isqrt(attended.shape[1])
        if attended.shape != (len(sentence), side * side):
            raise InputError(
                f"attention_grid: weights have shape {attended.shape}, expected ({len(sentence)}, L) for "
                f"{len(sentence)} words, L a square number"
            )
        height, length = np.shape(image)[:2]
        block[0, 0].imshow(image)
        for axes, word, regions in zip(block[:, 1:].ravel(), sentence, attended, strict=False):
            axes.imshow(image, alpha=0.45)
            seen = regions.reshape(side, side) / max(float(regions.max()), 1e-12)
            axes.imshow(
                seen, cmap="magma", alpha=0.6, vmin=0, vmax=1, extent=(0, length, height, 0),
                interpolation="bilinear",
            )  # fmt: skip
            axes.set_title(word, color=_INK, fontsize=8, pad=2)
    return figure


def alignment_matrix(weights: Array, source: Sequence[str], target: Sequence[str]) -> Figure:
    """The attention of each word of a target sentence to each word of its source. Darker means more.

    Parameters
    ----------
    weights : (T, L)
    source : sequence of L str
    target : sequence of T str

    Raises
    ------
    ValueError
        If the weights have another shape, or a sentence has no words.
    """
    weights = np.asarray(weights, dtype=float)
    T, L = len(target), len(source)
    if weights.shape != (T, L) or not weights.size:
        raise InputError(
            f"alignment_matrix: weights has shape {weights.shape}, expected ({T}, {L}): the number of words "
            "of the target and of the source, at least 1 of each"
        )
    figure = _figure(1.6 + 0.32 * L, 1.4 + 0.32 * T)
    axes = figure.subplots()
    axes.imshow(weights, cmap="Blues", vmin=0, vmax=1)
    # dollar signs in a word do not start mathematics
    axes.set_xticks(range(L), source, rotation=60, ha="left", rotation_mode="anchor", parse_math=False)
    axes.set_yticks(range(T), target, parse_math=False)
    axes.xaxis.tick_top()
    axes.tick_params(length=0, labelcolor=_INK, labelsize=9)
    axes.spines[:].set_color(_GREY)
    return figure


def state_map(teacher_forced: Array, free_running: Array, *, seed: int = 0) -> Figure:
    """Hidden states in the plane by t-SNE (X. Chen et al. 2018, figure 4). Similar states are close together.

    Parameters
    ----------
    teacher_forced, free_running : (N, H)
        Drawn as filled and as open circles.
    seed : int
        The seed of t-SNE.

    Raises
    ------
    ImportError
        If the extra ``sklearn`` is not installed.
    ValueError
        If the shapes differ, or there are fewer than two states of each kind.
    """
    teacher_forced = np.asarray(teacher_forced, dtype=float)
    free_running = np.asarray(free_running, dtype=float)
    N = len(teacher_forced)
    if teacher_forced.ndim != 2 or teacher_forced.shape != free_running.shape or N < 2:
        raise InputError(
            f"state_map: teacher_forced has shape {teacher_forced.shape} and free_running "
            f"{free_running.shape}, expected both (N, H) with N of at least 2"
        )
    require_tsne()
    from sklearn.manifold import TSNE

    tsne = TSNE(perplexity=min(30.0, (2 * N - 1) / 3), random_state=seed)
    places = tsne.fit_transform(np.concatenate([teacher_forced, free_running]))
    figure = _figure(5.2, 4.4)
    axes = figure.subplots()
    x, y = places.T
    axes.scatter(x[:N], y[:N], s=28, color=_BLUE, label="teacher forcing")
    axes.scatter(x[N:], y[N:], s=28, facecolors="none", edgecolors=_ORANGE, label="free running")
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_color(_GREY)
    _legend(axes)
    return figure


def require_tsne() -> None:
    """Check that t-SNE is installed.

    Raises
    ------
    ImportError
        If it is not. The message says how to install it.
    """
    if find_spec("sklearn") is None:
        raise NotInstalledError('a map of states needs scikit-learn: pip install "rnnlab[sklearn]"')


def save(figure: Figure, path: str | os.PathLike[str], dpi: int = 120) -> None:
    """Write a figure as PNG."""
    figure.savefig(path, format="png", dpi=dpi)


def _check_images(function: str, images: Sequence[Array]) -> None:
    """Raise ValueError unless there are images, each an array (h, w, 3)."""
    if not len(images):
        raise InputError(f"{function}: images is empty, expected at least one")
    for number, image in enumerate(images):
        if np.ndim(image) != 3 or np.shape(image)[2] != 3:
            found = f"has shape {image.shape}" if hasattr(image, "shape") else f"is {image!r:.60}"
            raise InputError(f"{function}: images[{number}] {found}, expected an array (h, w, 3)")


def _draw_per_token(axes: Axes, losses: Array, history: Sequence[Mapping[str, float]]) -> None:
    """Training and validation losses in nats per token over epochs."""
    _draw_losses(axes, *losses_per_token(losses, history), label="training")
    validation = {int(row["epoch"]): row["val_loss"] for row in history if "val_loss" in row}
    if validation:
        _draw_metric(axes, validation, label="validation")
        _legend(axes, "upper right")
    _label(axes, "epoch", "loss (nats per token)")


def _draw_rewards(axes: Axes, history: Sequence[Mapping[str, float]]) -> None:
    """The mean rewards of samples and of their baseline, if that is different."""
    for column, label, color in (("reward", "samples", _BLUE), ("baseline_reward", "baseline", _GREY)):
        rewards = {int(row["epoch"]): row.get(column, math.nan) for row in history}
        if column == "reward" or not np.allclose(list(rewards.values()), [row["reward"] for row in history]):
            axes.plot(
                list(rewards), list(rewards.values()), color=color, linewidth=1.8, marker=".", label=label
            )
    _legend(axes, "lower right")
    _label(axes, "epoch", "reward of sampled sentences")


def _draw_losses(axes: Axes, places: Array, losses: Array, label: str | None = None) -> None:
    few = losses.size <= 30
    if few:
        axes.plot(places, losses, color=_BLUE, linewidth=0.8, marker=".", label=label)
    else:
        some = np.linspace(0, losses.size - 1, min(losses.size, 2 * _BINS)).round().astype(int)
        axes.plot(*_extremes(places, losses), color=_BLUE, linewidth=0.8, alpha=0.3)
        axes.plot(places[some], _smooth(losses)[some], color=_BLUE, linewidth=1.8, label=label)


def _extremes(places: Array, values: Array) -> tuple[Array, Array]:
    """The minimum and the maximum of every few neighbours, which draw the same line with fewer points."""
    if values.size <= 2 * _BINS:
        return places, values
    first = np.arange(_BINS) * values.size // _BINS
    least, largest = np.minimum.reduceat(values, first), np.maximum.reduceat(values, first)
    return np.repeat(places[first], 2), np.stack([least, largest], axis=1).ravel()


def _draw_metric(axes: Axes, values: Mapping[int, float], label: str | None = None) -> None:
    axes.plot(
        list(values),
        list(values.values()),
        color=_ORANGE,
        linewidth=1.8,
        marker="o",
        markersize=4,
        label=label,
    )


def _mark(axes: Axes, epoch: int, value: float) -> None:
    """Mark the best epoch."""
    axes.plot([epoch], [value], "o", color=_ORANGE, markersize=10, fillstyle="none")
    axes.annotate(
        f"best {value:.4g}",
        (epoch, value),
        xytext=(0, 11),
        textcoords="offset points",
        ha="center",
        color=_INK,
        fontsize=9,
    )
    axes.margins(y=0.15)


def _smooth(values: Array) -> Array:
    """Moving averages over up to 1/40 of all values on both sides, fewer towards the ends."""
    to_end = np.minimum(np.arange(values.size), np.arange(values.size)[::-1])
    reach = np.minimum(to_end, max(2, values.size // 40))
    total = np.concatenate([[0.0], np.cumsum(values)])
    first, last = np.arange(values.size) - reach, np.arange(values.size) + reach + 1
    return (total[last] - total[first]) / (last - first)


def _norms_of_steps(name: str, gradient: Array) -> Array:
    """The minimum, the median and the maximum norm at each step, (N, T, H) to (3, T); NaN if all are zero."""
    gradient = np.asarray(gradient, dtype=float)  # squares of small numbers underflow in float32
    if gradient.ndim != 3:
        raise InputError(f"gradient_flow: {name} has shape {gradient.shape}, expected (N, T, H)")
    norms = np.linalg.norm(gradient, axis=2)
    if not norms.any() or not np.isfinite(norms).all():
        wrong = "numbers that are not finite" if norms.any() else "no numbers but zero"
        raise InputError(f"gradient_flow: {name} has {wrong}, expected finite gradients, not all zero")
    found = np.full((3, norms.shape[1]), np.nan)
    for t in np.flatnonzero(norms.any(axis=0)):
        real = norms[norms[:, t] > 0, t]
        found[:, t] = real.min(), np.median(real), real.max()
    return found


def _legend(axes: Axes, place: Literal["best", "upper right", "lower right"] = "best") -> Legend:
    # for large data matplotlib warns about its default place, but not about an explicit "best"
    return axes.legend(loc=place, frameon=False, labelcolor=_INK, fontsize=9)


def _label(axes: Axes, x: str, y: str) -> None:
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6, min_n_ticks=1))
    axes.grid(color=_GREY, alpha=0.3, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(_GREY)
    axes.tick_params(color=_GREY, labelcolor=_INK, labelsize=9)


def _draw_grid(
    images: Sequence[Array], captions: list[str], colors: list[str], columns: int, width: float
) -> Figure:
    rows = -(-len(images) // columns)
    tallest = max(np.shape(image)[0] / np.shape(image)[1] for image in images)
    lines = max(caption.count("\n") + 1 for caption in captions)
    figure = _figure(columns * width, rows * (width * min(tallest, 1.5) + 0.16 * lines + 0.12))
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes in grid:
        axes.set(xticks=[], yticks=[], anchor="S")  # next to the caption below
        axes.spines[:].set_visible(False)
    for axes, image, caption, color in zip(grid, images, captions, colors, strict=False):
        axes.imshow(image, interpolation="bilinear")
        axes.set_xlabel(caption, color=color, fontsize=9, labelpad=4)
    return figure


def _wrap(text: str, width: int) -> str:
    return "\n".join(textwrap.fill(line, width) for line in text.splitlines())


def _figure(width: float, height: float) -> Figure:
    figure = Figure(
        figsize=(width, height), layout=ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.08), facecolor="white"
    )
    FigureCanvasAgg(figure)
    return figure
