"""Affine maps of vectors, and of each step of a sequence.

Forward and backward:

    out = x w + b              dx = dout w^T        dw = x^T dout        db = sum of the rows of dout
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from rnnlab.errors import InputError
from rnnlab.layers.checks import check_cache, check_shapes, ops_of
from rnnlab.layers.parameters import gradient_arrays
from rnnlab.types import Array


class AffineCache(NamedTuple):
    """Arrays that :func:`affine_backward` needs."""

    x: Array  # (N, d_1, ..., d_k), as given to the forward
    w: Array  # (D, M)
    b: Array  # (M,)


class TemporalAffineCache(NamedTuple):
    """Arrays that :func:`temporal_affine_backward` needs."""

    x: Array  # (N, T, D)
    w: Array  # (D, M)
    b: Array  # (M,)


def affine_forward(x: Array, w: Array, b: Array) -> tuple[Array, AffineCache]:
    """Affine map of each row. All axes of x after the first are flattened to one.

    Parameters
    ----------
    x : (N, d_1, ..., d_k)
        With D = d_1 ... d_k.
    w : (D, M)
    b : (M,)

    Returns
    -------
    out : (N, M)
    cache : AffineCache

    Raises
    ------
    ValueError
        If the shapes do not agree.
    TypeError
        If an array is not float32 or float64, or the dtypes differ.
    """
    ops = ops_of("affine_forward", x=x, w=w, b=b)
    if not x.ndim:
        raise InputError(f"affine_forward: x has shape {x.shape}, expected (N, d_1, ..., d_k)")
    rows = x.reshape(x.shape[0], prod(x.shape[1:]))
    check_shapes("affine_forward", x=(rows, "N D"), w=(w, "D M"), b=(b, "M"))
    return ops.affine(rows, w, b), AffineCache(x, w, b)


def affine_backward(
    dout: Array,
    cache: AffineCache,
    *,
    into: tuple[Array, Array] | None = None,
    input_gradient: bool = True,
) -> tuple[Array, Array, Array]:
    """Backward of :func:`affine_forward`.

    Parameters
    ----------
    dout : (N, M)
    into : (dw, db), optional
        Arrays that the parameter gradients are added to. By default they are new arrays.
    input_gradient : bool
        Whether to compute dx, which is often not needed where x is data.

    Returns
    -------
    dx : (N, d_1, ..., d_k), or None without ``input_gradient``
    dw : (D, M)
    db : (M,)

    Raises
    ------
    ValueError, TypeError
        If dout or ``into`` has a wrong shape or dtype, or the cache is from another function.
    """
    check_cache("affine_backward", cache, AffineCache)
    x, w, b = cache
    ops = ops_of("affine_backward", dout=dout, x=x)
    rows = x.reshape(x.shape[0], w.shape[0])
    check_shapes("affine_backward", x=(rows, "N D"), w=(w, "D M"), dout=(dout, "N M"))
    dw, db = gradient_arrays("affine_backward", {"dw": w, "db": b}, w, into, {"x": x, "dout": dout})
    ops.add_affine_gradients(rows, dout, dw, db)
    return ops.matmul(dout, w.T).reshape(x.shape) if input_gradient else None, dw, db


def temporal_affine_forward(x: Array, w: Array, b: Array) -> tuple[Array, TemporalAffineCache]:
    """Affine map of each step of each sequence.

    Parameters
    ----------
    x : (N, T, D)
    w : (D, M)
    b : (M,)

    Returns
    -------
    out : (N, T, M)
    cache : TemporalAffineCache

    Raises
    ------
    ValueError
        If the shapes do not agree.
    TypeError
        If an array is not float32 or float64, or the dtypes differ.
    """
    ops = ops_of("temporal_affine_forward", x=x, w=w, b=b)
    check_shapes("temporal_affine_forward", x=(x, "N T D"), w=(w, "D M"), b=(b, "M"))
    N, T, D = x.shape
    return ops.affine(x.reshape(N * T, D), w, b).reshape(N, T, w.shape[1]), TemporalAffineCache(x, w, b)


def temporal_affine_backward(
    dout: Array, cache: TemporalAffineCache, *, into: tuple[Array, Array] | None = None
) -> tuple[Array, Array, Array]:
    """Backward of :func:`temporal_affine_forward`.

    Parameters
    ----------
    dout : (N, T, M)
    into : (dw, db), optional
        Arrays that the parameter gradients are added to. By default they are new arrays.

    Returns
    -------
    dx (N, T, D), dw (D, M), db (M,)

    Raises
    ------
    ValueError, TypeError
        If dout or ``into`` has a wrong shape or dtype, or the cache is from another function.
    """
    check_cache("temporal_affine_backward", cache, TemporalAffineCache)
    x, w, b = cache
    ops_of("temporal_affine_backward", dout=dout, x=x)
    check_shapes("temporal_affine_backward", x=(x, "N T D"), w=(w, "D M"), dout=(dout, "N T M"))
    N, T, D = x.shape
    rows = AffineCache(x.reshape(N * T, D), w, b)
    dx, dw, db = affine_backward(dout.reshape(N * T, w.shape[1]), rows, into=into)
    return dx.reshape(N, T, D), dw, db
