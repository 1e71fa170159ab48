"""The recurrence of an LSTM over the steps of a chunk, step by step, by the primitives of a library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rnnlab.ops.steps import StepInputs, Steps, check_steps
from rnnlab.types import Array

__all__ = ["lstm_step_by_step"]


def lstm_step_by_step(products: Any, cells: Any) -> tuple[Callable[..., None], Callable[..., None]]:
    """``lstm_steps_forward`` and ``lstm_steps_backward``.

    Parameters
    ----------
    products : module
        With ``affine_into``, ``matmul_into`` and ``matmul_add``.
    cells : module
        With ``lstm_forward`` and ``lstm_backward_of_sum``.
    """
    affine_into, matmul_into, matmul_add = products.affine_into, products.matmul_into, products.matmul_add
    lstm_forward, lstm_backward_of_sum = cells.lstm_forward, cells.lstm_backward_of_sum

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
            affine_into(*inputs, gates[steps.rows])
        for rows, before, after in steps:
            matmul_add(h[before], Wh, gates[rows])
            lstm_forward(gates[rows], c[before], c[after], tanh_c[rows], h[after])

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
        check_steps("lstm_steps_backward", steps)
        first = steps[0][0].start if steps else 0
        for rows, before, _ in reversed(steps):
            here = slice(rows.start - first, rows.stop - first)
            alive = rows.stop - rows.start
            dnow, dc, da_now = dstate[:alive], dcell[:alive], da[here]
            lstm_backward_of_sum(dnow, dh[here], dc, gates[rows], c[before], tanh_c[rows], da_now)
            matmul_into(da_now, to_h, dnow)

    return lstm_steps_forward, lstm_steps_backward
