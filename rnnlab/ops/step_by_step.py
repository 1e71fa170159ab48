"""The recurrence of each cell over the steps of a chunk, step by step, by the primitives of a library."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from rnnlab.errors import InputError
from rnnlab.ops.steps import StepInputs, Steps, check_steps
from rnnlab.types import Array

__all__ = ["StepByStep", "step_by_step"]
Primitive = Callable[..., None]


class StepByStep(NamedTuple):
    """The recurrences; :class:`rnnlab.ops.api.Primitives` documents each."""

    rnn_steps_forward: Primitive
    rnn_steps_backward: Primitive
    lstm_steps_forward: Primitive
    lstm_steps_backward: Primitive
    gru_steps_forward: Primitive
    gru_steps_backward: Primitive
    simplified_gru_steps_forward: Primitive
    simplified_gru_steps_backward: Primitive


def step_by_step(arrays: Any, products: Any, cells: Any) -> StepByStep:
    """The recurrences of all cells.

    Parameters
    ----------
    arrays : module
        With ``empty``.
    products : module
        With ``affine_into``, ``matmul_into`` and ``matmul_add``.
    cells : module
        With the forward and backward of one step of each cell, and ``lstm_backward_of_sum``.
    """
    return StepByStep(
        *_rnn(products, cells),
        *_lstm(products, cells),
        *_gru(arrays, products, cells),
        *_simplified_gru(products, cells),
    )


def _rnn(products: Any, cells: Any) -> tuple[Primitive, Primitive]:
    def rnn_steps_forward(
        gates: Array, Wh: Array, h: Array, steps: Steps, inputs: StepInputs | None = None
    ) -> None:
        check_steps("rnn_steps_forward", steps)
        if inputs is not None:
            products.affine_into(*inputs, gates[steps.rows])
        for rows, before, after in steps:
            products.matmul_add(h[before], Wh, gates[rows])
            cells.rnn_forward(gates[rows], h[after])

    def rnn_steps_backward(dh: Array, dstate: Array, h: Array, da: Array, to_h: Array, steps: Steps) -> None:
        for here, _, _, after in _backwards("rnn_steps_backward", steps, dh, dstate):
            dnow = dstate[: here.stop - here.start]
            dnow += dh[here]
            cells.rnn_backward(dnow, h[after], da[here])
            products.matmul_into(da[here], to_h, dnow)

    return rnn_steps_forward, rnn_steps_backward


def _lstm(products: Any, cells: Any) -> tuple[Primitive, Primitive]:
    def lstm_steps_forward(
        gates: Array,
        Wh: Array,
        h: Array,
        c: Array,
        tanh_c: Array,
        steps: Steps,
        inputs: StepInputs | None = None,
    ) -> None:
        check_steps("lstm_steps_forward", steps)
        if inputs is not None:
            products.affine_into(*inputs, gates[steps.rows])
        for rows, before, after in steps:
            products.matmul_add(h[before], Wh, gates[rows])
            cells.lstm_forward(gates[rows], c[before], c[after], tanh_c[rows], h[after])

    def lstm_steps_backward(
        dh: Array,
        dstate: Array,
        dcell: Array,
        gates: Array,
        c: Array,
        tanh_c: Array,
        da: Array,
        to_h: Array,
        steps: Steps,
    ) -> None:
        for here, rows, before, _ in _backwards("lstm_steps_backward", steps, dh, dstate):
            alive = here.stop - here.start
            dnow, dc, da_now = dstate[:alive], dcell[:alive], da[here]
            cells.lstm_backward_of_sum(dnow, dh[here], dc, gates[rows], c[before], tanh_c[rows], da_now)
            products.matmul_into(da_now, to_h, dnow)

    return lstm_steps_forward, lstm_steps_backward


def _gru(arrays: Any, products: Any, cells: Any) -> tuple[Primitive, Primitive]:
    def gru_steps_forward(
        gates: Array,
        Wh_gates: Array,
        Wh_candidate: Array,
        h: Array,
        reset_h: Array,
        steps: Steps,
        inputs: StepInputs | None = None,
    ) -> None:
        check_steps("gru_steps_forward", steps)
        H = h.shape[1]
        if inputs is not None:
            products.affine_into(*inputs, gates[steps.rows])
        for rows, before, after in steps:
            now = gates[rows]
            products.matmul_add(h[before], Wh_gates, now[:, : 2 * H])
            cells.gru_gates_forward(now, h[before], reset_h[rows])
            products.matmul_add(reset_h[rows], Wh_candidate, now[:, 2 * H :])
            cells.gru_candidate_forward(now, h[before], h[after])

    def gru_steps_backward(
        dh: Array,
        dstate: Array,
        gates: Array,
        h: Array,
        da: Array,
        gates_to_h: Array,
        candidate_to_h: Array,
        steps: Steps,
    ) -> None:
        H, dreset = h.shape[1], arrays.empty(dstate.shape, dstate.dtype)
        for here, rows, before, _ in _backwards("gru_steps_backward", steps, dh, dstate):
            alive = here.stop - here.start
            dnow, da_now, dreset_h = dstate[:alive], da[here], dreset[:alive]
            dnow += dh[here]
            cells.gru_candidate_backward(dnow, gates[rows], h[before], da_now)
            products.matmul_into(da_now[:, 2 * H :], candidate_to_h, dreset_h)
            cells.gru_gates_backward(dreset_h, dnow, gates[rows], h[before], da_now)
            products.matmul_add(da_now[:, : 2 * H], gates_to_h, dnow)

    return gru_steps_forward, gru_steps_backward


def _simplified_gru(products: Any, cells: Any) -> tuple[Primitive, Primitive]:
    def simplified_gru_steps_forward(
        gates: Array, Wh: Array, h: Array, steps: Steps, inputs: StepInputs | None = None
    ) -> None:
        check_steps("simplified_gru_steps_forward", steps)
        if inputs is not None:
            products.affine_into(*inputs, gates[steps.rows])
        for rows, before, after in steps:
            products.matmul_add(h[before], Wh, gates[rows])
            cells.simplified_gru_forward(gates[rows], h[before], h[after])

    def simplified_gru_steps_backward(
        dh: Array, dstate: Array, gates: Array, h: Array, da: Array, to_h: Array, steps: Steps
    ) -> None:
        for here, rows, before, _ in _backwards("simplified_gru_steps_backward", steps, dh, dstate):
            dnow, da_now = dstate[: here.stop - here.start], da[here]
            dnow += dh[here]
            cells.simplified_gru_backward(dnow, gates[rows], h[before], da_now)
            products.matmul_add(da_now, to_h, dnow)

    return simplified_gru_steps_forward, simplified_gru_steps_backward


def _backwards(
    function: str, steps: Steps, dh: Array, dstate: Array
) -> Iterator[tuple[slice, slice, slice, slice]]:
    """Each step from the last to the first: its rows among those of these steps, and its three slices.

    Raises
    ------
    TypeError
        If ``steps`` is not Steps.
    ValueError
        If ``dh`` or ``dstate`` has too few rows.
    """
    check_steps(function, steps)
    rows, first = steps.rows, steps.rows.start
    sequences = steps.table[0, 3] if steps else 0
    for name, array, least in (("dh", dh, rows.stop - first), ("dstate", dstate, sequences)):
        if len(array) < least:
            raise InputError(f"{function}: {name} has {len(array)} rows, expected at least {least}")
    return (
        (slice(rows.start - first, rows.stop - first), rows, before, after)
        for rows, before, after in reversed(steps)
    )
