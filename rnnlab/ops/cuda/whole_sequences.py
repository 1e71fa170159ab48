"""All steps of an LSTM in one launch, with whole sequences in a block, if the weight fits one multiprocessor.

A block holds the whole weight in registers and shared memory, and computes everything that its sequences read
at their next step. Blocks therefore do not wait for each other, and there may be any number of them. The
kernels are ``lstm_sequences_forward`` and ``_backward`` in ``lstm_sequences.cu``, compiled for each layout.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import cupy as cp

from rnnlab.ops.cuda.graphs import uploaded
from rnnlab.ops.cuda.launch import NULL, WARP, check_contiguous, launch
from rnnlab.ops.steps import Steps
from rnnlab.types import Array

__all__ = [
    "WholeLayout",
    "backward",
    "constants_of",
    "forward",
    "indexable",
    "limits",
    "whole_layout_for",
    "whole_layout_on",
]

THREADS = 256  # maximum threads of a block: SEQUENCE_THREADS of lstm_sequences.cu
COLUMNS = 8  # columns of a thread, as in lstm_sequences.cu
SPLITS = {False: 4, True: 16}  # threads with the same columns, forward and backward, as in lstm_sequences.cu
# The number of k's that a thread keeps in registers, by the bytes of an element and the rows of a block:
# nearly as many as compile without spilling. Constants to tune on a device.
HELD = {4: {1: 24, 2: 22, 4: 18}, 8: {1: 10, 2: 8, 4: 4}}
_LARGEST = 2**31 - 1  # the largest row index of the kernels


class WholeLayout(NamedTuple):
    """How the work is divided among blocks."""

    rows: int  # sequences of a block
    quads: int  # groups of four k's in a thread
    held: int  # number of k's in registers; the others are in shared memory
    blocks: int
    threads: int  # threads of a block
    shared: int  # bytes of shared memory


def whole_layout_for(
    N: int, H: int, itemsize: int, multiprocessors: int, shared: int, backward: bool
) -> WholeLayout | None:
    """The layout, or None if the weight does not fit.

    A block has the fewest sequences for which all blocks run at the same time, at most 4 and at most as many
    as fit.

    Parameters
    ----------
    N, H : int
        Rows and hidden units.
    itemsize : int
        Bytes of an element.
    multiprocessors, shared : int
        The device's number of multiprocessors, and the bytes of shared memory that a block may have.
    backward : bool
        Whether the layout is for the backward.
    """
    units = 2 * WARP // SPLITS[False]  # units of a warp
    threads = -(-H // units) * WARP
    if not multiprocessors or threads > THREADS:
        return None
    enough = next((rows for rows in (1, 2) if N <= rows * multiprocessors), 4)
    quads = 4 if threads <= THREADS // 2 else 8
    for rows in (4, 2, 1):
        held = min(HELD[itemsize][rows], 4 * quads)
        numbers = (4 * quads - held) * COLUMNS * THREADS + 2 * rows * 4 * SPLITS[backward] * quads
        if rows <= enough and numbers * itemsize <= shared:
            return WholeLayout(rows, quads, held, -(-N // rows), threads, numbers * itemsize)
    return None


@functools.lru_cache(maxsize=1024)
def whole_layout_on(device: int, N: int, H: int, itemsize: int, backward: bool) -> WholeLayout | None:
    """The layout of :func:`whole_layout_for` on the device of this number."""
    return whole_layout_for(N, H, itemsize, *limits(device), backward)


@functools.cache
def limits(device: int) -> tuple[int, int]:
    """The number of multiprocessors, and the bytes of shared memory that a block may have."""
    attributes = cp.cuda.Device(device).attributes
    return attributes["MultiProcessorCount"], attributes["MaxSharedMemoryPerBlockOptin"]


def indexable(steps: Steps, weight: Array) -> bool:
    """Whether the kernels' integers are large enough for these rows and this weight."""
    _, _, after, alive = steps.table[-1].tolist()
    strides = weight.strides
    far = sum(size * stride for size, stride in zip(weight.shape, strides, strict=True)) // weight.itemsize
    return after + alive <= _LARGEST and min(strides) >= 0 and far <= _LARGEST


def forward(
    layout: WholeLayout, steps: Steps, gates: Array, h: Array, c: Array, tanh_c: Array, weight: Array
) -> None:
    """``lstm_steps_forward`` of gates that are x Wx + b."""
    check_contiguous(gates, h, c, tanh_c)
    arguments = gates, h, c, tanh_c, weight, *_numbers(steps, h.shape[1], weight)
    launch("lstm_sequences_forward", h.dtype, *_grid(layout, arguments))


def backward(
    layout: WholeLayout,
    steps: Steps,
    dh: Array,
    dstate: Array,
    dcell: Array,
    gates: Array,
    c: Array,
    tanh_c: Array,
    da: Array,
    to_h: Array,
) -> None:
    """``lstm_steps_backward``."""
    check_contiguous(dh, dstate, dcell, gates, c, tanh_c, da)
    arguments = dh, dstate, dcell, gates, c, tanh_c, da, to_h, *_numbers(steps, c.shape[1], to_h)
    launch("lstm_sequences_backward", c.dtype, *_grid(layout, arguments))


def constants_of(layout: WholeLayout) -> tuple[str, ...]:
    """The definitions with which the kernels are compiled for a layout."""
    return f"-DBLOCK_ROWS={layout.rows}", f"-DQUADS={layout.quads}", f"-DHELD={layout.held}"


def _grid(layout: WholeLayout, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    return layout.blocks, layout.threads, arguments, layout.shared, False, constants_of(layout)


def _numbers(steps: Steps, H: int, weight: Array) -> tuple[Any, ...]:
    """The arguments after the arrays. Steps that all have the same rows need no table."""
    start, before, after, alive = steps.table[0].tolist()
    same = alive == int(steps.table[-1, 3])
    strides = (stride // weight.itemsize for stride in weight.strides)
    return (NULL if same else uploaded(steps.table), len(steps), H, *strides, start, before, after, alive)
