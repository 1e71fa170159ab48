"""LSTM without peepholes (cs231n, assignment 3; Chen, Dong and Li 2016, eq. 7).

    i, f, o = sigmoid(x_t Wx + h_{t-1} Wh + b)          input, forget and output gate, each (N, H)
    g       = tanh(x_t Wx + h_{t-1} Wh + b)             block input, (N, H)
    c_t = f * c_{t-1} + i * g                           cell state, (N, H)
    h_t = o * tanh(c_t)                                 hidden state, (N, H)

Backward, with dh_t and dc_t the whole gradients that reach h_t and c_t:

    dc_t += dh_t o (1 - tanh(c_t)^2)
    da_i = dc_t g i (1 - i)            da_f = dc_t c_{t-1} f (1 - f)
    da_o = dh_t tanh(c_t) o (1 - o)    da_g = dc_t i (1 - g^2)
    dc_{t-1} = dc_t f                  dh_{t-1} += da_t Wh^T            dx_t = da_t Wx^T

Parameters are stacked i, f, o, g along the last axis: Wx (D, 4H), Wh (H, 4H), b (4H,).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from rnnlab.layers.checks import check_shapes
from rnnlab.layers.recurrent.packing import Steps, WeightGradients, as_rows
from rnnlab.ops import ops_for
from rnnlab.types import Array


class LSTMStepCache(NamedTuple):
    """What the backward of one step needs."""

    x: Array  # (N, D)
    prev_h: Array  # (N, H)
    prev_c: Array  # (N, H)
    Wx: Array  # (D, 4H)
    Wh: Array  # (H, 4H)
    gates: Array  # (N, 4H) i, f, o, g
    tanh_c: Array  # (N, H)


class LSTMCache(NamedTuple):
    """What the backward of a sequence needs; packed as :mod:`rnnlab.layers.recurrent.packing` tells."""

    x: Array  # (N, T, D)
    h: Array  # (N + M, H) states
    c: Array  # (N + M, H) states
    Wx: Array  # (D, 4H)
    Wh: Array  # (H, 4H)
    gates: Array  # (M, 4H) packed, i, f, o, g
    tanh_c: Array  # (M, H) packed
    c0_given: bool  # whether the caller gave c0, and so wants its gradient
    steps: Steps


def lstm_step_forward(
    x: Array, prev_h: Array, prev_c: Array, Wx: Array, Wh: Array, b: Array
) -> tuple[Array, Array, LSTMStepCache]:
    """One step of an LSTM.

    Parameters
    ----------
    x : (N, D)
    prev_h, prev_c : (N, H)
    Wx : (D, 4H)
    Wh : (H, 4H)
    b : (4H,)

    Returns
    -------
    next_h, next_c : (N, H)
    cache : LSTMStepCache

    Raises
    ------
    ValueError, TypeError
        If a shape or a dtype does not fit.
    """
    ops = ops_for(x, prev_h, prev_c, Wx, Wh, b)
    check_shapes(
        "lstm_step_forward",
        x=(x, "N D"),
        prev_h=(prev_h, "N H"),
        prev_c=(prev_c, "N H"),
        Wx=(Wx, "D 4H"),
        Wh=(Wh, "H 4H"),
        b=(b, "4H"),
    )
    gates = ops.affine(x, Wx, b)
    gates += ops.matmul(prev_h, Wh)
    next_h, next_c, tanh_c = (ops.empty(prev_c.shape, x.dtype) for _ in range(3))
    ops.lstm_forward(gates, prev_c, next_c, tanh_c, next_h)
    return next_h, next_c, LSTMStepCache(x, prev_h, prev_c, Wx, Wh, gates, tanh_c)


def lstm_step_backward(
    dnext_h: Array, dnext_c: Array, cache: LSTMStepCache
) -> tuple[Array, Array, Array, Array, Array, Array]:
    """Backward of :func:`lstm_step_forward`.

    Parameters
    ----------
    dnext_h, dnext_c : (N, H)
        Gradients of the loss with respect to ``next_h`` and ``next_c``.

    Returns
    -------
    dx (N, D), dprev_h (N, H), dprev_c (N, H), dWx (D, 4H), dWh (H, 4H), db (4H,)
    """
    x, prev_h, prev_c, Wx, Wh, gates, tanh_c = cache
    ops = ops_for(dnext_h, dnext_c, x)
    check_shapes("lstm_step_backward", c=(prev_c, "N H"), dnext_h=(dnext_h, "N H"), dnext_c=(dnext_c, "N H"))
    da = ops.empty(gates.shape, gates.dtype)
    dprev_c = dnext_c.copy()
    ops.lstm_backward(dnext_h, dprev_c, gates, prev_c, tanh_c, da)
    dx, dprev_h = ops.matmul(da, Wx.T), ops.matmul(da, Wh.T)
    return dx, dprev_h, dprev_c, ops.matmul(x.T, da), ops.matmul(prev_h.T, da), da.sum(axis=0)


def lstm_forward(
    x: Array,
    h0: Array,
    Wx: Array,
    Wh: Array,
    b: Array,
    *,
    c0: Array | None = None,
    lengths: Array | None = None,
    mask: Array | None = None,
    return_state: bool = False,
) -> tuple[Any, ...]:
    """An LSTM over a batch of sequences.

    Parameters
    ----------
    x : (N, T, D)
    h0 : (N, H)
        The initial hidden state.
    Wx : (D, 4H)
    Wh : (H, 4H)
    b : (4H,)
    c0 : (N, H), optional
        The initial cell state, zeros if left out.
    lengths : (N,) integers, optional
        The real steps of each sequence; past them the state stands still and x is not read.
    mask : (N, T), optional
        The same as a mask of ones, then zeros.
    return_state : bool
        Also return the states after each sequence's last real step.

    Returns
    -------
    h : (N, T, H)
        The hidden state after every step.
    final_h, final_c : (N, H)
        Only with ``return_state``.
    cache : LSTMCache

    Raises
    ------
    ValueError, TypeError
        If a shape, a length or a dtype does not fit.
    """
    c0_given = c0 is not None
    ops = ops_for(x, h0, Wx, Wh, b)
    if c0 is None:
        c0 = ops.zeros(h0.shape, h0.dtype)
    check_shapes(
        "lstm_forward",
        x=(x, "N T D"),
        h0=(h0, "N H"),
        c0=(c0, "N H"),
        Wx=(Wx, "D 4H"),
        Wh=(Wh, "H 4H"),
        b=(b, "4H"),
    )
    steps = Steps.of("lstm_forward", x.shape[:2], lengths=lengths, mask=mask, like=x)
    M, H = steps.offsets[-1], h0.shape[1]
    gates, tanh_c = ops.empty((M, 4 * H), x.dtype), ops.empty((M, H), x.dtype)
    h, c = steps.states(h0), steps.states(c0)
    rows_x, from_x, from_h = as_rows(x), ops.prepacked(Wx), ops.prepacked(Wh)
    for chunk in steps.chunks(4 * H):
        ops.affine_into(steps.pack(rows_x, chunk), from_x, b, gates[chunk.rows])
        ops.lstm_steps_forward(gates, from_h, h, c, tanh_c, chunk.steps)
    cache = LSTMCache(x, h, c, Wx, Wh, gates, tanh_c, c0_given, steps)
    if return_state:
        return steps.after_each(h), h[steps.final], c[steps.final], cache
    return steps.after_each(h), cache


def lstm_backward(
    dh: Array,
    cache: LSTMCache,
    *,
    dfinal_h: Array | None = None,
    dfinal_c: Array | None = None,
    into: tuple[Array, Array, Array] | None = None,
) -> tuple[Array, ...]:
    """Backward of :func:`lstm_forward`.

    Parameters
    ----------
    dh : (N, T, H)
        Gradient of the loss with respect to ``h``, each step's own share.
    dfinal_h, dfinal_c : (N, H), optional
        Gradients with respect to ``final_h`` and ``final_c``.
    into : (dWx, dWh, db), optional
        Arrays that the parameters' gradients are added into, instead of fresh ones.

    Returns
    -------
    dx (N, T, D), dh0 (N, H), dWx (D, 4H), dWh (H, 4H), db (4H,)
        And dc0 (N, H) after them, if c0 was given to the forward.
    """
    x, h, c, Wx, Wh, gates, tanh_c, c0_given, steps = cache
    ops = ops_for(dh, x)
    H = Wh.shape[0]
    dstate = steps.incoming("lstm_backward", H, dh, dfinal_h, x)
    dcell = steps.incoming("lstm_backward", H, None, dfinal_c, x)
    weights = WeightGradients("lstm_backward", steps, x, Wx, Wh, into)
    rows_dh, to_h = as_rows(dh), ops.prepacked(Wh.T)
    for chunk in reversed(steps.chunks(4 * H)):
        dh_chunk, da = steps.pack(rows_dh, chunk), ops.empty((chunk.size, 4 * H), x.dtype)
        ops.lstm_steps_backward(dh_chunk, dstate, dcell, gates, c, tanh_c, da, to_h, chunk.steps)
        weights.add(chunk, da)
        ops.matmul_add(steps.before(h, chunk).T, da, weights.dWh)
    gradients = (weights.dx, steps.unsort(dstate), weights.dWx, weights.dWh, weights.db)
    return (*gradients, steps.unsort(dcell)) if c0_given else gradients
