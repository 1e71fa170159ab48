"""LSTM without peepholes (cs231n, assignment 3; Chen, Dong and Li 2016, eq. 7).

    i = sigmoid(x_t Wx_i + h_{t-1} Wh_i + b_i)          input gate, (N, H)
    f = sigmoid(x_t Wx_f + h_{t-1} Wh_f + b_f)          forget gate, (N, H)
    o = sigmoid(x_t Wx_o + h_{t-1} Wh_o + b_o)          output gate, (N, H)
    g = tanh(x_t Wx_g + h_{t-1} Wh_g + b_g)             candidate, (N, H)
    c_t = f * c_{t-1} + i * g                           cell state, (N, H)
    h_t = o * tanh(c_t)                                 hidden state, (N, H)

Backward, with dh_t the total gradient that reaches h_t, and dc_t initially without the share through h_t:

    dc_t += dh_t o (1 - tanh(c_t)^2)
    da_i = dc_t g i (1 - i)            da_f = dc_t c_{t-1} f (1 - f)
    da_o = dh_t tanh(c_t) o (1 - o)    da_g = dc_t i (1 - g^2)
    dc_{t-1} = dc_t f                  dh_{t-1} += da_t Wh^T            dx_t = da_t Wx^T

Parameters are stacked i, f, o, g along the last axis: Wx (D, 4H), Wh (H, 4H), b (4H,).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from rnnlab.layers.checks import check_cache
from rnnlab.layers.recurrent.cell import Step
from rnnlab.layers.recurrent.loop import RecurrentCache
from rnnlab.layers.recurrent.primitive import (
    PreparedPrimitive,
    PrimitiveCell,
    RecurrentProduct,
    step_backward,
    step_forward,
)
from rnnlab.layers.recurrent.sequence import sequence_backward, sequence_forward
from rnnlab.ops import Primitives
from rnnlab.types import Array, Params, State


class LSTMStepCache(NamedTuple):
    """What the backward of one step needs."""

    x: Array  # (N, D)
    prev_h: Array  # (N, H)
    prev_c: Array  # (N, H)
    Wx: Array  # (D, 4H)
    Wh: Array  # (H, 4H)
    gates: Array  # (N, 4H) i, f, o, g
    tanh_c: Array  # (N, H)


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
        If a shape or a dtype is wrong.
    """
    (next_h, next_c), step = step_forward("lstm_step_forward", LSTM(), x, (prev_h, prev_c), Wx, Wh, b)
    return next_h, next_c, LSTMStepCache(x, prev_h, prev_c, Wx, Wh, step.gates, step.saved)


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

    Raises
    ------
    ValueError, TypeError
        If a gradient has a wrong shape or dtype, or the cache is from another function.
    """
    check_cache("lstm_step_backward", cache, LSTMStepCache)
    x, prev_h, prev_c, Wx, Wh, gates, tanh_c = cache
    step = Step(gates, (prev_h, prev_c), (), tanh_c, prev_h)
    return step_backward("lstm_step_backward", LSTM(), (dnext_h, dnext_c), x, Wx, Wh, step)


class LSTM(PrimitiveCell):
    """The LSTM as a :class:`~rnnlab.layers.recurrent.cell.Cell`."""

    num_gates = 4
    num_states = 2
    forget_gate = 1

    def prepare(self, ops: Primitives, params: Params, *, reused: bool = True) -> PreparedLSTM:
        """See :class:`~rnnlab.layers.recurrent.cell.Cell`."""
        return PreparedLSTM(ops, "lstm", RecurrentProduct(ops, params["Wh"], reused))


class PreparedLSTM(PreparedPrimitive):
    """See :class:`~rnnlab.layers.recurrent.cell.ChunkedCell`; ``saved`` is tanh(c_t), c_t before zoneout."""

    saves = 1  # tanh(c_t)

    def forward(self, step: Step) -> None:
        """The gates, then c_t and h_t."""
        self._product.add(step.read, step.gates)
        (prev_h, prev_c), (h, c) = step.prev, step.next
        if step.masks is None:
            self._ops.lstm_forward(step.gates, prev_c, c, step.saved, h)
        else:
            self._ops.lstm_regularised_forward(step.gates, prev_h, prev_c, c, step.saved, h, step.masks)

    def backward(self, step: Step, dstate: State, dread: Array, da: Array) -> Array | None:
        """da_t and dc_{t-1}, then dh_{t-1} = da_t Wh^T."""
        dh, dc = dstate
        if step.masks is None:
            self._ops.lstm_backward(dh, dc, step.gates, step.prev[1], step.saved, da)
            self._product.write_backward(da, dread)
            return None
        past = self._ops.lstm_regularised_backward(
            dh, dc, step.gates, step.prev[1], step.saved, da, step.masks
        )
        self._product.add_backward(da, dread)
        return past


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
        The real steps of each sequence. Past them the state is carried through unchanged, and x is not read.
    mask : (N, T), optional
        Instead of ``lengths``: ones for the real steps of each sequence, then zeros.
    return_state : bool
        Also return the states after each sequence's last real step.

    Returns
    -------
    h : (N, T, H)
        The hidden state after every step.
    final_h, final_c : (N, H)
        Only with ``return_state``.
    cache : RecurrentCache

    Raises
    ------
    ValueError, TypeError
        If a shape, a length or a dtype is wrong.
    """
    given = (h0,) if c0 is None else (h0, c0)
    params = {"Wx": Wx, "Wh": Wh, "b": b}
    h, final, cache = sequence_forward("lstm_forward", LSTM(), x, given, params, lengths=lengths, mask=mask)
    return (h, *final, cache) if return_state else (h, cache)


def lstm_backward(
    dh: Array | None,
    cache: RecurrentCache,
    *,
    dfinal_h: Array | None = None,
    dfinal_c: Array | None = None,
    into: tuple[Array, Array, Array] | None = None,
) -> tuple[Array, ...]:
    """Backward of :func:`lstm_forward`.

    Parameters
    ----------
    dh : (N, T, H) or None
        Gradient of the loss with respect to ``h``, without what flows back from later steps. None for zeros,
        if the loss reads the final state alone.
    dfinal_h, dfinal_c : (N, H), optional
        Gradients with respect to ``final_h`` and ``final_c``.
    into : (dWx, dWh, db), optional
        Arrays that the gradients of the parameters are added to. By default they are new arrays.

    Returns
    -------
    dx (N, T, D), dh0 (N, H), dWx (D, 4H), dWh (H, 4H), db (4H,)
        And dc0 (N, H) after them, if c0 was given to the forward.

    Raises
    ------
    ValueError, TypeError
        If a gradient or an array of ``into`` is invalid, or the cache is from another function.
    """
    finals = {"dfinal_h": dfinal_h, "dfinal_c": dfinal_c}
    return sequence_backward("lstm_backward", LSTM, dh, cache, finals, into)
