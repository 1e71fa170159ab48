"""Dropout and zoneout within kernels that run many steps.

Such a kernel has three arguments for them:

- ``state_mask`` (B, H) multiplies the states that the recurrent weights read. Without it, B is 0.
- ``rates`` (3,) are the probabilities of zoneout of h and of c, and of dropping a unit of the candidate.
- ``seeds`` (3,) are the seeds of these masks. In inference it has no elements: zoneout takes its expectation,
  and nothing is dropped.

``start`` is the index of a row's first unit in the masks of all steps.
"""

from __future__ import annotations

import numpy as np

from rnnlab.ops.numba.cells import add_row, multiply_row, scale_row
from rnnlab.ops.numba.kernel import inlined, unfused
from rnnlab.ops.numba.masks import is_drawn, least, low_half
from rnnlab.ops.step_masks import ChunkMasks
from rnnlab.types import Array

__all__ = [
    "ARGUMENTS",
    "TYPES",
    "drops_candidate",
    "finish_carried_rows",
    "finish_rows",
    "kept_rows",
    "mask_arguments",
    "mask_row",
    "read_rows",
    "rows_to_add",
    "rows_to_read",
    "zoneout_backward_row",
    "zoneout_row",
]

TYPES = "T[:,::1], float64[::1], int64[::1]"  # of these arguments, and their declaration
ARGUMENTS = "state_mask (B, H); rates (r,) float64; seeds (s,) int64"
_NO_RATES, _NO_SEEDS = np.zeros(3), np.empty(0, np.int64)


def mask_arguments(masks: ChunkMasks | None, states: Array) -> tuple[Array, Array, Array]:
    """The three arguments, for states (S, H)."""
    if masks is None:
        return states[:0], _NO_RATES, _NO_SEEDS
    (zoneout, dropout, seeds, _), state = masks
    drawn = _NO_SEEDS if seeds is None else np.array(seeds[:3], np.int64)
    return states[:0] if state is None else state, np.array((*zoneout, dropout), float), drawn


@inlined
def read_rows(rows, state_mask):
    """The rows of a workspace for what the weights read: none without a mask."""
    return rows if state_mask.shape[0] > 0 else 0


@inlined
def kept_rows(rows, rates):
    """The rows of a workspace for gradients that bypass the cell: none without zoneout."""
    return rows if rates[0] > 0 or rates[1] > 0 else 0


@inlined
def rows_to_read(h, first, top, bottom, state_mask, read):
    """What the weights read of the states from row ``first`` on, for the sequences from top to bottom.

    With a mask, ``read`` holds the products, the first sequence's in its first row.
    """
    if state_mask.shape[0] == 0:
        return h[first + top : first + bottom]
    for i in range(top, bottom):
        multiply_row(h[first + i], state_mask[i], read[i - top])
    return read[: bottom - top]


@inlined
def zoneout_row(k, prev, rates, seeds, start, now):
    """Replace units of array k of a state by their previous values, or mix both in inference."""
    if rates[k] > 0 and seeds.size == 0:
        p = now.dtype.type(rates[k])
        for j in range(now.size):
            now[j] = _mixed(p, prev[j], now[j])
    elif rates[k] > 0:
        below, low, high = least(rates[k]), low_half(seeds[k], start), np.uint32(seeds[k] >> 32)
        for j in range(now.size):
            old, new = prev[j], now[j]  # reading both avoids a branch, which would prevent vectorisation
            now[j] = old if is_drawn(low, high, j, below) else new


@unfused  # the same bits as one step after the other, which large weights of a GRU on several threads need
def _mixed(p, prev, now):
    return now + p * (prev - now)


@inlined
def zoneout_backward_row(k, rates, seeds, start, dnow, kept):
    """Move the part of the gradient of array k that bypasses the cell into ``kept``."""
    if rates[k] > 0 and seeds.size == 0:
        p = dnow.dtype.type(rates[k])  # 0 if it is too small for float32
        for j in range(dnow.size):
            kept[j] = dnow[j] * p
        for j in range(dnow.size):
            dnow[j] -= kept[j]
    elif rates[k] > 0:
        zero = dnow.dtype.type(0)
        below, low, high = least(rates[k]), low_half(seeds[k], start), np.uint32(seeds[k] >> 32)
        for j in range(dnow.size):
            d, drawn = dnow[j], is_drawn(low, high, j, below)
            kept[j] = d if drawn else zero
            dnow[j] = zero if drawn else d


@inlined
def drops_candidate(rates, seeds):
    return rates[2] > 0 and seeds.size > 0


@inlined
def mask_row(rates, seeds, start, mask):
    """Write the mask of a row's candidate."""
    zero, scale = mask.dtype.type(0), mask.dtype.type(1 / (1 - rates[2]))
    below, low, high = least(rates[2]), low_half(seeds[2], start), np.uint32(seeds[2] >> 32)
    for j in range(mask.size):
        mask[j] = zero if is_drawn(low, high, j, below) else scale


@inlined
def finish_rows(top, bottom, state_mask, rates, kept, dstate):
    """Turn the gradient of what the weights read into that of the states before the step."""
    for i in range(top, bottom):
        if state_mask.shape[0] > 0:
            scale_row(dstate[i], state_mask[i])
        if rates[0] > 0:
            add_row(kept[i - top], dstate[i])


@inlined
def rows_to_add(dstate, top, bottom, state_mask, apart):
    """Where a cell that carries h adds the gradient of what the weights read: ``apart`` with a mask."""
    if state_mask.shape[0] == 0:
        return dstate[top:bottom]
    dread = apart[: bottom - top]
    dread[...] = 0
    return dread


@inlined
def finish_carried_rows(top, bottom, state_mask, rates, kept, dread, dstate):
    """:func:`finish_rows` for such a cell."""
    for i in range(top, bottom):
        if state_mask.shape[0] > 0:
            scale_row(dread[i - top], state_mask[i])
            add_row(dread[i - top], dstate[i])
        if rates[0] > 0:
            add_row(kept[i - top], dstate[i])
