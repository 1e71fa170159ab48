"""Vanilla RNN.

    h_t = tanh(x_t Wx + h_{t-1} Wh + b)                 hidden state, (N, H)

Backward, with dh_t the whole gradient that reaches h_t, from above and from step t + 1:

    da_t = dh_t (1 - h_t^2)            dh_{t-1} += da_t Wh^T            dx_t = da_t Wx^T
    dWx = sum_t x_t^T da_t             dWh = sum_t h_{t-1}^T da_t       db = sum_t da_t

Parameters are Wx (D, H), Wh (H, H), b (H,).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from rnnlab.layers.checks import check_shapes
from rnnlab.layers.recurrent.packing import Steps, WeightGradients, as_rows
from rnnlab.ops import ops_for
from rnnlab.types import Array


class RNNStepCache(NamedTuple):
    """What the backward of one step needs."""

    x: Array  # (N, D)
    prev_h: Array  # (N, H)
    Wx: Array  # (D, H)
    Wh: Array  # (H, H)
    h: Array  # (N, H)


class RNNCache(NamedTuple):
    """What the backward of a sequence needs; packed as :mod:`rnnlab.layers.recurrent.packing` tells."""

    x: Array  # (N, T, D)
    h: Array  # (N + M, H) states
    Wx: Array  # (D, H)
    Wh: Array  # (H, H)
    steps: Steps


def rnn_step_forward(x: Array, prev_h: Array, Wx: Array, Wh: Array, b: Array) -> tuple[Array, RNNStepCache]:
    """One step of a vanilla RNN.

    Parameters
    ----------
    x : (N, D)
    prev_h : (N, H)
    Wx : (D, H)
    Wh : (H, H)
    b : (H,)

    Returns
    -------
    next_h : (N, H)
    cache : RNNStepCache

    Raises
    ------
    ValueError, TypeError
        If a shape or a dtype does not fit.
    """
    ops = ops_for(x, prev_h, Wx, Wh, b)
    check_shapes(
        "rnn_step_forward", x=(x, "N D"), prev_h=(prev_h, "N H"), Wx=(Wx, "D H"), Wh=(Wh, "H H"), b=(b, "H")
    )
    next_h = ops.empty(prev_h.shape, x.dtype)
    ops.rnn_forward(ops.affine(x, Wx, b) + ops.matmul(prev_h, Wh), next_h)
    return next_h, RNNStepCache(x, prev_h, Wx, Wh, next_h.copy())


def rnn_step_backward(dnext_h: Array, cache: RNNStepCache) -> tuple[Array, Array, Array, Array, Array]:
    """Backward of :func:`rnn_step_forward`.

    Parameters
    ----------
    dnext_h : (N, H)
        Gradient of the loss with respect to ``next_h``.

    Returns
    -------
    dx (N, D), dprev_h (N, H), dWx (D, H), dWh (H, H), db (H,)
    """
    x, prev_h, Wx, Wh, h = cache
    ops = ops_for(dnext_h, x)
    check_shapes("rnn_step_backward", h=(h, "N H"), dnext_h=(dnext_h, "N H"))
    da = ops.empty(h.shape, h.dtype)
    ops.rnn_backward(dnext_h, h, da)
    dx, dprev_h = ops.matmul(da, Wx.T), ops.matmul(da, Wh.T)
    return dx, dprev_h, ops.matmul(x.T, da), ops.matmul(prev_h.T, da), da.sum(axis=0)


def rnn_forward(
    x: Array,
    h0: Array,
    Wx: Array,
    Wh: Array,
    b: Array,
    *,
    lengths: Array | None = None,
    mask: Array | None = None,
    return_state: bool = False,
) -> tuple[Any, ...]:
    """A vanilla RNN over a batch of sequences.

    Parameters
    ----------
    x : (N, T, D)
    h0 : (N, H)
        The initial hidden state.
    Wx : (D, H)
    Wh : (H, H)
    b : (H,)
    lengths : (N,) integers, optional
        The real steps of each sequence; past them the state stands still and x is not read.
    mask : (N, T), optional
        The same as a mask of ones, then zeros.
    return_state : bool
        Also return the state after each sequence's last real step.

    Returns
    -------
    h : (N, T, H)
        The hidden state after every step.
    final_h : (N, H)
        Only with ``return_state``.
    cache : RNNCache

    Raises
    ------
    ValueError, TypeError
        If a shape, a length or a dtype does not fit.
    """
    ops = ops_for(x, h0, Wx, Wh, b)
    check_shapes("rnn_forward", x=(x, "N T D"), h0=(h0, "N H"), Wx=(Wx, "D H"), Wh=(Wh, "H H"), b=(b, "H"))
    steps = Steps.of("rnn_forward", x.shape[:2], lengths=lengths, mask=mask, like=x)
    a, h = ops.empty((steps.offsets[-1], h0.shape[1]), x.dtype), steps.states(h0)
    rows_x, from_x, from_h = as_rows(x), ops.prepacked(Wx), ops.prepacked(Wh)
    for chunk in steps.chunks(a.shape[1]):
        ops.affine_into(steps.pack(rows_x, chunk), from_x, b, a[chunk.rows])
        for rows, before, after in chunk.steps:
            ops.matmul_add(h[before], from_h, a[rows])
            ops.rnn_forward(a[rows], h[after])
    cache = RNNCache(x, h, Wx, Wh, steps)
    if return_state:
        return steps.after_each(h), h[steps.final], cache
    return steps.after_each(h), cache


def rnn_backward(
    dh: Array,
    cache: RNNCache,
    *,
    dfinal_h: Array | None = None,
    into: tuple[Array, Array, Array] | None = None,
) -> tuple[Array, Array, Array, Array, Array]:
    """Backward of :func:`rnn_forward`.

    Parameters
    ----------
    dh : (N, T, H)
        Gradient of the loss with respect to ``h``, each step's own share.
    dfinal_h : (N, H), optional
        Gradient with respect to ``final_h``.
    into : (dWx, dWh, db), optional
        Arrays that the parameters' gradients are added into, instead of fresh ones.

    Returns
    -------
    dx (N, T, D), dh0 (N, H), dWx (D, H), dWh (H, H), db (H,)
    """
    x, h, Wx, Wh, steps = cache
    ops = ops_for(dh, x)
    dstate = steps.incoming("rnn_backward", Wh.shape[0], dh, dfinal_h, x)
    weights = WeightGradients("rnn_backward", steps, x, Wx, Wh, into)
    rows_dh, to_h = as_rows(dh), ops.prepacked(Wh.T)
    for chunk in reversed(steps.chunks(Wh.shape[1])):
        dh_chunk, da = steps.pack(rows_dh, chunk), ops.empty((chunk.size, Wh.shape[1]), x.dtype)
        for rows, _, after in reversed(chunk.steps):
            here = chunk.here(rows)
            dnow = dstate[: rows.stop - rows.start]
            dnow += dh_chunk[here]
            ops.rnn_backward(dnow, h[after], da[here])
            ops.matmul_into(da[here], to_h, dnow)
        weights.add(chunk, da)
        ops.matmul_add(steps.before(h, chunk).T, da, weights.dWh)
    return weights.dx, steps.unsort(dstate), weights.dWx, weights.dWh, weights.db
