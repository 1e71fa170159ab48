"""Softmax cross-entropy over the vocabulary, of rows and of sequences with a mask.

    p = softmax(x)         loss = -log p[y]         dx = p - onehot(y)

With label smoothing (Szegedy et al. 2016) by epsilon the true class is not held to be certain:

    q = (1 - epsilon) onehot(y) + epsilon / V         loss = -q . log p         dx = p - q

A loss over a sequence is the sum over its real steps and the mean over the batch (the choice of cs231n,
which makes long captions count for more), or the mean over all real tokens.
"""

from __future__ import annotations

import numpy as np

from rnnlab.layers.checks import check_probability, check_shapes, check_tokens
from rnnlab.layers.recurrent.packing import as_rows
from rnnlab.ops import ops_for
from rnnlab.types import Array

AVERAGES = ("batch", "token")


def softmax_loss(
    x: Array, y: Array, *, divisor: float | None = None, label_smoothing: float = 0.0
) -> tuple[float, Array]:
    """The loss of rows of scores, and its gradient.

    Parameters
    ----------
    x : (M, V)
        Scores before the softmax.
    y : (M,) integers in [0, V)
        The true class of each row; NumPy's go with an x of any library.
    divisor : float, optional
        What the sum of the rows' losses is divided by, M if left out.
    label_smoothing : float in [0, 1)
        The share of the true class's probability that is spread over all classes.

    Returns
    -------
    loss : float, or an array () of a CuPy x, which nobody has waited for
    dx : (M, V)

    Raises
    ------
    IndexError
        If a class is out of range.
    ValueError, TypeError
        If a shape, a dtype or an option does not fit.
    """
    ops, _ = ops_for(x), ops_for(y)  # of any library, but arrays
    check_probability("softmax_loss", "label_smoothing", label_smoothing)
    M, V = check_shapes("softmax_loss", x=(x, "M V")).values()
    if y.shape != (M,):
        raise ValueError(f"softmax_loss: y has shape {y.shape}, expected (M,) = {(M,)}")
    check_tokens("softmax_loss", "y", y, V)
    divisor = max(M, 1) if divisor is None else divisor
    dx = ops.empty(x.shape, x.dtype)
    losses = ops.softmax_cross_entropy(x, ops.indices(y), 1 / divisor, dx, label_smoothing)
    return losses.sum(dtype="float64") / divisor, dx


def temporal_softmax_loss(
    x: Array,
    y: Array,
    mask: Array,
    verbose: bool = False,
    *,
    average: str = "batch",
    label_smoothing: float = 0.0,
) -> tuple[float, Array]:
    """The loss of a batch of sequences where the mask is true, and its gradient.

    Parameters
    ----------
    x : (N, T, V)
        Scores before the softmax.
    y : (N, T) integers in [0, V)
        The true token at each step.
    mask : (N, T)
        True (or nonzero) where y is a real token; the others count for nothing. Like y it may be NumPy's.
    verbose : bool
        Print the shapes of x and of the gradient, as in the course.
    average : "batch" or "token"
        Divide the sum over all real tokens by N, or by their number.
    label_smoothing : float in [0, 1)
        As of :func:`softmax_loss`.

    Returns
    -------
    loss : float, or an array () of a CuPy x, which nobody has waited for
    dx : (N, T, V)

    Raises
    ------
    IndexError
        If a token is out of range.
    ValueError, TypeError
        If a shape, a dtype or an option does not fit.
    """
    ops, _, _ = ops_for(x), ops_for(y), ops_for(mask)
    check_shapes("temporal_softmax_loss", x=(x, "N T V"))
    N, T, V = x.shape
    for name, array in (("y", y), ("mask", mask)):
        if array.shape != (N, T):
            raise ValueError(
                f"temporal_softmax_loss: {name} has shape {array.shape}, expected (N, T) = {(N, T)}"
            )
    y, mask = (ops_for(array).asnumpy(array).reshape(-1) for array in (y, mask))
    real = np.flatnonzero(mask)
    rows, scores = ops.asarray(real), ops.empty((real.size, V), x.dtype)
    ops.take(as_rows(x), rows, scores)
    divisor = loss_divisor("temporal_softmax_loss", average, N, real.size)
    loss, dscores = softmax_loss(scores, y[real], divisor=divisor, label_smoothing=label_smoothing)
    dx = ops.zeros((N * T, V), x.dtype)
    ops.put(dscores, rows, dx)
    dx = dx.reshape(N, T, V)
    if verbose:
        print(f"x: {x.shape} dx: {dx.shape}")
    return loss, dx


def loss_divisor(function: str, average: str, N: int, tokens: int) -> int:
    """What the summed loss of N sequences with this many real tokens is divided by, at least 1.

    Raises
    ------
    ValueError
        If ``average`` is not one of "batch" and "token".
    """
    if average not in AVERAGES:
        raise ValueError(f"{function}: the average is {average!r}, expected one of {', '.join(AVERAGES)}")
    return max(1, N if average == "batch" else tokens)
