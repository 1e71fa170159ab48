"""The doubly stochastic loss of attention weights (Xu et al. 2015, eq. 14)."""

from __future__ import annotations

import numpy as np

from rnnlab.errors import InputError
from rnnlab.layers.checks import as_float_mask, as_mask, check_shapes, ops_of
from rnnlab.layers.recurrent.packing import real_lengths
from rnnlab.types import Array


def doubly_stochastic_loss(
    weights: Array,
    lengths: Array | None = None,
    *,
    mask: Array | None = None,
    memory_mask: Array | None = None,
) -> tuple[float, Array]:
    """The penalty for attending to a slot of the memory more or less than once (Xu et al. 2015, eq. 14).

        loss = 1/N sum_n sum_i (1 - sum_t alpha_nti)^2

    over real steps t and real slots i. A sequence without a step adds nothing.

    Parameters
    ----------
    weights : (N, T, L)
    lengths : (N,) integers, optional
        The real steps of each sequence; all T if neither this nor ``mask`` is given.
    mask : (N, T), optional
        Instead of ``lengths``: true or 1 for the real steps, false or 0 for the others, in the library of
        ``weights``; floats have the dtype of ``weights``.
    memory_mask : (N, L), optional
        True (or 1) for the real slots of the memory; all are if left out.

    Returns
    -------
    loss : float
        For CuPy arrays, an array () on the device; reading it waits for the device.
    dweights : (N, T, L)

    Raises
    ------
    ValueError, TypeError
        If a shape, a length or a dtype is wrong, or both lengths and mask are given.
    """
    function = "doubly_stochastic_loss"
    ops = ops_of(function, weights=weights)
    if lengths is not None and mask is not None:
        raise InputError(f"{function}: both lengths and mask are given, expected one of them")
    N, T, L = check_shapes(function, weights=(weights, "N T L")).values()
    counts = np.ones((N, L), bool)
    if memory_mask is not None:
        counts = as_mask(function, "memory_mask", memory_mask, (N, L), "N, L")
    if mask is None:
        real = np.arange(T) < real_lengths(function, N, T, lengths)[:, None]
        mask = ops.asarray(real.astype(weights.dtype))
    steps = as_float_mask(function, "mask", mask, (N, T), weights)
    counts = ops.asarray(counts) & (steps.sum(axis=1, keepdims=True) > 0)
    zero = weights.dtype.type(0)  # weights of padding may be NaN
    attended = ops.matmul(steps[:, None], np.where(steps[:, :, None] > 0, weights, zero))[:, 0]
    missing = np.where(counts, 1 - attended, zero)  # (N, L)
    loss = (missing * missing).sum(dtype="float64") / max(N, 1)
    return loss, steps[:, :, None] * (missing * (-2 / max(N, 1)))[:, None]
