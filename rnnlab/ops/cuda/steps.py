"""The steps of an LSTM on CuPy: in one launch, or one by one with fewer launches than a layer's loop has."""

from __future__ import annotations

from collections.abc import Sequence

from rnnlab.ops.cuda import persistent
from rnnlab.ops.cuda.cells import lstm_backward_of_sum, lstm_forward
from rnnlab.ops.cuda.products import affine_into, matmul_add, matmul_into
from rnnlab.ops.step_masks import ChunkMasks
from rnnlab.ops.steps import StepInputs, Steps, check_steps
from rnnlab.types import Array, State

__all__ = ["steps_backward", "steps_forward"]


def steps_forward(
    cell: str,
    gates: Array,
    weights: Sequence[Array],
    states: State,
    saved: Array,
    steps: Steps,
    inputs: StepInputs | None = None,
    masks: ChunkMasks | None = None,
) -> bool:
    check_steps("steps_forward", steps)
    if cell != "lstm" or masks is not None:
        return False
    (Wh,), (h, c) = weights, states
    if persistent.forward(gates, Wh, h, c, saved, steps, inputs):
        return True
    if inputs is not None:
        affine_into(*inputs, gates[steps.rows])
    for rows, before, after in steps:
        matmul_add(h[before], Wh, gates[rows])
        lstm_forward(gates[rows], c[before], c[after], saved[rows], h[after])
    return True


def steps_backward(
    cell: str,
    dh: Array,
    dstate: State,
    gates: Array,
    weights: Sequence[Array],
    states: State,
    saved: Array,
    da: Array,
    steps: Steps,
    masks: ChunkMasks | None = None,
) -> bool:
    check_steps("steps_backward", steps)
    if cell != "lstm" or masks is not None:
        return False
    (to_h,), (dstate_h, dcell), (_, c) = weights, dstate, states
    if persistent.backward(dh, dstate_h, dcell, gates, c, saved, da, to_h, steps):
        return True
    first = steps.rows.start
    for rows, before, _ in reversed(steps):
        alive, here = rows.stop - rows.start, slice(rows.start - first, rows.stop - first)
        dnow, dc, da_now = dstate_h[:alive], dcell[:alive], da[here]
        lstm_backward_of_sum(dnow, dh[here], dc, gates[rows], c[before], saved[rows], da_now)
        matmul_into(da_now, to_h, dnow)
    return True
