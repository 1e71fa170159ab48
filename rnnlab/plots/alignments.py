"""The attention of a translation: each word of the target to each word of the source."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from rnnlab.errors import InputError
from rnnlab.plots.figures import GREY, INK, new_figure
from rnnlab.types import Array


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
    figure = new_figure(1.6 + 0.32 * L, 1.4 + 0.32 * T)
    axes = figure.subplots()
    axes.imshow(weights, cmap="Blues", vmin=0, vmax=1)
    # dollar signs in a word do not start mathematics
    axes.set_xticks(range(L), source, rotation=60, ha="left", rotation_mode="anchor", parse_math=False)
    axes.set_yticks(range(T), target, parse_math=False)
    axes.xaxis.tick_top()
    axes.tick_params(length=0, labelcolor=INK, labelsize=9)
    axes.spines[:].set_color(GREY)
    return figure
