"""Simplified GRU: a GRU without the reset gate (Chen, Dong and Li 2016, eq. 9).

    z_t = sigmoid(x_t Wx_z + h_{t-1} Wh_z + b_z)        update gate, (N, H)
    g_t = tanh(x_t Wx_g + h_{t-1} Wh_g + b_g)           candidate, (N, H)
    h_t = (1 - z_t) * g_t + z_t * h_{t-1}               hidden state, (N, H)

Backward, with dh_t the total gradient that reaches h_t:

    da_z = dh_t (h_{t-1} - g_t) z (1 - z)               da_g = dh_t (1 - z) (1 - g^2)
    dh_{t-1} += dh_t z + da_t Wh^T                      dx_t = da_t Wx^T

Parameters are stacked z, g along the last axis: Wx (D, 2H), Wh (H, 2H), b (2H,).
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


class SimplifiedGRUStepCache(NamedTuple):
    """What the backward of one step needs."""

    x: Array  # (N, D)
    prev_h: Array  # (N, H)
    Wx: Array  # (D, 2H)
    Wh: Array  # (H, 2H)
    gates: Array  # (N, 2H) z, g


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
        If a shape or a dtype is wrong.
    """
    function = "simplified_gru_step_forward"
    (next_h,), step = step_forward(function, SimplifiedGRU(), x, (prev_h,), Wx, Wh, b)
    return next_h, SimplifiedGRUStepCache(x, prev_h, Wx, Wh, step.gates)


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

    Raises
    ------
    ValueError, TypeError
        If a gradient has a wrong shape or dtype, or the cache is from another function.
    """
    check_cache("simplified_gru_step_backward", cache, SimplifiedGRUStepCache)
    x, prev_h, Wx, Wh, gates = cache
    step = Step(gates, (prev_h,), (), None, prev_h)
    return step_backward("simplified_gru_step_backward", SimplifiedGRU(), (dnext_h,), x, Wx, Wh, step)


class SimplifiedGRU(PrimitiveCell):
    """The simplified GRU as a :class:`~rnnlab.layers.recurrent.cell.Cell`."""

    num_gates = 2
    carries_h = True

    def prepare(self, ops: Primitives, params: Params, *, reused: bool = True) -> PreparedSimplifiedGRU:
        """See :class:`~rnnlab.layers.recurrent.cell.Cell`."""
        return PreparedSimplifiedGRU(ops, "simplified_gru", RecurrentProduct(ops, params["Wh"], reused))


class PreparedSimplifiedGRU(PreparedPrimitive):
    """See :class:`~rnnlab.layers.recurrent.cell.ChunkedCell`; ``saved`` is not used."""

    def forward(self, step: Step) -> None:
        """h_t = (1 - z) g + z h_{t-1}."""
        self._product.add(step.read, step.gates)
        if step.masks is None:
            self._ops.simplified_gru_forward(step.gates, step.prev[0], step.next[0])
        else:
            self._ops.simplified_gru_regularised_forward(step.gates, step.prev[0], step.next[0], step.masks)

    def backward(self, step: Step, dstate: State, dread: Array, da: Array) -> Array | None:
        """dh_{t-1} = dh_t z + da_t Wh^T."""
        (dh,), past = dstate, None
        if step.masks is None:
            self._ops.simplified_gru_backward(dh, step.gates, step.prev[0], da)
        else:
            past = self._ops.simplified_gru_regularised_backward(dh, step.gates, step.prev[0], da, step.masks)
        self._product.add_backward(da, dread)
        return past


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
        "simplified_gru_forward", SimplifiedGRU(), x, (h0,), params, lengths=lengths, mask=mask
    )
    return (h, final_h, cache) if return_state else (h, cache)


def simplified_gru_backward(
    dh: Array | None,
    cache: RecurrentCache,
    *,
    dfinal_h: Array | None = None,
    into: tuple[Array, Array, Array] | None = None,
) -> tuple[Array, Array, Array, Array, Array]:
    """Backward of :func:`simplified_gru_forward`.

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
    dx (N, T, D), dh0 (N, H), dWx (D, 2H), dWh (H, 2H), db (2H,)

    Raises
    ------
    ValueError, TypeError
        If a gradient or an array of ``into`` is invalid, or the cache is from another function.
    """
    finals = {"dfinal_h": dfinal_h}
    return sequence_backward("simplified_gru_backward", SimplifiedGRU, dh, cache, finals, into)
