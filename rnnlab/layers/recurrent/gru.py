"""Gated recurrent unit, with the reset gate before the product (Chen, Dong and Li 2016, eq. 8).

    z_t = sigmoid(x_t Wx_z + h_{t-1} Wh_z + b_z)                 update gate, (N, H)
    r_t = sigmoid(x_t Wx_r + h_{t-1} Wh_r + b_r)                 reset gate, (N, H)
    g_t = tanh(x_t Wx_g + (r_t * h_{t-1}) Wh_g + b_g)            candidate (the paper's h), (N, H)
    h_t = (1 - z_t) * g_t + z_t * h_{t-1}                        hidden state (the paper's s), (N, H)

Backward, with dh_t the total gradient that reaches h_t:

    da_g = dh_t (1 - z) (1 - g^2)                  da_z = dh_t (h_{t-1} - g) z (1 - z)
    d(r h) = da_g Wh_g^T                           da_r = d(r h) h_{t-1} r (1 - r)
    dh_{t-1} += dh_t z + d(r h) r + da_z Wh_z^T + da_r Wh_r^T

Parameters are stacked z, r, g along the last axis: Wx (D, 3H), Wh (H, 3H), b (3H,).
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


class GRUStepCache(NamedTuple):
    """What the backward of one step needs."""

    x: Array  # (N, D)
    prev_h: Array  # (N, H)
    Wx: Array  # (D, 3H)
    Wh: Array  # (H, 3H)
    gates: Array  # (N, 3H) z, r, g
    reset_h: Array  # (N, H) r * prev_h


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
        If a shape or a dtype is wrong.
    """
    (next_h,), step = step_forward("gru_step_forward", GRU(), x, (prev_h,), Wx, Wh, b)
    return next_h, GRUStepCache(x, prev_h, Wx, Wh, step.gates, step.saved)


def gru_step_backward(dnext_h: Array, cache: GRUStepCache) -> tuple[Array, Array, Array, Array, Array]:
    """Backward of :func:`gru_step_forward`.

    Parameters
    ----------
    dnext_h : (N, H)
        Gradient of the loss with respect to ``next_h``.

    Returns
    -------
    dx (N, D), dprev_h (N, H), dWx (D, 3H), dWh (H, 3H), db (3H,)

    Raises
    ------
    ValueError, TypeError
        If a gradient has a wrong shape or dtype, or the cache is from another function.
    """
    check_cache("gru_step_backward", cache, GRUStepCache)
    x, prev_h, Wx, Wh, gates, reset_h = cache
    step = Step(gates, (prev_h,), (), reset_h, prev_h)
    return step_backward("gru_step_backward", GRU(), (dnext_h,), x, Wx, Wh, step)


class GRU(PrimitiveCell):
    """The GRU as a :class:`~rnnlab.layers.recurrent.cell.Cell`."""

    num_gates = 3
    carries_h = True

    def prepare(self, ops: Primitives, params: Params, *, reused: bool = True) -> PreparedGRU:
        """See :class:`~rnnlab.layers.recurrent.cell.Cell`."""
        return PreparedGRU(ops, params["Wh"], reused)


class PreparedGRU(PreparedPrimitive):
    """See :class:`~rnnlab.layers.recurrent.cell.ChunkedCell`; ``saved`` is r h_{t-1}.

    A step has two products, because the candidate's product needs the reset gate.
    """

    saves = 1  # r h_{t-1}

    def __init__(self, ops: Primitives, Wh: Array, reused: bool) -> None:
        H = Wh.shape[0]
        self._of_gates = RecurrentProduct(ops, Wh[:, : 2 * H], reused)
        self._of_candidate = RecurrentProduct(ops, Wh[:, 2 * H :], reused)
        super().__init__(ops, "gru", self._of_gates, self._of_candidate)

    def forward(self, step: Step) -> None:
        """z and r, then the candidate from r h_{t-1}, then h_t."""
        (prev_h,), (h,), H = step.prev, step.next, step.read.shape[1]
        self._of_gates.add(step.read, step.gates[:, : 2 * H])
        self._ops.gru_gates_forward(step.gates, step.read, step.saved)
        self._of_candidate.add(step.saved, step.gates[:, 2 * H :])
        if step.masks is None:
            self._ops.gru_candidate_forward(step.gates, prev_h, h)
        else:
            self._ops.gru_candidate_regularised_forward(step.gates, prev_h, h, step.masks)

    def backward(self, step: Step, dstate: State, dread: Array, da: Array) -> Array | None:
        """The candidate, then d(r h_{t-1}) = da_h Wh_h^T, then r and z."""
        (dh,), past, H = dstate, None, step.read.shape[1]
        if step.masks is None:
            self._ops.gru_candidate_backward(dh, step.gates, step.prev[0], da)
        else:
            past = self._ops.gru_candidate_regularised_backward(dh, step.gates, step.prev[0], da, step.masks)
        dreset_h = self._ops.empty(dh.shape, dh.dtype)
        self._of_candidate.write_backward(da[:, 2 * H :], dreset_h)
        self._ops.gru_gates_backward(dreset_h, dread, step.gates, step.read, da)
        self._of_gates.add_backward(da[:, : 2 * H], dread)
        return past

    def add_gradients(self, read: Array, saved: Array, da: Array, grads: Params) -> None:
        """dWh of the gates from h_{t-1}, of the candidate from r h_{t-1}."""
        dWh, H = grads["Wh"], read.shape[1]
        self._of_gates.add_gradient(read, da[:, : 2 * H], dWh[:, : 2 * H])
        self._of_candidate.add_gradient(saved, da[:, 2 * H :], dWh[:, 2 * H :])


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
        "gru_forward", GRU(), x, (h0,), params, lengths=lengths, mask=mask
    )
    return (h, final_h, cache) if return_state else (h, cache)


def gru_backward(
    dh: Array | None,
    cache: RecurrentCache,
    *,
    dfinal_h: Array | None = None,
    into: tuple[Array, Array, Array] | None = None,
) -> tuple[Array, Array, Array, Array, Array]:
    """Backward of :func:`gru_forward`.

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
    dx (N, T, D), dh0 (N, H), dWx (D, 3H), dWh (H, 3H), db (3H,)

    Raises
    ------
    ValueError, TypeError
        If a gradient or an array of ``into`` is invalid, or the cache is from another function.
    """
    finals = {"dfinal_h": dfinal_h}
    return sequence_backward("gru_backward", GRU, dh, cache, finals, into)
