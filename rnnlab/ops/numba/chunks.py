"""How the steps of a chunk are divided among threads, and which chunks a kernel of all steps can run.

If the recurrent weight is small, each thread has some of the sequences, and its cache holds the whole weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from rnnlab.ops.numba import products
from rnnlab.ops.numba.bfloat16 import RoundedPanels
from rnnlab.ops.numba.gemm import Panels
from rnnlab.ops.numba.kernel import Kernel, RefusedError, shared_by
from rnnlab.ops.steps import StepInputs, Steps
from rnnlab.types import Array

__all__ = ["are_inside", "edges", "is_weight", "number_of", "run_by_sequences", "shared"]
SMALL = 1 << 20  # bytes of weights that fit into the second-level cache together with a step's other data


def is_weight(weight: Any, shape: tuple[int, int], dtype: np.dtype) -> bool:
    """Whether the weight is in panels and has this shape and dtype."""
    return isinstance(weight, Panels) and weight.shape == shape and weight.dtype == dtype


def are_inside(
    steps: Steps,
    *,
    states: Array,
    rows: Array | None = None,
    own: Array | None = None,
    first: Array | None = None,
) -> bool:
    """Whether there are steps, and all their rows exist in the given arrays.

    ``states`` has the states of all steps, ``rows`` the packed rows of all steps, ``own`` the packed rows of
    these steps only, and ``first`` a row for each sequence.
    """
    if not isinstance(steps, Steps) or not steps:
        return False
    _, _, after, count = steps.table[-1]
    return (
        after + count <= len(states)
        and (rows is None or steps.rows.stop <= len(rows))
        and (own is None or number_of(steps) <= len(own))
        and (first is None or steps.table[0, 3] <= len(first))
    )


def number_of(steps: Steps) -> int:
    """The number of rows of all steps."""
    return steps.rows.stop - steps.rows.start


def shared(weights: Sequence[Panels], steps: Steps) -> tuple[int, bool]:
    """The number of parts, and whether the sequences rather than the weight are divided among them."""
    small = sum(weight.panels.nbytes for weight in weights) <= SMALL
    multiplications = number_of(steps) * sum(prod(weight.shape) for weight in weights)
    parts = shared_by(multiplications if small else multiplications // len(steps), weights[0].parallel_from)
    return parts, small or parts == 1


def edges(counts: Array, parts: int) -> Array:
    """The first row of each part, and the number of rows. Parts have about the same total number of steps."""
    if counts[0] == counts[-1]:
        return np.arange(parts + 1) * counts[0] // parts
    alive = np.searchsorted(-counts, -np.arange(counts[0]), side="left")  # number of steps of each row
    done = np.concatenate([[0], np.cumsum(alive)])
    return np.searchsorted(done, done[-1] * np.arange(parts + 1) / parts).astype(np.int64)


def run_by_sequences(
    kernel: Kernel,
    arrays: Sequence[Array],
    weights: Sequence[tuple[Any, tuple[int, int]]],
    steps: Steps,
    inputs: StepInputs | None = None,
    **rows_of: Array,
) -> bool:
    """Run all steps by a kernel that divides the sequences; false if it cannot run them.

    Parameters
    ----------
    kernel : Kernel
        Its arguments are the arrays, the panels of the weights, the steps' table and the edges.
    arrays, steps, inputs
        As the primitive has them.
    weights : (weight, its shape) of each
    rows_of : arrays
        As in :func:`are_inside`. ``inputs`` are those of ``rows``.
    """
    given, dtype = [weight for weight, _ in weights], arrays[0].dtype
    fit = all(is_weight(weight, shape, dtype) for weight, shape in weights)
    if not fit or any(isinstance(weight, RoundedPanels) for weight in given):
        return False
    if not are_inside(steps, **rows_of):
        return False
    parts, by_sequences = shared(given, steps)
    if not by_sequences:
        return False
    if inputs is not None:
        products.affine_into(*inputs, rows_of["rows"][steps.rows])
    panels = [weight.panels for weight in given]
    try:
        kernel.run(parts, *arrays, *panels, steps.table, edges(steps.table[:, 3], parts))
    except RefusedError:  # nothing but x Wx + b is written yet
        return False
    return True
