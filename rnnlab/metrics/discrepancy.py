"""The distance of teacher-forced and free-running states (X. Chen et al. 2018).

    d(u, v) = 1 - u . v / (|u| |v|)                          cosine distance, eq. 10
    d_mc    = d(1/N sum_i u_i, 1/N sum_i v_i)                of the mean states, eq. 11
    d_pw    = 1/N sum_i d(u_i, v_i)                          the mean over pairs, eq. 12

u_i is the last state when the model reads the i-th sentence of the data, v_i when it reads its own sentence.
"""

from __future__ import annotations

import numpy as np

from rnnlab.types import Array


def mean_centroid_distance(teacher_forced: Array, free_running: Array) -> float:
    """d_mc, the cosine distance between the mean states.

    Parameters
    ----------
    teacher_forced, free_running : (N, H)
        The last states under teacher forcing, and those after the model's own sentences.

    Returns
    -------
    float
        From 0 (the same direction) to 2.

    Raises
    ------
    ValueError
        If the shapes differ, there is no state, or a mean has no direction: it is zero or not finite.
    """
    function = "mean_centroid_distance"
    centroids = [
        states.mean(axis=0, keepdims=True) for states in _checked(function, teacher_forced, free_running)
    ]
    return float(_cosine_distances(function, *centroids)[0])


def pointwise_distance(teacher_forced: Array, free_running: Array) -> float:
    """d_pw, the mean cosine distance between the two states of each sentence.

    Parameters
    ----------
    teacher_forced, free_running : (N, H)
        The last states under teacher forcing, and those after the model's own sentences.

    Returns
    -------
    float
        From 0 (the same directions) to 2.

    Raises
    ------
    ValueError
        If the shapes differ, there is no state, or one has no direction: it is zero or not finite.
    """
    return float(
        _cosine_distances(
            "pointwise_distance", *_checked("pointwise_distance", teacher_forced, free_running)
        ).mean()
    )


def _checked(function: str, teacher_forced: Array, free_running: Array) -> tuple[Array, Array]:
    teacher_forced, free_running = (
        np.asarray(teacher_forced, dtype=np.float64),
        np.asarray(free_running, dtype=np.float64),
    )
    if teacher_forced.ndim != 2 or teacher_forced.shape != free_running.shape or not len(teacher_forced):
        raise ValueError(
            f"{function}: teacher_forced has shape {teacher_forced.shape} and free_running "
            f"{free_running.shape}, expected both (N, H) with N of at least 1"
        )
    return teacher_forced, free_running


def _cosine_distances(function: str, u: Array, v: Array) -> Array:
    """Of each row, (N, H) -> (N,)."""
    norms = np.linalg.norm(u, axis=1) * np.linalg.norm(v, axis=1)
    wrong = np.flatnonzero(~((norms > 0) & np.isfinite(norms)))
    if wrong.size:
        raise ValueError(f"{function}: the states of row {wrong[0]} have no angle: one is zero or not finite")
    return 1 - (u * v).sum(axis=1) / norms
