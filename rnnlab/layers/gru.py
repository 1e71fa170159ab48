"""Gated recurrent unit, the reset gate acting on the state before the product (Chen et al. 2016, eq. 8).

    z_t = sigmoid(x_t Wx_z + h_{t-1} Wh_z + b_z)                 update gate, (N, H)
    r_t = sigmoid(x_t Wx_r + h_{t-1} Wh_r + b_r)                 reset gate, (N, H)
    g_t = tanh(x_t Wx_h + (r_t * h_{t-1}) Wh_h + b_h)            candidate (the paper's h), (N, H)
    h_t = (1 - z_t) * g_t + z_t * h_{t-1}                        hidden state (the paper's s), (N, H)

Backward, with dh_t the whole gradient that reaches h_t:

    da_h = dh_t (1 - z) (1 - g^2)                  da_z = dh_t (h_{t-1} - g) z (1 - z)
    d(r h) = da_h Wh_h^T                           da_r = d(r h) h_{t-1} r (1 - r)
    dh_{t-1} += dh_t z + d(r h) r + da_z Wh_z^T + da_r Wh_r^T

Parameters are stacked z, r, h along the last axis: Wx (D, 3H), Wh (H, 3H), b (3H,).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from rnnlab.layers.checks import check_shapes
from rnnlab.layers.recurrence import Steps
from rnnlab.ops import ops_for

Array = Any


class GRUStepCache(NamedTuple):
    """What the backward of one step needs."""

    x: Array  # (N, D)
    prev_h: Array  # (N, H)
    Wx: Array  # (D, 3H)
    Wh: Array  # (H, 3H)
    gates: Array  # (N, 3H) z, r, g
    reset_h: Array  # (N, H) r * prev_h


class GRUCache(NamedTuple):
    """What the backward of a sequence needs; packed as :mod:`rnnlab.layers.recurrence` tells."""

    x: Array  # (M, D) packed
    h: Array  # (N + M, H) states
    Wx: Array  # (D, 3H)
    Wh: Array  # (H, 3H)
    gates: Array  # (M, 3H) packed, z, r, g
    reset_h: Array  # (M, H) packed, r * h_{t-1}
    steps: Steps


def gru_step_forward(x: Array, prev_h: Array, Wx: Array, Wh: Array, b: Array) -> tuple[Array, GRUStepCache]:
    """One step of a GRU.

    Parameters
    ----------
    x : (N, D)
    prev_h : (N, H)
    Wx : (D, 3H)
    Wh : (H, 3H)
    b : (3H,)

    Returns
    -------
    next_h : (N, H)
    cache : GRUStepCache

    Raises
    ------
    ValueError, TypeError
        If a shape or a dtype does not fit.
    """
    ops = ops_for(x, prev_h, Wx, Wh, b)
    check_shapes(
        "gru_step_forward",
        x=(x, "N D"),
        prev_h=(prev_h, "N H"),
        Wx=(Wx, "D 3H"),
        Wh=(Wh, "H 3H"),
        b=(b, "3H"),
    )
    gates = ops.affine(x, Wx, b)
    reset_h, next_h = ops.empty(prev_h.shape, x.dtype), ops.empty(prev_h.shape, x.dtype)
    _step(ops, _weights(ops, Wh, x.shape[0]), gates, prev_h, reset_h, next_h)
    return next_h, GRUStepCache(x, prev_h, Wx, Wh, gates, reset_h)


def gru_step_backward(dnext_h: Array, cache: GRUStepCache) -> tuple[Array, Array, Array, Array, Array]:
    """Backward of :func:`gru_step_forward`.

    Parameters
    ----------
    dnext_h : (N, H)
        Gradient of the loss with respect to ``next_h``.

    Returns
    -------
    dx (N, D), dprev_h (N, H), dWx (D, 3H), dWh (H, 3H), db (3H,)
    """
    x, prev_h, Wx, Wh, gates, reset_h = cache
    ops = ops_for(dnext_h, x)
    check_shapes("gru_step_backward", h=(prev_h, "N H"), dnext_h=(dnext_h, "N H"))
    da = ops.empty(gates.shape, gates.dtype)
    dprev_h = dnext_h.copy()
    weights = _weights(ops, Wh, x.shape[0], transposed=True)
    _step_backward(ops, weights, dprev_h, gates, prev_h, da)
    return da @ Wx.T, dprev_h, x.T @ da, _recurrent_gradient(ops, prev_h, reset_h, da), da.sum(axis=0)


def gru_forward(
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
    """A GRU over a batch of sequences.

    Parameters
    ----------
    x : (N, T, D)
    h0 : (N, H)
        The initial hidden state.
    Wx : (D, 3H)
    Wh : (H, 3H)
    b : (3H,)
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
    cache : GRUCache

    Raises
    ------
    ValueError, TypeError
        If a shape, a length or a dtype does not fit.
    """
    ops = ops_for(x, h0, Wx, Wh, b)
    check_shapes("gru_forward", x=(x, "N T D"), h0=(h0, "N H"), Wx=(Wx, "D 3H"), Wh=(Wh, "H 3H"), b=(b, "3H"))
    steps = Steps.of("gru_forward", x.shape[:2], lengths=lengths, mask=mask, like=x)
    rows_x = steps.pack(x)
    gates = ops.affine(rows_x, Wx, b)  # (M, 3H) the input's share, all steps in one product
    h = steps.states(h0)
    reset_h = ops.empty((gates.shape[0], h0.shape[1]), x.dtype)
    weights = _weights(ops, Wh, x.shape[0])
    for rows, before, after in steps.forwards:
        _step(ops, weights, gates[rows], h[before], reset_h[rows], h[after])
    cache = GRUCache(rows_x, h, Wx, Wh, gates, reset_h, steps)
    if return_state:
        return steps.after_each(h), h[steps.final], cache
    return steps.after_each(h), cache


def gru_backward(
    dh: Array, cache: GRUCache, *, dfinal_h: Array | None = None
) -> tuple[Array, Array, Array, Array, Array]:
    """Backward of :func:`gru_forward`.

    Parameters
    ----------
    dh : (N, T, H)
        Gradient of the loss with respect to ``h``, each step's own share.
    dfinal_h : (N, H), optional
        Gradient with respect to ``final_h``.

    Returns
    -------
    dx (N, T, D), dh0 (N, H), dWx (D, 3H), dWh (H, 3H), db (3H,)
    """
    x, h, Wx, Wh, gates, reset_h, steps = cache
    ops = ops_for(dh, x)
    dstate = steps.incoming("gru_backward", Wh.shape[0], dh, dfinal_h, x)
    dh_rows = steps.pack(dh)
    da = ops.empty(gates.shape, gates.dtype)
    weights = _weights(ops, Wh, dstate.shape[0], transposed=True)
    for rows, before, _ in steps.backwards:
        dnow = dstate[: rows.stop - rows.start]
        dnow += dh_rows[rows]
        _step_backward(ops, weights, dnow, gates[rows], h[before], da[rows])
    prev_h = steps.before(h)
    return (
        steps.unpack(ops.matmul(da, Wx.T)),
        steps.unsort(dstate),
        ops.matmul(x.T, da),
        _recurrent_gradient(ops, prev_h, reset_h, da),
        da.sum(axis=0),
    )


class _Weights(NamedTuple):
    """The recurrent weights of the two gates and of the candidate, or their transposes, packed."""

    zr: Array
    candidate: Array
    scratch: Array  # (N, 2H)


def _weights(ops: Any, Wh: Array, N: int, *, transposed: bool = False) -> _Weights:
    H = Wh.shape[0]
    zr, candidate = Wh[:, : 2 * H], Wh[:, 2 * H :]
    if transposed:
        zr, candidate = zr.T, candidate.T
    return _Weights(ops.packed(zr), ops.packed(candidate), ops.empty((N, 2 * H), Wh.dtype))


def _step(ops: Any, weights: _Weights, gates: Array, prev_h: Array, reset_h: Array, h: Array) -> None:
    H = h.shape[1]
    ops.matmul_add(prev_h, weights.zr, gates[:, : 2 * H], weights.scratch)
    ops.gru_gates_forward(gates, prev_h, reset_h)
    ops.matmul_add(reset_h, weights.candidate, gates[:, 2 * H :], weights.scratch[:, :H])
    ops.gru_candidate_forward(gates, prev_h, h)


def _step_backward(ops: Any, weights: _Weights, dh: Array, gates: Array, prev_h: Array, da: Array) -> None:
    """Write da; ``dh`` comes in as the gradient of h_t and leaves as that of h_{t-1}."""
    n, H = dh.shape
    ops.gru_candidate_backward(dh, gates, prev_h, da)
    dreset_h = weights.scratch[:n, :H]
    ops.matmul_into(da[:, 2 * H :], weights.candidate, dreset_h)
    ops.gru_gates_backward(dreset_h, dh, gates, prev_h, da)
    ops.matmul_add(da[:, : 2 * H], weights.zr, dh, weights.scratch[:, :H])


def _recurrent_gradient(ops: Any, prev_h: Array, reset_h: Array, da: Array) -> Array:
    H = prev_h.shape[1]
    dWh = ops.empty((H, 3 * H), da.dtype)
    dWh[:, : 2 * H] = ops.matmul(prev_h.T, da[:, : 2 * H])
    dWh[:, 2 * H :] = ops.matmul(reset_h.T, da[:, 2 * H :])
    return dWh
