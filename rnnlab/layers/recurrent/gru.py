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
from rnnlab.layers.recurrent.packing import Steps, WeightGradients, as_rows
from rnnlab.ops import StepMasks, ops_for
from rnnlab.types import Array


class GRUStepCache(NamedTuple):
    """What the backward of one step needs."""

    x: Array  # (N, D)
    prev_h: Array  # (N, H)
    Wx: Array  # (D, 3H)
    Wh: Array  # (H, 3H)
    gates: Array  # (N, 3H) z, r, g
    reset_h: Array  # (N, H) r * prev_h


class GRUCache(NamedTuple):
    """What the backward of a sequence needs; packed as :mod:`rnnlab.layers.recurrent.packing` tells."""

    x: Array  # (N, T, D)
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
    _step(ops, _parts(Wh), gates, prev_h, reset_h, next_h)
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
    _step_backward(ops, _transposed(_parts(Wh)), dprev_h, gates, prev_h, da)
    dWh = ops.zeros(Wh.shape, Wh.dtype)
    _add_recurrent_gradient(ops, prev_h, reset_h, da, _parts(dWh))
    return ops.matmul(da, Wx.T), dprev_h, ops.matmul(x.T, da), dWh, da.sum(axis=0)


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
    M, H = steps.offsets[-1], h0.shape[1]
    gates, reset_h = ops.empty((M, 3 * H), x.dtype), ops.empty((M, H), x.dtype)
    h, rows_x, from_x, from_h = steps.states(h0), as_rows(x), ops.prepacked(Wx), _packed(ops, _parts(Wh))
    for chunk in steps.chunks(3 * H):
        ops.affine_into(steps.pack(rows_x, chunk), from_x, b, gates[chunk.rows])
        for rows, before, after in chunk.steps:
            _step(ops, from_h, gates[rows], h[before], reset_h[rows], h[after])
    cache = GRUCache(x, h, Wx, Wh, gates, reset_h, steps)
    if return_state:
        return steps.after_each(h), h[steps.final], cache
    return steps.after_each(h), cache


def gru_backward(
    dh: Array,
    cache: GRUCache,
    *,
    dfinal_h: Array | None = None,
    into: tuple[Array, Array, Array] | None = None,
) -> tuple[Array, Array, Array, Array, Array]:
    """Backward of :func:`gru_forward`.

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
    dx (N, T, D), dh0 (N, H), dWx (D, 3H), dWh (H, 3H), db (3H,)
    """
    x, h, Wx, Wh, gates, reset_h, steps = cache
    ops = ops_for(dh, x)
    dstate = steps.incoming("gru_backward", Wh.shape[0], dh, dfinal_h, x)
    weights = WeightGradients("gru_backward", steps, x, Wx, Wh, into)
    rows_dh, to_h = as_rows(dh), _packed(ops, _transposed(_parts(Wh)))
    for chunk in reversed(steps.chunks(Wh.shape[1])):
        dh_chunk, da = steps.pack(rows_dh, chunk), ops.empty((chunk.size, Wh.shape[1]), x.dtype)
        for rows, before, _ in reversed(chunk.steps):
            here = chunk.here(rows)
            dnow = dstate[: rows.stop - rows.start]
            dnow += dh_chunk[here]
            _step_backward(ops, to_h, dnow, gates[rows], h[before], da[here])
        weights.add(chunk, da)
        _add_recurrent_gradient(ops, steps.before(h, chunk), reset_h[chunk.rows], da, _parts(weights.dWh))
    return weights.dx, steps.unsort(dstate), weights.dWx, weights.dWh, weights.db


class _Parts(NamedTuple):
    """Of the recurrent weights, those of the two gates and that of the candidate."""

    zr: Array
    candidate: Array


def _parts(Wh: Array) -> _Parts:
    H = Wh.shape[0]
    return _Parts(Wh[:, : 2 * H], Wh[:, 2 * H :])


def _transposed(weights: _Parts) -> _Parts:
    return _Parts(weights.zr.T, weights.candidate.T)


def _packed(ops: Any, weights: _Parts) -> _Parts:
    return _Parts(ops.prepacked(weights.zr), ops.prepacked(weights.candidate))


def _step(
    ops: Any,
    weights: _Parts,
    gates: Array,
    prev_h: Array,
    reset_h: Array,
    h: Array,
    *,
    read: Array | None = None,
    noise: StepMasks | None = None,
) -> None:
    """One step; ``read`` and ``noise`` are as in :mod:`rnnlab.layers.recurrent.cell`."""
    H, read = h.shape[1], prev_h if read is None else read
    ops.matmul_add(read, weights.zr, gates[:, : 2 * H])
    ops.gru_gates_forward(gates, read, reset_h)
    ops.matmul_add(reset_h, weights.candidate, gates[:, 2 * H :])
    if noise is None:
        ops.gru_candidate_forward(gates, prev_h, h)
    else:
        ops.gru_candidate_regularised_forward(gates, prev_h, h, noise)


def _step_backward(
    ops: Any,
    weights: _Parts,
    dh: Array,
    gates: Array,
    prev_h: Array,
    da: Array,
    *,
    read: Array | None = None,
    dread: Array | None = None,
    noise: StepMasks | None = None,
) -> Array | None:
    """Write da; ``dh`` comes in as the gradient of h_t and leaves as that of h_{t-1}.

    ``dread`` is added what comes back to ``read``, if that is another array. What is returned, with noise, is
    to be added to ``dh``.
    """
    H, past = dh.shape[1], None
    read, dread = (prev_h, dh) if read is None else (read, dread)
    if noise is None:
        ops.gru_candidate_backward(dh, gates, prev_h, da)
    else:
        past = ops.gru_candidate_regularised_backward(dh, gates, prev_h, da, noise)
    dreset_h = ops.empty(dh.shape, dh.dtype)
    ops.matmul_into(da[:, 2 * H :], weights.candidate, dreset_h)
    ops.gru_gates_backward(dreset_h, dread, gates, read, da)
    ops.matmul_add(da[:, : 2 * H], weights.zr, dread)
    return past


def _add_recurrent_gradient(ops: Any, prev_h: Array, reset_h: Array, da: Array, dWh: _Parts) -> None:
    H = prev_h.shape[1]
    ops.matmul_add(prev_h.T, da[:, : 2 * H], dWh.zr)
    ops.matmul_add(reset_h.T, da[:, 2 * H :], dWh.candidate)
