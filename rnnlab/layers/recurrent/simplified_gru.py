"""Simplified GRU: a GRU without the reset gate (Chen, Dong and Li 2016, eq. 9).

    z_t = sigmoid(x_t Wx_z + h_{t-1} Wh_z + b_z)        update gate, (N, H)
    g_t = tanh(x_t Wx_g + h_{t-1} Wh_g + b_g)           candidate, (N, H)
    h_t = (1 - z_t) * g_t + z_t * h_{t-1}               hidden state, (N, H)

Backward, with dh_t the whole gradient that reaches h_t:

    da_z = dh_t (h_{t-1} - g_t) z (1 - z)               da_g = dh_t (1 - z) (1 - g^2)
    dh_{t-1} += dh_t z + da_t Wh^T                      dx_t = da_t Wx^T

Parameters are stacked z, g along the last axis: Wx (D, 2H), Wh (H, 2H), b (2H,).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from rnnlab.layers.checks import check_shapes
from rnnlab.layers.recurrent.packing import Steps, WeightGradients, as_rows
from rnnlab.ops import ops_for
from rnnlab.types import Array


class SimplifiedGRUStepCache(NamedTuple):
    """What the backward of one step needs."""

    x: Array  # (N, D)
    prev_h: Array  # (N, H)
    Wx: Array  # (D, 2H)
    Wh: Array  # (H, 2H)
    gates: Array  # (N, 2H) z, g


class SimplifiedGRUCache(NamedTuple):
    """What the backward of a sequence needs; packed as :mod:`rnnlab.layers.recurrent.packing` tells."""

    x: Array  # (N, T, D)
    h: Array  # (N + M, H) states
    Wx: Array  # (D, 2H)
    Wh: Array  # (H, 2H)
    gates: Array  # (M, 2H) packed, z, g
    steps: Steps


def simplified_gru_step_forward(
    x: Array, prev_h: Array, Wx: Array, Wh: Array, b: Array
) -> tuple[Array, SimplifiedGRUStepCache]:
    """One step of a simplified GRU.

    Parameters
    ----------
    x : (N, D)
    prev_h : (N, H)
    Wx : (D, 2H)
    Wh : (H, 2H)
    b : (2H,)

    Returns
    -------
    next_h : (N, H)
    cache : SimplifiedGRUStepCache

    Raises
    ------
    ValueError, TypeError
        If a shape or a dtype does not fit.
    """
    ops = ops_for(x, prev_h, Wx, Wh, b)
    check_shapes(
        "simplified_gru_step_forward",
        x=(x, "N D"),
        prev_h=(prev_h, "N H"),
        Wx=(Wx, "D 2H"),
        Wh=(Wh, "H 2H"),
        b=(b, "2H"),
    )
    gates = ops.affine(x, Wx, b)
    gates += ops.matmul(prev_h, Wh)
    next_h = ops.empty(prev_h.shape, x.dtype)
    ops.simplified_gru_forward(gates, prev_h, next_h)
    return next_h, SimplifiedGRUStepCache(x, prev_h, Wx, Wh, gates)


def simplified_gru_step_backward(
    dnext_h: Array, cache: SimplifiedGRUStepCache
) -> tuple[Array, Array, Array, Array, Array]:
    """Backward of :func:`simplified_gru_step_forward`.

    Parameters
    ----------
    dnext_h : (N, H)
        Gradient of the loss with respect to ``next_h``.

    Returns
    -------
    dx (N, D), dprev_h (N, H), dWx (D, 2H), dWh (H, 2H), db (2H,)
    """
    x, prev_h, Wx, Wh, gates = cache
    ops = ops_for(dnext_h, x)
    check_shapes("simplified_gru_step_backward", h=(prev_h, "N H"), dnext_h=(dnext_h, "N H"))
    da = ops.empty(gates.shape, gates.dtype)
    dprev_h = dnext_h.copy()
    ops.simplified_gru_backward(dprev_h, gates, prev_h, da)
    ops.matmul_add(da, Wh.T, dprev_h)
    dWx, dWh = ops.matmul(x.T, da), ops.matmul(prev_h.T, da)
    return ops.matmul(da, Wx.T), dprev_h, dWx, dWh, da.sum(axis=0)


def simplified_gru_forward(
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
    """A simplified GRU over a batch of sequences.

    Parameters
    ----------
    x : (N, T, D)
    h0 : (N, H)
        The initial hidden state.
    Wx : (D, 2H)
    Wh : (H, 2H)
    b : (2H,)
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
    cache : SimplifiedGRUCache

    Raises
    ------
    ValueError, TypeError
        If a shape, a length or a dtype does not fit.
    """
    ops = ops_for(x, h0, Wx, Wh, b)
    check_shapes(
        "simplified_gru_forward",
        x=(x, "N T D"),
        h0=(h0, "N H"),
        Wx=(Wx, "D 2H"),
        Wh=(Wh, "H 2H"),
        b=(b, "2H"),
    )
    steps = Steps.of("simplified_gru_forward", x.shape[:2], lengths=lengths, mask=mask, like=x)
    H = h0.shape[1]
    gates, h = ops.empty((steps.offsets[-1], 2 * H), x.dtype), steps.states(h0)
    rows_x, from_x, from_h = as_rows(x), ops.prepacked(Wx), ops.prepacked(Wh)
    for chunk in steps.chunks(2 * H):
        ops.affine_into(steps.pack(rows_x, chunk), from_x, b, gates[chunk.rows])
        for rows, before, after in chunk.steps:
            ops.matmul_add(h[before], from_h, gates[rows])
            ops.simplified_gru_forward(gates[rows], h[before], h[after])
    cache = SimplifiedGRUCache(x, h, Wx, Wh, gates, steps)
    if return_state:
        return steps.after_each(h), h[steps.final], cache
    return steps.after_each(h), cache


def simplified_gru_backward(
    dh: Array,
    cache: SimplifiedGRUCache,
    *,
    dfinal_h: Array | None = None,
    into: tuple[Array, Array, Array] | None = None,
) -> tuple[Array, Array, Array, Array, Array]:
    """Backward of :func:`simplified_gru_forward`.

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
    dx (N, T, D), dh0 (N, H), dWx (D, 2H), dWh (H, 2H), db (2H,)
    """
    x, h, Wx, Wh, gates, steps = cache
    ops = ops_for(dh, x)
    dstate = steps.incoming("simplified_gru_backward", Wh.shape[0], dh, dfinal_h, x)
    weights = WeightGradients("simplified_gru_backward", steps, x, Wx, Wh, into)
    rows_dh, to_h = as_rows(dh), ops.prepacked(Wh.T)
    for chunk in reversed(steps.chunks(Wh.shape[1])):
        dh_chunk, da = steps.pack(rows_dh, chunk), ops.empty((chunk.size, Wh.shape[1]), x.dtype)
        for rows, before, _ in reversed(chunk.steps):
            here = chunk.here(rows)
            dnow = dstate[: rows.stop - rows.start]
            dnow += dh_chunk[here]
            ops.simplified_gru_backward(dnow, gates[rows], h[before], da[here])
            ops.matmul_add(da[here], to_h, dnow)
        weights.add(chunk, da)
        ops.matmul_add(steps.before(h, chunk).T, da, weights.dWh)
    return weights.dx, steps.unsort(dstate), weights.dWx, weights.dWh, weights.db
