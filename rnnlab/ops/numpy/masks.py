"""Dropout and zoneout on NumPy: masks that are computed from a seed and a position.

A 32-bit integer is computed from ``seed``, in [0, 2^63), and the position i. Element i of a mask is drawn if
this integer is below 2^32 p, which has probability p. The backward therefore recomputes the mask instead of
reading it, and a part of an array, from element ``start`` on, has the same mask as in the full array. The
integer is

- in :func:`dropout`, the upper half of the output of splitmix64 (Steele, Lea and Flood 2014) in the state
  seed + (i + 1) gamma;
- in the masks of recurrent steps, which must be cheaper, a 32-bit mixture of (i + 1) and both halves of the
  seed by three multiplications (with the constants of Wellons's triple32, 2018).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rnnlab.ops.arguments import checked
from rnnlab.types import Array

_BLOCK = 1 << 16  # elements per block, so that a block stays in the cache for all passes

GAMMA, MIX_1, MIX_2 = (np.uint64(c) for c in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
STRIDE, FIRST, SECOND, THIRD = (np.uint32(c) for c in (0x9E3779B9, 0xED5AD4BB, 0xAC4C1B51, 0x31848BAB))


def mask_seeds(rng: np.random.Generator, count: int) -> Sequence[int]:
    return [int(seed) for seed in rng.integers(1 << 63, size=count)]


@checked
def dropout(x: Array, p: float, seed: int, out: Array) -> None:
    dropped = out if out.flags.c_contiguous else np.empty(out.shape, out.dtype)
    elements, to, scale = x.reshape(-1), dropped.reshape(-1), x.dtype.type(1 / (1 - float(p)))
    for block in _blocks(elements.size):
        drawn = _drawn(p, seed, block.start, elements[block].size)
        np.multiply(elements[block], ~drawn * scale, out=to[block])  # much faster than np.where
    if dropped is not out:
        out[...] = dropped


@checked
def dropout_mask(p: float, seed: int, start: int, out: Array) -> None:
    mask = out if out.flags.c_contiguous else np.empty(out.shape, out.dtype)
    elements, scale = mask.reshape(-1), out.dtype.type(1 / (1 - float(p)))
    for block in _blocks(elements.size):
        drawn = _drawn_of_step(p, seed, start + block.start, elements[block].size)
        np.multiply(~drawn, scale, out=elements[block])
    if mask is not out:
        out[...] = mask


@checked
def zoneout_forward(prev: Array, p: float, seed: int, start: int, h: Array) -> None:
    np.copyto(h, prev, where=_drawn_of_step(p, seed, start, h.size).reshape(h.shape))


@checked
def zoneout_backward(dh: Array, p: float, seed: int, start: int, dprev: Array) -> None:
    drawn = _drawn_of_step(p, seed, start, dh.size).reshape(dh.shape)
    dprev[...] = 0
    np.copyto(dprev, dh, where=drawn)
    dh[drawn] = 0


def _blocks(size: int) -> list[slice]:
    return [slice(start, start + _BLOCK) for start in range(0, size, _BLOCK)]


def _drawn(p: float, seed: int, start: int, size: int) -> Array:
    """Whether each element from ``start`` on is drawn, (size,), as in :func:`dropout`."""
    z = np.arange(start + 1, start + 1 + size, dtype=np.uint64)
    z *= GAMMA
    z += np.uint64(seed)
    for shift, factor in ((30, MIX_1), (27, MIX_2)):
        z ^= z >> np.uint64(shift)
        z *= factor
    z ^= z >> np.uint64(31)
    z >>= np.uint64(32)
    return z < np.uint64(round(float(p) * 2**32))


def _drawn_of_step(p: float, seed: int, start: int, size: int) -> Array:
    """Whether each element from ``start`` on is drawn, (size,), as in the masks of recurrent steps."""
    z = np.arange(start + 1, start + 1 + size, dtype=np.uint64).astype(np.uint32)
    z *= STRIDE
    z += np.uint32(seed & 0xFFFFFFFF)
    z ^= z >> np.uint32(17)
    z *= FIRST
    z += np.uint32(seed >> 32)
    z ^= z >> np.uint32(11)
    z *= SECOND
    z ^= z >> np.uint32(15)
    z *= THIRD
    z ^= z >> np.uint32(14)
    return z < np.uint32(min(round(float(p) * 2**32), 2**32 - 1))
