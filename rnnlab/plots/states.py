"""Maps of hidden states in the plane."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from rnnlab.errors import InputError
from rnnlab.extras import Library
from rnnlab.plots.figures import BLUE, GREY, ORANGE, add_legend, new_figure
from rnnlab.types import Array

SCIKIT_LEARN = Library("sklearn", "sklearn", "a map of states", "scikit-learn")


def state_map(teacher_forced: Array, free_running: Array, *, seed: int = 0) -> Figure:
    """Hidden states in the plane by t-SNE (X. Chen et al. 2018, figure 4). Similar states are close together.

    Parameters
    ----------
    teacher_forced, free_running : (N, H)
        Drawn as filled and as open circles. N and H are at least 2.
    seed : int
        The seed of t-SNE.

    Raises
    ------
    ImportError
        If the extra ``sklearn`` is not installed.
    ValueError
        If the shapes differ, there are fewer than two states of each kind or two units, a number is not
        finite, or all states are equal.
    """
    teacher_forced = np.asarray(teacher_forced, dtype=float)
    free_running = np.asarray(free_running, dtype=float)
    shape = teacher_forced.shape
    if len(shape) != 2 or shape != free_running.shape or min(shape) < 2:
        raise InputError(
            f"state_map: teacher_forced has shape {shape} and free_running {free_running.shape}, expected "
            "both (N, H) with N and H of at least 2"
        )
    states, N = np.concatenate([teacher_forced, free_running]), len(teacher_forced)
    if not np.isfinite(states).all():
        raise InputError("state_map: the states hold NaN or infinity, expected finite numbers")
    if not np.ptp(states, axis=0).any():  # t-SNE would end the process
        raise InputError(f"state_map: all {2 * N} states are equal, expected states that differ")
    TSNE = SCIKIT_LEARN.module("manifold").TSNE

    tsne = TSNE(perplexity=min(30.0, (2 * N - 1) / 3), random_state=seed)
    places = tsne.fit_transform(states)
    figure = new_figure(5.2, 4.4)
    axes = figure.subplots()
    x, y = places.T
    axes.scatter(x[:N], y[:N], s=28, color=BLUE, label="teacher forcing")
    axes.scatter(x[N:], y[N:], s=28, facecolors="none", edgecolors=ORANGE, label="free running")
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_color(GREY)
    add_legend(axes)
    return figure
