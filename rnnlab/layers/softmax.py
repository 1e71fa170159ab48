"""Softmax cross-entropy over a vocabulary, for rows of scores and for masked sequences.

    p = softmax(x)         loss = -log p[y]         dx = p - onehot(y)

Label smoothing by epsilon (Szegedy et al. 2016, section 7) replaces the one-hot target by q:

    q = (1 - epsilon) onehot(y) + epsilon / V         loss = -q . log p         dx = p - q

The loss of a batch of sequences is the sum over all real steps, divided by the number of sequences (as in
cs231n; long captions then weigh more) or by the number of real tokens.
"""

from __future__ import annotations

from typing import get_args

import numpy as np

from rnnlab.errors import InputError
from rnnlab.layers.checks import as_mask, as_tokens, check_shapes, ops_of
from rnnlab.layers.recurrent.packing import as_rows
from rnnlab.ops import ops_for
from rnnlab.options import LossAverage, Positive, Probability, check_option
from rnnlab.types import Array

LOSS_AVERAGES = get_args(LossAverage)


def softmax_loss(
    x: Array, y: Array, *, divisor: float | None = None, label_smoothing: float = 0.0
) -> tuple[float, Array]:
    """Cross-entropy loss of rows of scores, and its gradient.

    Parameters
    ----------
    x : (M, V)
        Scores before the softmax.
    y : (M,) integers in [0, V)
        The true class of each row. It may be a NumPy array even if x is on a GPU.
    divisor : float > 0, optional
        The sum over the rows is divided by it; M by default.
    label_smoothing : float in [0, 1)
        The probability that is spread evenly over all classes.

    Returns
    -------
    loss : float
        For a CuPy array x, an array () on the device; reading it waits for the device.
    dx : (M, V)

    Raises
    ------
    IndexError
        If a class is out of range.
    ValueError
        If the shape of y, the divisor or the label smoothing is wrong.
    TypeError
        If x is not float32 or float64, or y does not hold integers.
    """
    ops, _ = ops_of("softmax_loss", x=x), ops_of("softmax_loss", y=y)
    check_option("softmax_loss", "label_smoothing", Probability, label_smoothing)
    M, V = check_shapes("softmax_loss", x=(x, "M V")).values()
    if y.shape != (M,):
        raise InputError(f"softmax_loss: y has shape {y.shape}, expected (M,) = {(M,)}")
    y = as_tokens("softmax_loss", "y", y, V, of="classes")
    if divisor is None:
        divisor = max(M, 1)
    else:
        check_option("softmax_loss", "divisor", Positive, divisor)
    dx = ops.empty(x.shape, x.dtype)
    losses = ops.softmax_cross_entropy(x, ops.indices(y), 1 / divisor, dx, label_smoothing)
    return losses.sum(dtype="float64") / divisor, dx


def temporal_softmax_loss(
    x: Array,
    y: Array,
    mask: Array,
    verbose: bool = False,
    *,
    average: LossAverage = "batch",
    label_smoothing: float = 0.0,
) -> tuple[float, Array]:
    """Cross-entropy loss of a batch of sequences over the steps where the mask is true, and its gradient.

    Parameters
    ----------
    x : (N, T, V)
        Scores before the softmax.
    y : (N, T) integers in [0, V)
        The true token at each step.
    mask : (N, T)
        True (or 1) where y is a real token. The other steps are not read and have the gradient zero. Like y,
        the mask may be a NumPy array even if x is on a GPU.
    verbose : bool
        Print the shapes of x and of the gradient, as in cs231n.
    average : "batch" or "token"
        Divide the sum over all real tokens by N, or by the number of real tokens.
    label_smoothing : float in [0, 1)
        As in :func:`softmax_loss`.

    Returns
    -------
    loss : float
        For a CuPy array x, an array () on the device; reading it waits for the device.
    dx : (N, T, V)

    Raises
    ------
    IndexError
        If a token is out of range.
    ValueError
        If a shape, a value of the mask, ``average`` or ``label_smoothing`` is wrong.
    TypeError
        If x is not float32 or float64, or y does not hold integers.
    """
    function = "temporal_softmax_loss"
    ops, _, _ = ops_of(function, x=x), ops_of(function, y=y), ops_of(function, mask=mask)
    check_shapes(function, x=(x, "N T V"))
    N, T, V = x.shape
    if y.shape != (N, T):
        raise InputError(f"{function}: y has shape {y.shape}, expected (N, T) = {(N, T)}")
    y, mask = (ops_for(array).asnumpy(array) for array in (y, mask))
    real = np.flatnonzero(as_mask(function, "mask", mask, (N, T), "N, T"))
    y = as_tokens(function, "y", y.reshape(-1)[real], V)
    check_option(function, "label_smoothing", Probability, label_smoothing)
    rows, scores = ops.asarray(real), ops.empty((real.size, V), x.dtype)
    ops.take(as_rows(x), rows, scores)
    divisor = loss_divisor(function, average, N, real.size)
    loss, dscores = softmax_loss(scores, y, divisor=divisor, label_smoothing=label_smoothing)
    dx = ops.zeros((N * T, V), x.dtype)
    ops.put(dscores, rows, dx)
    dx = dx.reshape(N, T, V)
    if verbose:
        print(f"x: {x.shape} dx: {dx.shape}")
    return loss, dx


def loss_divisor(function: str, average: str, N: int, tokens: int) -> int:
    """Return the number that the summed loss of a batch is divided by, at least 1.

    Parameters
    ----------
    function : str
        The name of the calling function, for the errors.
    average : "batch" or "token"
    N : int
        The number of sequences.
    tokens : int
        The number of real tokens.

    Raises
    ------
    ValueError
        If ``average`` is not "batch" or "token".
    """
    if average not in LOSS_AVERAGES:
        raise InputError(f"{function}: average is {average!r}, expected one of {', '.join(LOSS_AVERAGES)}")
    return max(1, N if average == "batch" else tokens)
