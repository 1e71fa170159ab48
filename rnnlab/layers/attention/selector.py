"""A selector scales a context by how much of it a step needs (Xu et al. 2015, section 4.2.1).

    beta = sigmoid(h . w + b)                           (N, 1)
    scaled = beta z                                     (N, C)

Backward, with da = (dscaled . z) beta (1 - beta): dz = beta dscaled, dh = da w, dw = h^T da, db = sum da.
"""

from __future__ import annotations

from typing import NamedTuple

from rnnlab.errors import InputError
from rnnlab.layers.checks import check_cache, check_gradient, check_shapes
from rnnlab.ops import ops_for
from rnnlab.types import Array


class SelectorCache(NamedTuple):
    """What the backward of the selector needs."""

    context: Array  # (N, C)
    h: Array  # (N, H)
    w: Array  # (H,)
    beta: Array  # (N, 1)


def selector_forward(context: Array, h: Array, w: Array, b: Array) -> tuple[Array, SelectorCache]:
    """Scale a context by beta = sigmoid(h . w + b) (Xu et al. 2015, section 4.2.1).

    Parameters
    ----------
    context : (N, C)
    h : (N, H)
        The hidden state before the step.
    w : (H,)
    b : (1,)

    Returns
    -------
    scaled : (N, C)
    cache : SelectorCache

    Raises
    ------
    ValueError, TypeError
        If a shape or a dtype is wrong.
    """
    check_shapes("selector_forward", context=(context, "N C"), h=(h, "N H"), w=(w, "H"), b=(b, "I"))
    if b.shape != (1,):
        raise InputError(f"selector_forward: b has shape {b.shape}, expected (1,)")
    beta = selector_gate(h, w, b)
    return context * beta, SelectorCache(context, h, w, beta)


def selector_backward(dscaled: Array, cache: SelectorCache) -> tuple[Array, Array, Array, Array]:
    """Backward of :func:`selector_forward`.

    Parameters
    ----------
    dscaled : (N, C)
        Gradient of the loss with respect to ``scaled``.

    Returns
    -------
    dcontext (N, C), dh (N, H), dw (H,), db (1,)

    Raises
    ------
    ValueError, TypeError
        If ``dscaled`` has a wrong shape or dtype, or the cache is from another function.
    """
    check_cache("selector_backward", cache, SelectorCache)
    context, h, w, beta = cache
    check_gradient("selector_backward", dscaled, context.shape, context.dtype, "dscaled")
    dbeta = selector_gradient(dscaled, context, beta)
    dw = ops_for(h).matmul(h.T, dbeta)[:, 0]
    return dscaled * beta, dbeta * w, dw, dbeta.sum(axis=0)


def selector_gate(h: Array, w: Array, b: Array) -> Array:
    """Beta = sigmoid(h . w + b), (n, H) (H,) (1,) -> (n, 1)."""
    ops = ops_for(h)
    return ops.sigmoid(ops.matmul(h, w[:, None]) + b)


def selector_gradient(dcontext: Array, attended: Array, beta: Array) -> Array:
    """The gradient before the selector's sigmoid, (n, 1)."""
    return (dcontext * attended).sum(axis=1, keepdims=True) * beta * (1 - beta)
