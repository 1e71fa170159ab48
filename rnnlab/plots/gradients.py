"""Gradients: their distributions over a training, and their norms over the steps of a sequence."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from rnnlab.errors import InputError
from rnnlab.plots.figures import COLORS, INK, ORANGE, add_legend, label_axes, new_figure
from rnnlab.types import Array


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
    columns = max(1, min(columns, len(norms)))
    rows = -(-len(norms) // columns)
    figure = new_figure(3.6 * columns, 2.4 * rows)
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
        axes.plot(iterations, logarithms, color=ORANGE, linewidth=1.2)
        label_axes(axes, "iteration", "log10 |gradient|")
        axes.label_outer()
        axes.set_title(name, color=INK, fontsize=9, parse_math=False)
    return figure


def gradient_flow(gradients: Mapping[str, Array] | Array, *, title: str | None = None) -> Figure:
    """The norm of the gradient of the loss with respect to the hidden state at each time step.

    The line of a model is the median over its sequences, and the band is their range. The y axis is
    logarithmic. At steps where the gradient of a sequence is zero, as in padding, the sequence is ignored.

    Parameters
    ----------
    gradients : (N, T, H), or mapping of str to such arrays
        The array ``hidden`` that ``loss(..., input_gradients=True)`` returns, of one model, or of several by
        name. N and T may differ.
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
    figure = new_figure(5.2, 3.6)
    axes = figure.subplots()
    for color, (name, gradient) in zip(itertools.cycle(COLORS), models.items(), strict=False):
        low, middle, high = _norms_of_steps(f"gradients[{name!r}]" if name else "gradients", gradient)
        steps = np.arange(1, middle.size + 1)
        axes.fill_between(steps, low, high, color=color, alpha=0.2, linewidth=0)
        axes.plot(steps, middle, color=color, linewidth=1.8, marker="." * (middle.size <= 30), label=name)
    axes.set_yscale("log")
    label_axes(axes, "time step $t$", r"$\Vert\,\partial L \,/\, \partial h_t\,\Vert$")
    if models is gradients:
        for text in add_legend(axes).get_texts():
            text.set_parse_math(False)
    if title:
        figure.suptitle(title, color=INK, fontsize=11)
    return figure


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
