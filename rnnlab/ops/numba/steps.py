"""Many steps at once by compiled kernels: the choice of the kernel, and how its work is divided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from rnnlab.errors import InputError, InputTypeError
from rnnlab.ops.numba import lstm_steps, one_state_steps, products
from rnnlab.ops.numba.bfloat16 import RoundedPanels, rounds
from rnnlab.ops.numba.chunk_masks import mask_arguments
from rnnlab.ops.numba.gemm import Panels
from rnnlab.ops.numba.kernel import Kernel, RefusedError, shared_by
from rnnlab.ops.numba.products import NARROW
from rnnlab.ops.numba.step_products import StepKernels
from rnnlab.ops.step_masks import ChunkMasks
from rnnlab.ops.steps import StepInputs, Steps, check_steps
from rnnlab.types import Array, State

__all__ = ["steps_backward", "steps_forward"]

SMALL = 1 << 20  # bytes of weights that fit into the second-level cache together with a step's other data
_GATES = {"rnn": (1,), "lstm": (4,), "gru": (2, 1), "simplified_gru": (2,)}  # columns of each weight in H
_FORWARD = {"lstm": lstm_steps.FORWARD, **one_state_steps.FORWARD}
_BACKWARD = {"lstm": lstm_steps.BACKWARD, **one_state_steps.BACKWARD}


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
    if not _are_steps("steps_forward", cell, gates, states, steps, masks):
        return False
    H = states[0].shape[1]
    shapes = [(H, columns * H) for columns in _GATES[cell]]
    plan = _plan("steps_forward", _FORWARD[cell], weights, shapes, gates.dtype, steps)
    if plan is None:
        return False
    arrays = [gates, *states, saved]
    if inputs is not None:
        if cell == "lstm" and plan.by_sequences and _run_narrow(plan, inputs, arrays, steps, masks):
            return True
        products.affine_into(*inputs, gates[steps.rows])
    return _run(plan, arrays, states[0], steps, masks)


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
    if not _are_steps("steps_backward", cell, gates, states, steps, masks):
        return False
    sequences, own, H = int(steps.table[0, 3]), num_rows(steps), states[0].shape[1]
    _check_number("steps_backward", "arrays of dstate", dstate, len(states))
    _check_rows("steps_backward", dh=(dh, own), da=(da, own), dstate=(dstate[0], sequences))
    shapes = [(columns * H, H) for columns in _GATES[cell]]
    plan = _plan("steps_backward", _BACKWARD[cell], weights, shapes, gates.dtype, steps)
    if plan is None:
        return False
    arrays = [dh, *dstate, gates, *states, saved, da]
    return _run(plan, arrays, states[0], steps, masks)


class _Plan(NamedTuple):
    """The kernel that runs the steps, and how its work is divided."""

    kernel: Kernel
    weights: list[Panels]
    parts: int
    by_sequences: bool  # otherwise the columns of the weight are divided


def _plan(
    function: str,
    kernels: Mapping[bool, StepKernels],
    weights: Sequence[Any],
    shapes: Sequence[tuple[int, int]],
    dtype: np.dtype,
    steps: Steps,
) -> _Plan | None:
    """The plan for these weights, which must have these shapes; None if no kernel is for them."""
    panels = _panels(function, weights, shapes, dtype)
    if panels is None:
        return None
    parts, by_sequences = choose_parts(panels, steps)
    if by_sequences not in kernels:
        return None
    exact, rounded = kernels[by_sequences]
    kernel = rounded if isinstance(panels[0], RoundedPanels) else exact
    return _Plan(kernel, panels, parts, by_sequences)


def num_rows(steps: Steps) -> int:
    """The number of rows of all steps."""
    return steps.rows.stop - steps.rows.start


def choose_parts(weights: Sequence[Any], steps: Steps) -> tuple[int, bool]:
    """The number of parts, and whether the sequences rather than the weight are divided among them."""
    small = sum(weight.panels.nbytes for weight in weights) <= SMALL
    multiplications = num_rows(steps) * sum(prod(weight.shape) for weight in weights)
    work = multiplications if small else multiplications // len(steps)
    parts = shared_by(work, weights[0].parallel_from)
    return parts, small or parts == 1


def edges_of_parts(counts: Array, parts: int) -> Array:
    """The first row of each part, and the number of rows. Parts have about the same total number of steps."""
    if parts == 1:
        return np.array([0, counts[0]])
    if counts[0] == counts[-1]:
        return np.arange(parts + 1) * counts[0] // parts
    alive = np.searchsorted(-counts, -np.arange(counts[0]), side="left")  # number of steps of each row
    done = np.concatenate([[0], np.cumsum(alive)])
    return np.searchsorted(done, done[-1] * np.arange(parts + 1) / parts).astype(np.int64)


def _panels(
    function: str, weights: Sequence[Any], shapes: Sequence[tuple[int, int]], dtype: np.dtype
) -> list[Panels] | None:
    """The weights in panels, also those that are not worth packing for single products.

    Raises
    ------
    ValueError, TypeError
        If they have another shape or dtype.
    """
    _check_number(function, "weights", weights, len(shapes))
    for weight, shape in zip(weights, shapes, strict=True):
        if weight.shape != shape:
            raise InputError(f"{function}: a weight has shape {weight.shape}, expected {shape}")
        if weight.dtype != dtype:
            raise InputTypeError(f"{function}: a weight has dtype {weight.dtype}, expected {dtype}")
    kind = RoundedPanels if rounds(dtype) else Panels
    try:
        return [weight if isinstance(weight, Panels) else kind(weight, narrow=True) for weight in weights]
    except InputTypeError:
        return None


def _run(
    plan: _Plan,
    arrays: Sequence[Array],
    h: Array,
    steps: Steps,
    masks: ChunkMasks | None,
) -> bool:
    """Run all steps; false if the arrays have a layout that the kernel does not accept."""
    table, own = steps.table, [weight.panels for weight in plan.weights]
    division = (table, edges_of_parts(table[:, 3], plan.parts)) if plan.by_sequences else (table,)
    try:
        plan.kernel.run(plan.parts, *arrays, *own, *mask_arguments(masks, h), *division)
    except RefusedError:
        return False
    return True


def _run_narrow(
    plan: _Plan,
    inputs: StepInputs,
    arrays: Sequence[Array],
    steps: Steps,
    masks: ChunkMasks | None,
) -> bool:
    """Run all steps of an LSTM with a narrow input; false if the kernel is not for these arrays."""
    (x, Wx, b), (weight,), h = inputs, plan.weights, arrays[1]
    if any(isinstance(each, RoundedPanels) or not isinstance(each, Panels) for each in (weight, Wx)):
        return False
    fit = x.ndim == 2 and len(x) == num_rows(steps) and b.shape == weight.shape[1:]
    if not fit or x.shape[1] > NARROW or Wx.shape != (x.shape[1], weight.shape[1]) or Wx.dtype != x.dtype:
        return False
    own = weight.panels, x, Wx.panels, b[None], *mask_arguments(masks, h)
    division = steps.table, edges_of_parts(steps.table[:, 3], plan.parts)
    try:
        lstm_steps.NARROW_FORWARD.run(plan.parts, *arrays, *own, *division)
    except RefusedError:
        return False
    return True


def _are_steps(
    function: str, cell: str, gates: Array, states: State, steps: Steps, masks: ChunkMasks | None
) -> bool:
    """Whether there are several steps. A single one takes less time by the primitives of a step.

    Raises
    ------
    TypeError
        If they are not Steps, or an array is not a NumPy array.
    ValueError
        If there is no such cell, an array has too few rows, or a number of arrays, probabilities or seeds is
        wrong.
    """
    check_steps(function, steps)
    if cell not in _GATES:
        raise InputError(f"{function}: cell is {cell!r}, expected one of {', '.join(_GATES)}")
    _check_number(function, "states", states, 2 if cell == "lstm" else 1)
    if len(steps) < 2:
        return False
    _, _, after, count = steps.table[-1].tolist()
    of_states = {name: (array, after + count) for name, array in zip(("h", "c"), states, strict=False)}
    _check_rows(function, gates=(gates, steps.rows.stop), **of_states)
    if masks is not None:
        _check_number(function, "probabilities of zoneout", masks.steps.zoneout, 2)
        if masks.steps.seeds is not None:
            _check_number(function, "seeds", masks.steps.seeds, 3)
        if masks.state is not None:
            _check_rows(function, state=(masks.state, int(steps.table[0, 3])))
    return True


def _check_number(function: str, what: str, given: Sequence[Any], expected: int) -> None:
    if len(given) != expected:
        raise InputError(f"{function}: {len(given)} {what} are given, expected {expected}")


def _check_rows(function: str, **arrays: tuple[Array, int]) -> None:
    for name, (array, least) in arrays.items():
        if not isinstance(array, np.ndarray):
            raise InputTypeError(f"{function}: {name} is {type(array).__name__}, expected a NumPy array")
        if array.ndim != 2:
            raise InputError(f"{function}: {name} has shape {array.shape}, expected 2 axes")
        if len(array) < least:
            raise InputError(f"{function}: {name} has {len(array)} rows, expected at least {least}")
