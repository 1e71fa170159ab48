"""Sequences in reverse order, for layers that read them from end to start.

    y_t = x_{n+1-t} for t <= n,   y_t = x_t for t > n          n real steps

Padding stays in its place. The function is its own inverse, and its own backward.
"""

from __future__ import annotations

import numpy as np

from rnnlab.layers.checks import check_shapes, ops_of
from rnnlab.layers.recurrent.packing import as_rows, real_lengths
from rnnlab.ops import ops_for
from rnnlab.types import Array


def reversed_in_time(x: Array, lengths: Array | None = None, *, mask: Array | None = None) -> Array:
    """Each sequence with its real steps in reverse order.

    Parameters
    ----------
    x : (N, T, D)
        Inputs, hidden states or gradients.
    lengths : (N,) integers in [0, T], optional
        The real steps of each sequence, all T if neither this nor ``mask`` is given.
    mask : (N, T), optional
        Instead of ``lengths``: ones for the real steps of each sequence, then zeros.

    Returns
    -------
    y : (N, T, D)
        A new array. Padding has the values of ``x``.

    Raises
    ------
    ValueError, TypeError
        If a shape, a length or a dtype is wrong.
    """
    function = "reversed_in_time"
    ops_of(function, x=x)
    check_shapes(function, x=(x, "N T D"))
    N, T, _ = x.shape
    return reordered(x, reversed_rows(real_lengths(function, N, T, lengths, mask), T))


def reversed_rows(lengths: np.ndarray, T: int) -> np.ndarray:
    """The row of x.reshape(N * T, D) that each row of the result is copied from, (N T,)."""
    steps, ends = np.arange(T), np.reshape(lengths, (-1, 1))
    rows = np.where(steps < ends, ends - 1 - steps, steps) + T * np.arange(len(ends))[:, None]
    return rows.reshape(-1)


def reordered(x: Array, rows: Array) -> Array:
    """The rows of x (N, T, D) in another order, as :func:`reversed_rows` returns it."""
    ops = ops_for(x)
    out = ops.empty((x.shape[0] * x.shape[1], x.shape[2]), x.dtype)
    ops.take(as_rows(x), ops.indices(rows), out)
    return out.reshape(x.shape)
