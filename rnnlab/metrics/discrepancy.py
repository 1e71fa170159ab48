"""How far a model's states under teacher forcing are from those when it runs free (X. Chen et al. 2018).

    d(u, v) = 1 - u . v / (|u| |v|)                          cosine distance, eq. 10
    d_mc    = d(1/N sum_i u_i, 1/N sum_i v_i)                of the mean states, eq. 11
    d_pw    = 1/N sum_i d(u_i, v_i)                          the mean over pairs, eq. 12

u_i and v_i are the last states of the i-th sentence as it was given and as the model wrote it.
"""

from __future__ import annotations

import numpy as np

from rnnlab.types import Array


def mean_centroid_distance(taught: Array, free: Array) -> float:
    """d_mc, the cosine distance between the mean states.

    Parameters
    ----------
    taught, free : (N, H)
        The last states under teacher forcing, and those of the model running free.

    Returns
    -------
    float
        From 0, of the same direction, to 2.

    Raises
    ------
    ValueError
        If the shapes differ, there is no state, or a mean has no direction: it is zero or not finite.
    """
    function = "mean_centroid_distance"
    centroids = [states.mean(axis=0, keepdims=True) for states in _checked(function, taught, free)]
    return float(_cosine_distances(function, *centroids)[0])


def pointwise_distance(taught: Array, free: Array) -> float:
    """d_pw, the mean cosine distance between the two states of each sentence.

    Parameters
    ----------
    taught, free : (N, H)
        The last states under teacher forcing, and those of the model running free.

    Returns
    -------
    float
        From 0, of the same directions, to 2.

    Raises
    ------
    ValueError
        If the shapes differ, there is no state, or one has no direction: it is zero or not finite.
    """
    return float(
        _cosine_distances("pointwise_distance", *_checked("pointwise_distance", taught, free)).mean()
    )


def _checked(function: str, taught: Array, free: Array) -> tuple[Array, Array]:
    taught, free = np.asarray(taught, dtype=np.float64), np.asarray(free, dtype=np.float64)
    if taught.ndim != 2 or taught.shape != free.shape or not len(taught):
        raise ValueError(
            f"{function}: taught has shape {taught.shape} and free {free.shape}, "
            "expected both (N, H) with N of at least 1"
        )
    return taught, free


def _cosine_distances(function: str, u: Array, v: Array) -> Array:
    """Of each row, (N, H) -> (N,)."""
    norms = np.linalg.norm(u, axis=1) * np.linalg.norm(v, axis=1)
    wrong = np.flatnonzero(~((norms > 0) & np.isfinite(norms)))
    if wrong.size:
        raise ValueError(f"{function}: the states of row {wrong[0]} have no angle: one is zero or not finite")
    return 1 - (u * v).sum(axis=1) / norms
