"""Distances between a model's teacher-forced and free-running states (X. Chen et al. 2018).

    d(u, v) = 1 - u . v / (|u| |v|)                          cosine distance, eq. 10
    d_mc    = d(1/N sum_i u_i, 1/N sum_i v_i)                of the mean states, eq. 11
    d_pw    = 1/N sum_i d(u_i, v_i)                          the mean over pairs, eq. 12

u_i is the last state of the i-th sentence under teacher forcing, v_i that of the sentence that the model
generated.
"""

from __future__ import annotations

import numpy as np

from rnnlab.errors import InputError
from rnnlab.types import Array


def mean_centroid_distance(teacher_forced: Array, free_running: Array) -> float:
    """d_mc, the cosine distance between the mean states.

    Parameters
    ----------
    teacher_forced, free_running : (N, H)
        The last states of both modes.

    Returns
    -------
    float
        From 0 (the same direction) to 2.

    Raises
    ------
    ValueError
        If the shapes differ, N is 0, or a mean is zero or not finite.
    """
    function = "mean_centroid_distance"
    states = _checked(function, teacher_forced, free_running)
    centroids = [each.mean(axis=0, keepdims=True) for each in states]
    return float(_cosine_distances(function, *centroids)[0])


def pointwise_distance(teacher_forced: Array, free_running: Array) -> float:
    """d_pw, the mean cosine distance between the two states of each sentence.

    Parameters
    ----------
    teacher_forced, free_running : (N, H)
        The last states of both modes.

    Returns
    -------
    float
        From 0 (the same directions) to 2.

    Raises
    ------
    ValueError
        If the shapes differ, N is 0, or a state is zero or not finite.
    """
    function = "pointwise_distance"
    return float(_cosine_distances(function, *_checked(function, teacher_forced, free_running)).mean())


def _checked(function: str, teacher_forced: Array, free_running: Array) -> tuple[Array, Array]:
    u, v = (np.asarray(states, dtype=np.float64) for states in (teacher_forced, free_running))
    if u.ndim != 2 or u.shape != v.shape or not len(u):
        raise InputError(
            f"{function}: teacher_forced has shape {u.shape} and free_running {v.shape}, "
            "expected both (N, H) with N of at least 1"
        )
    return u, v


def _cosine_distances(function: str, u: Array, v: Array) -> Array:
    """The cosine distance of each row, (N, H) -> (N,)."""
    norms = np.linalg.norm(u, axis=1) * np.linalg.norm(v, axis=1)
    wrong = np.flatnonzero(~((norms > 0) & np.isfinite(norms)))
    if wrong.size:
        raise InputError(f"{function}: the states of row {wrong[0]} have no angle: one is zero or not finite")
    return np.maximum(0, 1 - (u * v).sum(axis=1) / norms)  # rounding may give less than 0
