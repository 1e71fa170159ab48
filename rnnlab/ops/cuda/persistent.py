"""All steps of an LSTM in one launch, if its recurrent weight fits into on-chip memory.

Step by step, a sequence needs several launches per step, which read the recurrent weight each time. A single
launch keeps the weight on the chip for all steps of a chunk (persistent RNNs, Diamos et al. 2016), in one of
two ways:

- whole sequences in a block, which holds the whole weight: see :mod:`rnnlab.ops.cuda.whole_sequences`;
- units in a block: it holds its share of the weight in shared memory, with a barrier of the blocks that work
  on the same rows after each step: ``lstm_steps_forward`` and ``_backward`` in ``lstm_steps.cu``.

The environment variable RNNLAB_PERSISTENT selects one of them: "0" launches each step separately; "1" uses a
single launch wherever the weight fits; "block" uses only whole sequences in a block, and "grid" only
barriers, each wherever the weight fits. If it is unset, :data:`FASTER_IN_BLOCKS` and :data:`FASTER` decide.
Products in bfloat16 are always computed step by step. A single launch neither rounds the factors of products
to TensorFloat-32 nor splits them.
"""

from __future__ import annotations

import functools
import os
from typing import Any, NamedTuple

import cupy as cp
import numpy as np

from rnnlab.errors import InputError, InputTypeError
from rnnlab.ops.cuda import whole_sequences
from rnnlab.ops.cuda.factors import unrounded
from rnnlab.ops.cuda.graphs import uploaded
from rnnlab.ops.cuda.launch import WARP, check_contiguous, launch
from rnnlab.ops.cuda.products import affine_into
from rnnlab.ops.cuda.whole_sequences import WholeLayout, whole_layout_on
from rnnlab.ops.steps import StepInputs, Steps, check_steps
from rnnlab.types import Array

__all__ = ["FASTER", "FASTER_IN_BLOCKS", "Layout", "backward", "forward", "layout_for"]
# Where whole sequences in a block are used: the maximum rows per multiprocessor, and the maximum hidden
# units. Empty until ``python -m benchmarks persistent`` has measured them on a GPU.
FASTER_IN_BLOCKS: dict[str, tuple[int, int]] = {}
# Where barriers are used otherwise: minimum and maximum rows, and maximum hidden units, as measured on an
# NVIDIA H100 by ``python -m benchmarks persistent``; float64 was not measured.
FASTER: dict[str, tuple[tuple[int, int, int], ...]] = {
    "float32": ((2, 16, 1024), (2, 64, 512), (1, 128, 256), (1, 256, 128))
}

# Constants to tune on a device.
THREADS = 512  # maximum threads of a block: GRID_THREADS of common.cu, which bounds a thread's registers
SPLITS = 32  # maximum splits of a sum over k; one thread adds their results in order
READ = {False: 4, True: 16}  # cost of a read, forward and backward, relative to that of one unit of one row
TILE = 4  # rows that a thread works on at once: ROWS of lstm_steps.cu
COUNTER_STRIDE = 32  # words between the barrier counters of two parts, as in lstm_steps.cu


class Layout(NamedTuple):
    """How the work is divided among blocks."""

    units: int  # units of a block
    parts: int  # parts of the rows: a block has every parts-th row
    rows: int  # rows that a block works on at a time, a multiple of TILE
    splits: int  # splits of each sum
    blocks: int
    threads: int  # threads of a block
    shared: int  # bytes of shared memory


def layout_for(
    N: int, H: int, itemsize: int, multiprocessors: int, shared: int, backward: bool
) -> Layout | None:
    """The layout of least cost, or None if the weight does not fit.

    There is at most one block per multiprocessor, so that all blocks run at the same time. With more units
    per block, fewer blocks share a row, the rows are divided into more parts, and a block reads fewer results
    of other blocks. With fewer units per block, more shared memory is left for splitting sums.

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
    best, least = None, float("inf")
    several = 4 if backward else 1  # a thread has four gates of a unit, or four units
    quads = -(-(4 * H if backward else H) // 4)  # groups of four terms in a sum
    for units in range(several, THREADS // TILE + 1, several):
        columns = units // several
        groups = -(-H // units)
        if groups > multiprocessors:
            continue
        parts = max(1, min(multiprocessors // groups, N // TILE))
        own = -(-N // parts)
        tiles = -(-own // TILE)
        together = min(tiles, THREADS // (TILE * units))
        for splits in range(min(THREADS // (columns * together), SPLITS, quads), 0, -1):
            weight = 4 * splits * -(-quads // splits)  # in columns of four, as the sums
            needed = 4 * columns * (weight + TILE * splits * together) * itemsize
            if needed > shared:
                continue
            multiplying = columns * together * splits  # threads; THREADS / 2 hide nearly all latencies
            cost = tiles * (units * max(1.0, THREADS / 2 / multiplying) + READ[backward])
            if cost < least:
                threads = -(-max(multiplying, TILE * together * units) // WARP) * WARP
                best = Layout(units, parts, TILE * together, splits, groups * parts, threads, needed)
                least = cost
            break
    return best


def forward(
    gates: Array, Wh: Array, h: Array, c: Array, tanh_c: Array, steps: Steps, inputs: StepInputs | None
) -> bool:
    """The forward of an LSTM's steps in one launch; false if they are not run in one.

    The arguments are those of :func:`rnnlab.ops.cuda.steps.steps_forward`.
    """
    weight = unrounded(Wh)
    H = h.shape[-1]
    of_rows = {"gates": (gates, "rows", 4 * H), "saved": (tanh_c, "rows", H)}
    of_states = {"h": (h, "states", H), "c": (c, "states", H)}
    _check_arrays("steps_forward", steps, Wh, (H, 4 * H), **of_rows, **of_states)
    layout = _choose(steps, h, weight, backward=False)
    if layout is None:
        return False
    if inputs is not None:
        affine_into(*inputs, gates[steps.rows])
    if isinstance(layout, WholeLayout):
        whole_sequences.forward(layout, steps, gates, h, c, tanh_c, weight)
        return True
    check_contiguous(gates, h, c, tanh_c)
    _launch("lstm_steps_forward", layout, steps, h, gates, h, c, tanh_c, weight=weight)
    return True


def backward(
    dh: Array,
    dstate: Array,
    dcell: Array,
    gates: Array,
    c: Array,
    tanh_c: Array,
    da: Array,
    to_h: Array,
    steps: Steps,
) -> bool:
    """The backward of an LSTM's steps in one launch, as :func:`forward`."""
    weight = unrounded(to_h)
    H = c.shape[-1]
    of_forward = {"gates": (gates, "rows", 4 * H), "saved": (tanh_c, "rows", H), "c": (c, "states", H)}
    own = {"dh": (dh, "rows of these steps", H), "da": (da, "rows of these steps", 4 * H)}
    of_sequences = {"dstate": (dstate, "sequences", H), "dcell": (dcell, "sequences", H)}
    _check_arrays("steps_backward", steps, to_h, (4 * H, H), **of_forward, **own, **of_sequences)
    layout = _choose(steps, c, weight, backward=True)
    if layout is None:
        return False
    if isinstance(layout, WholeLayout):
        whole_sequences.backward(layout, steps, dh, dstate, dcell, gates, c, tanh_c, da, weight)
        return True
    check_contiguous(dh, dstate, dcell, gates, c, tanh_c, da)
    _launch("lstm_steps_backward", layout, steps, c, dh, dstate, dcell, gates, c, tanh_c, da, weight=weight)
    return True


