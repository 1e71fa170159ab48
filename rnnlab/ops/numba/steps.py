"""Many steps at once by compiled kernels: the choice of the kernel, and how its work is divided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from rnnlab.errors import InputError, InputTypeError
from rnnlab.ops.numba import lstm_steps, products, rnn_steps
from rnnlab.ops.numba.bfloat16 import RoundedPanels
from rnnlab.ops.numba.chunk_masks import mask_arguments
from rnnlab.ops.numba.gemm import Panels
from rnnlab.ops.numba.kernel import Kernel, RefusedError, shared_by
from rnnlab.ops.numba.products import NARROW
from rnnlab.ops.step_masks import ChunkMasks
from rnnlab.ops.steps import StepInputs, Steps, check_steps
from rnnlab.types import Array, State

__all__ = ["steps_backward", "steps_forward"]

SMALL = 1 << 20  # bytes of weights that fit into the second-level cache together with a step's other data
_GATES = {"rnn": (1,), "lstm": (4,), "gru": (2, 1), "simplified_gru": (2,)}  # columns of each weight in H


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
    H = states[0].shape[1]
    shapes = [(H, columns * H) for columns in _GATES[cell]]
    if not _are_steps("steps_forward", steps, masks, gates, states):
        return False
    if not _are_panels("steps_forward", weights, shapes, gates.dtype):
        return False
    parts, by_sequences = shared(weights, steps)
    kernel = _kernel_of(cell, lstm_steps.FORWARD, rnn_steps.FORWARD, by_sequences, weights)
    if kernel is None:
        return False
    arrays = [gates, *states, saved]
    if inputs is not None:
        if cell == "lstm" and by_sequences and _run_narrow(inputs, arrays, weights[0], steps, masks, parts):
            return True
        products.affine_into(*inputs, gates[steps.rows])
    return _run(kernel, arrays, weights, states[0], steps, masks, parts, by_sequences)


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
    H = states[0].shape[1]
    shapes = [(columns * H, H) for columns in _GATES[cell]]
    if not _are_steps("steps_backward", steps, masks, gates, states):
        return False
    if not _are_panels("steps_backward", weights, shapes, gates.dtype):
        return False
    sequences, own = int(steps.table[0, 3]), number_of(steps)
    _check_rows("steps_backward", dh=(dh, own), da=(da, own), dstate=(dstate[0], sequences))
    parts, by_sequences = shared(weights, steps)
    kernel = _kernel_of(cell, lstm_steps.BACKWARD, rnn_steps.BACKWARD, by_sequences, weights)
    if kernel is None:
        return False
    arrays = [dh, *dstate, gates, *states, saved, da]
    return _run(kernel, arrays, weights, states[0], steps, masks, parts, by_sequences)


def number_of(steps: Steps) -> int:
    """The number of rows of all steps."""
    return steps.rows.stop - steps.rows.start


def shared(weights: Sequence[Any], steps: Steps) -> tuple[int, bool]:
    """The number of parts, and whether the sequences rather than the weight are divided among them."""
    small = sum(weight.panels.nbytes for weight in weights) <= SMALL
    multiplications = number_of(steps) * sum(prod(weight.shape) for weight in weights)
    work = multiplications if small else multiplications // len(steps)
    parts = shared_by(work, weights[0].parallel_from)
    return parts, small or parts == 1


def edges(counts: Array, parts: int) -> Array:
    """The first row of each part, and the number of rows. Parts have about the same total number of steps."""
    if counts[0] == counts[-1]:
        return np.arange(parts + 1) * counts[0] // parts
    alive = np.searchsorted(-counts, -np.arange(counts[0]), side="left")  # number of steps of each row
    done = np.concatenate([[0], np.cumsum(alive)])
    return np.searchsorted(done, done[-1] * np.arange(parts + 1) / parts).astype(np.int64)


def _are_panels(
    function: str, weights: Sequence[Any], shapes: Sequence[tuple[int, int]], dtype: np.dtype
) -> bool:
    """Whether the weights are in panels, as those are that are worth packing.

    Raises
    ------
    ValueError, TypeError
        If they have another shape or dtype.
    """
    if len(weights) != len(shapes):
        raise InputError(f"{function}: {len(weights)} weights are given, expected {len(shapes)}")
    for weight, shape in zip(weights, shapes, strict=True):
        if weight.shape != shape:
            raise InputError(f"{function}: a weight has shape {weight.shape}, expected {shape}")
        if weight.dtype != dtype:
            raise InputTypeError(f"{function}: a weight has dtype {weight.dtype}, expected {dtype}")
    return all(isinstance(weight, Panels) for weight in weights)


def _kernel_of(
    cell: str,
    of_lstm: Mapping[tuple[bool, bool], Kernel],
    of_others: Mapping[str, Kernel],
    by_sequences: bool,
    weights: Sequence[Any],
) -> Kernel | None:
    rounded = isinstance(weights[0], RoundedPanels)
    if cell == "lstm":
        return of_lstm[by_sequences, rounded]
    return of_others[cell] if by_sequences and not rounded else None


def _run(
    kernel: Kernel,
    arrays: Sequence[Array],
    weights: Sequence[Any],
    h: Array,
    steps: Steps,
    masks: ChunkMasks | None,
    parts: int,
    by_sequences: bool,
) -> bool:
    """Run all steps; false if the arrays have a layout that the kernel does not accept."""
    table, own = steps.table, [weight.panels for weight in weights]
    if isinstance(weights[0], RoundedPanels):
        own.append(weights[0].scratch(int(table[0, 3]), parts if by_sequences else 1))
    division = (table, edges(table[:, 3], parts)) if by_sequences else (table,)
    try:
        kernel.run(parts, *arrays, *own, *mask_arguments(masks, h), *division)
    except RefusedError:
        return False
    return True


def _run_narrow(
    inputs: StepInputs,
    arrays: Sequence[Array],
    weight: Any,
    steps: Steps,
    masks: ChunkMasks | None,
    parts: int,
) -> bool:
    """Run all steps of an LSTM with a narrow input; false if the kernel is not for these arrays."""
    (x, Wx, b), h = inputs, arrays[1]
    if any(isinstance(each, RoundedPanels) or not isinstance(each, Panels) for each in (weight, Wx)):
        return False
    fit = x.ndim == 2 and len(x) == number_of(steps) and b.shape == weight.shape[1:]
    if not fit or x.shape[1] > NARROW or Wx.shape != (x.shape[1], weight.shape[1]) or Wx.dtype != x.dtype:
        return False
    own = weight.panels, x, Wx.panels, b[None], *mask_arguments(masks, h)
    try:
        kernel = lstm_steps.NARROW_FORWARD
        kernel.run(parts, *arrays, *own, steps.table, edges(steps.table[:, 3], parts))
    except RefusedError:
        return False
    return True


def _are_steps(function: str, steps: Steps, masks: ChunkMasks | None, gates: Array, states: State) -> bool:
    """Whether there are steps.

    Raises
    ------
    TypeError
        If they are not Steps.
    ValueError
        If an array has too few rows for them.
    """
    check_steps(function, steps)
    if not steps:
        return False
    _, _, after, count = steps.table[-1].tolist()
    of_states = {name: (array, after + count) for name, array in zip(("h", "c"), states, strict=False)}
    _check_rows(function, gates=(gates, steps.rows.stop), **of_states)
    if masks is not None and masks.state is not None:
        _check_rows(function, state=(masks.state, int(steps.table[0, 3])))
    return True


def _check_rows(function: str, **arrays: tuple[Array, int]) -> None:
    for name, (array, least) in arrays.items():
        if len(array) < least:
            raise InputError(f"{function}: {name} has {len(array)} rows, expected at least {least}")
