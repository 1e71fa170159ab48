"""Many steps at once: NumPy has no faster way than one step after the other."""

from __future__ import annotations

from collections.abc import Sequence

from rnnlab.ops.step_masks import ChunkMasks
from rnnlab.ops.steps import StepInputs, Steps
from rnnlab.types import Array, State


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
    return False


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
    return False