def _asked() -> str:
    asked = os.environ.get("RNNLAB_PERSISTENT", "")
    if asked not in ("", "0", "1", "block", "grid"):
        raise InputError(f"RNNLAB_PERSISTENT is {asked!r}, expected '0', '1', 'block' or 'grid'")
    return asked


_asked()  # an invalid value is reported at import


def _check_arrays(
    function: str, steps: Steps, weight: Any, shape: tuple[int, int], **arrays: tuple[Array, str, int]
) -> None:
    """Check the arrays, because one launch accesses them according to the steps and H only.

    ``arrays`` maps a name to an array, the kind of its rows, and its number of columns; ``shape`` is the
    weight's.
    """
    check_steps(function, steps)
    if not steps:
        return
    if weight.shape != shape:
        raise InputError(f"{function}: the weight has shape {weight.shape}, expected {shape}")
    rows, (_, _, after, alive) = steps.rows, steps.table[-1].tolist()
    least = {
        "rows": rows.stop,
        "states": after + alive,
        "rows of these steps": rows.stop - rows.start,
        "sequences": int(steps.table[0, 3]),
    }
    for name, (array, kind, columns) in arrays.items():
        if not isinstance(array, cp.ndarray) or array.dtype != weight.dtype:
            found = getattr(array, "dtype", type(array).__name__)
            raise InputTypeError(f"{function}: {name} is {found}, expected a CuPy array of {weight.dtype}")
        if array.ndim != 2 or array.shape[1] != columns or len(array) < least[kind]:
            raise InputError(
                f"{function}: {name} has shape {array.shape}, expected {columns} columns and at least "
                f"{least[kind]} {kind}"
            )


def _choose(steps: Steps, states: Array, weight: Array | None, backward: bool) -> WholeLayout | Layout | None:
    """The layout of one launch, or None to run step by step."""
    asked = _asked()
    H = states.shape[1]
    if asked == "0" or not steps or not H or weight is None:
        return None
    N, device, dtype = int(steps.table[0, 3]), cp.cuda.runtime.getDevice(), states.dtype.name
    if asked != "grid" and (asked or _faster_in_blocks(device, N, H, dtype)):
        whole = whole_layout_on(device, N, H, states.itemsize, backward)
        if whole is not None and whole_sequences.indexable(steps, weight):
            return whole
    if asked == "block":
        return None
    table = FASTER.get(dtype, ())
    if not asked and not any(least <= N <= most and H <= units for least, most, units in table):
        return None
    return layout_on(device, N, H, states.itemsize, backward)


def _faster_in_blocks(device: int, N: int, H: int, dtype: str) -> bool:
    each, units = FASTER_IN_BLOCKS.get(dtype, (0, 0))
    return H <= units and N <= each * whole_sequences.limits(device)[0]


@functools.lru_cache(maxsize=1024)
def layout_on(device: int, N: int, H: int, itemsize: int, backward: bool) -> Layout | None:
    """The layout of :func:`layout_for` on the device of this number."""
    multiprocessors, shared = _limits(device)
    return layout_for(N, H, itemsize, multiprocessors, shared, backward)


@functools.cache
def _limits(device: int) -> tuple[int, int]:
    """The number of multiprocessors, and the bytes of shared memory that a block may have."""
    if not cp.cuda.Device(device).attributes["CooperativeLaunch"]:
        return 0, 0  # nothing fits
    return whole_sequences.limits(device)


def _launch(name: str, layout: Layout, steps: Steps, like: Array, *arrays: Array, weight: Array) -> None:
    strides = [stride // weight.itemsize for stride in weight.strides]
    arguments = (
        *(*arrays, weight, uploaded(steps.table)),
        cp.zeros(layout.parts * COUNTER_STRIDE, np.uint32),
        *(len(steps), like.shape[1], *strides),
        *(layout.units, layout.parts, layout.rows, layout.splits),
    )
    launch(name, like.dtype, layout.blocks, layout.threads, arguments, layout.shared, cooperative=True)
