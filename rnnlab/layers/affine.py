"""Affine maps, of vectors and of every step of a sequence.

y = x w + b                dx = dy w^T        dw = x^T dy        db = sum over rows of dy
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from rnnlab.layers.checks import check_shapes, gradient_room
from rnnlab.ops import ops_for
from rnnlab.types import Array


class AffineCache(NamedTuple):
    """What the backward needs."""

    x: Array  # (N, d_1, ..., d_k) as it came
    w: Array  # (D, M)
    b: Array  # (M,)


def affine_forward(x: Array, w: Array, b: Array) -> tuple[Array, AffineCache]:
    """An affine map of each row, whose axes after the first are flattened.

    Parameters
    ----------
    x : (N, d_1, ..., d_k)
        D = d_1 ... d_k numbers a row.
    w : (D, M)
    b : (M,)

    Returns
    -------
    out : (N, M)
    cache : AffineCache

    Raises
    ------
    ValueError, TypeError
        If a shape or a dtype does not fit.
    """
    ops = ops_for(x, w, b)
    rows = x.reshape(x.shape[0], prod(x.shape[1:]))
    check_shapes("affine_forward", x=(rows, "N D"), w=(w, "D M"), b=(b, "M"))
    return ops.affine(rows, w, b), AffineCache(x, w, b)


def affine_backward(
    dout: Array, cache: AffineCache, *, into: tuple[Array, Array] | None = None
) -> tuple[Array, Array, Array]:
    """Backward of :func:`affine_forward`.

    Parameters
    ----------
    dout : (N, M)
    into : (dw, db), optional
        Arrays that the parameters' gradients are added into, instead of fresh ones.

    Returns
    -------
    dx (N, d_1, ..., d_k), dw (D, M), db (M,)
    """
    x, w, _ = cache
    ops = ops_for(dout, x)
    rows = x.reshape(x.shape[0], w.shape[0])
    check_shapes("affine_backward", x=(rows, "N D"), w=(w, "D M"), dout=(dout, "N M"))
    dw, db = gradient_room("affine_backward", {"dw": w.shape, "db": w.shape[1:]}, w, into)
    ops.matmul_add(rows.T, dout, dw)
    ops.add_column_sums(dout, db)
    return ops.matmul(dout, w.T).reshape(x.shape), dw, db


def temporal_affine_forward(x: Array, w: Array, b: Array) -> tuple[Array, AffineCache]:
    """The same affine map at every step.

    Parameters
    ----------
    x : (N, T, D)
    w : (D, M)
    b : (M,)

    Returns
    -------
    out : (N, T, M)
    cache : AffineCache

    Raises
    ------
    ValueError, TypeError
        If a shape or a dtype does not fit.
    """
    ops = ops_for(x, w, b)
    check_shapes("temporal_affine_forward", x=(x, "N T D"), w=(w, "D M"), b=(b, "M"))
    N, T, D = x.shape
    return ops.affine(x.reshape(N * T, D), w, b).reshape(N, T, w.shape[1]), AffineCache(x, w, b)


def temporal_affine_backward(dout: Array, cache: AffineCache) -> tuple[Array, Array, Array]:
    """Backward of :func:`temporal_affine_forward`.

    Parameters
    ----------
    dout : (N, T, M)

    Returns
    -------
    dx (N, T, D), dw (D, M), db (M,)
    """
    x, w, b = cache
    check_shapes("temporal_affine_backward", x=(x, "N T D"), w=(w, "D M"), dout=(dout, "N T M"))
    N, T, D = x.shape
    dx, dw, db = affine_backward(dout.reshape(N * T, w.shape[1]), AffineCache(x.reshape(N * T, D), w, b))
    return dx.reshape(N, T, D), dw, db
