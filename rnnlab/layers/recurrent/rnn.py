"""Vanilla RNN.

    h_t = tanh(x_t Wx + h_{t-1} Wh + b)                 hidden state, (N, H)

Backward, with dh_t the total gradient that reaches h_t, from the output and from step t + 1:

    da_t = dh_t (1 - h_t^2)            dh_{t-1} += da_t Wh^T            dx_t = da_t Wx^T
    dWx = sum_t x_t^T da_t             dWh = sum_t h_{t-1}^T da_t       db = sum_t da_t

Parameters are Wx (D, H), Wh (H, H), b (H,).
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


class RNNStepCache(NamedTuple):
    """What the backward of one step needs."""

    x: Array  # (N, D)
    prev_h: Array  # (N, H)
    Wx: Array  # (D, H)
    Wh: Array  # (H, H)
    gates: Array  # (N, H) tanh(a), equal to next_h


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
        If a shape or a dtype is wrong.
    """
    (next_h,), step = step_forward("rnn_step_forward", RNN(), x, (prev_h,), Wx, Wh, b)
    return next_h, RNNStepCache(x, prev_h, Wx, Wh, step.gates)


def rnn_step_backward(dnext_h: Array, cache: RNNStepCache) -> tuple[Array, Array, Array, Array, Array]:
    """Backward of :func:`rnn_step_forward`.

    Parameters
    ----------
    dnext_h : (N, H)
        Gradient of the loss with respect to ``next_h``.

    Returns
    -------
    dx (N, D), dprev_h (N, H), dWx (D, H), dWh (H, H), db (H,)

    Raises
    ------
    ValueError, TypeError
        If a gradient has a wrong shape or dtype, or the cache is from another function.
    """
    check_cache("rnn_step_backward", cache, RNNStepCache)
    x, prev_h, Wx, Wh, gates = cache
    step = Step(gates, (prev_h,), (), None, prev_h)
    return step_backward("rnn_step_backward", RNN(), (dnext_h,), x, Wx, Wh, step)


class RNN(PrimitiveCell):
    """The vanilla RNN as a :class:`~rnnlab.layers.recurrent.cell.Cell`."""

    drops_candidate = False  # tanh(a) is the state itself

    def prepare(self, ops: Primitives, params: Params, *, reused: bool = True) -> PreparedRNN:
        """See :class:`~rnnlab.layers.recurrent.cell.Cell`."""
        return PreparedRNN(ops, "rnn", RecurrentProduct(ops, params["Wh"], reused))


class PreparedRNN(PreparedPrimitive):
    """See :class:`~rnnlab.layers.recurrent.cell.ChunkedCell`; ``saved`` is not used."""

    def forward(self, step: Step) -> None:
        """h_t = tanh(a_t + h_{t-1} Wh)."""
        self._product.add(step.read, step.gates)
        if step.masks is None:
            self._ops.rnn_forward(step.gates, step.next[0])
        else:
            self._ops.rnn_regularised_forward(step.gates, step.prev[0], step.next[0], step.masks)

    def backward(self, step: Step, dstate: State, dread: Array, da: Array) -> Array | None:
        """da_t = dh_t (1 - h_t^2), dh_{t-1} = da_t Wh^T."""
        (dh,) = dstate
        if step.masks is None:
            self._ops.rnn_backward(dh, step.gates, da)
            self._product.write_backward(da, dread)
            return None
        past = self._ops.rnn_regularised_backward(dh, step.gates, da, step.masks)
        self._product.add_backward(da, dread)
        return past


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
        The real steps of each sequence. Past them the state is carried through unchanged, and x is not read.
    mask : (N, T), optional
        Instead of ``lengths``: ones for the real steps of each sequence, then zeros.
    return_state : bool
        Also return the state after each sequence's last real step.

    Returns
    -------
    h : (N, T, H)
        The hidden state after every step.
    final_h : (N, H)
        Only with ``return_state``.
    cache : RecurrentCache

    Raises
    ------
    ValueError, TypeError
        If a shape, a length or a dtype is wrong.
    """
    params = {"Wx": Wx, "Wh": Wh, "b": b}
    h, (final_h,), cache = sequence_forward(
        "rnn_forward", RNN(), x, (h0,), params, lengths=lengths, mask=mask
    )
    return (h, final_h, cache) if return_state else (h, cache)


def rnn_backward(
    dh: Array | None,
    cache: RecurrentCache,
    *,
    dfinal_h: Array | None = None,
    into: tuple[Array, Array, Array] | None = None,
) -> tuple[Array, Array, Array, Array, Array]:
    """Backward of :func:`rnn_forward`.

    Parameters
    ----------
    dh : (N, T, H) or None
        Gradient of the loss with respect to ``h``, without what flows back from later steps. None for zeros,
        if the loss reads the final state alone.
    dfinal_h : (N, H), optional
        Gradient with respect to ``final_h``.
    into : (dWx, dWh, db), optional
        Arrays that the gradients of the parameters are added to. By default they are new arrays.

    Returns
    -------
    dx (N, T, D), dh0 (N, H), dWx (D, H), dWh (H, H), db (H,)

    Raises
    ------
    ValueError, TypeError
        If a gradient or an array of ``into`` is invalid, or the cache is from another function.
    """
    finals = {"dfinal_h": dfinal_h}
    return sequence_backward("rnn_backward", RNN, dh, cache, finals, into)
