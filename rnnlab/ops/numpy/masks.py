"""Noise on NumPy: which numbers of an array are dropped, or drawn, with probability p.

It follows from ``key``, in [0, 2^63), and the place in the array alone, so that a part of an array, from
number ``start`` on, has the noise that it has in the whole, and a backward makes it again instead of reading
it. Number i is drawn if an integer of 32 bits is below 2^32 p:

- in :func:`dropout`, the upper half of what splitmix64 (Steele, Lea and Flood 2014) gives out in the state
  key + (i + 1) gamma;
- in the noise of the steps of a recurrence, which has to be made faster than that, (i + 1) and the halves of
  the key mixed in 32 bits by three multiplications (the constants of Wellons's triple32, 2018).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rnnlab.types import Array

_BLOCK = 1 << 16  # numbers that are worked on together, so that every pass over them finds them in the cache

GAMMA, MIX_1, MIX_2 = (np.uint64(c) for c in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
STRIDE, FIRST, SECOND, THIRD = (np.uint32(c) for c in (0x9E3779B9, 0xED5AD4BB, 0xAC4C1B51, 0x31848BAB))


def mask_seeds(rng: np.random.Generator, count: int) -> Sequence[int]:
    """Keys in [0, 2^63)."""
    return [int(key) for key in rng.integers(1 << 63, size=count)]


def dropout(x: Array, p: float, key: int, out: Array) -> None:
    """out = 0 where drawn, else x / (1 - p); of any shape, ``out`` contiguous, or x itself."""
    numbers, kept, scale = x.reshape(-1), out.reshape(-1), x.dtype.type(1 / (1 - p))
    for block in _blocks(numbers.size):
        drawn = _drawn(p, key, block.start, numbers[block].size)
        np.multiply(numbers[block], np.where(drawn, 0, scale), out=kept[block])


def dropout_mask(p: float, key: int, start: int, out: Array) -> None:
    """out = 0 where drawn, else 1 / (1 - p); of any shape, contiguous."""
    mask, scale = out.reshape(-1), out.dtype.type(1 / (1 - p))
    for block in _blocks(mask.size):
        mask[block] = np.where(_drawn_of_step(p, key, start + block.start, mask[block].size), 0, scale)


def zoneout_forward(prev: Array, p: float, key: int, start: int, h: Array) -> None:
    """h = prev where drawn, else as it is, both (n, H); number 0 of h is number ``start`` of the whole."""
    np.copyto(h, prev, where=_drawn_of_step(p, key, start, h.size).reshape(h.shape))


def zoneout_backward(dh: Array, p: float, key: int, start: int, dprev: Array) -> None:
    """dprev = dh and dh = 0 where drawn, dprev = 0 elsewhere, both (n, H)."""
    drawn = _drawn_of_step(p, key, start, dh.size).reshape(dh.shape)
    dprev[...] = 0
    np.copyto(dprev, dh, where=drawn)
    dh[drawn] = 0


def _blocks(size: int) -> list[slice]:
    return [slice(start, start + _BLOCK) for start in range(0, size, _BLOCK)]


def _drawn(p: float, key: int, start: int, size: int) -> Array:
    """Whether each of the numbers from ``start`` on is drawn, (size,)."""
    z = np.arange(start + 1, start + 1 + size, dtype=np.uint64)
    z *= GAMMA
    z += np.uint64(key)
    for shift, factor in ((30, MIX_1), (27, MIX_2)):
        z ^= z >> np.uint64(shift)
        z *= factor
    z ^= z >> np.uint64(31)
    z >>= np.uint64(32)
    return z < np.uint64(round(p * 2**32))


def _drawn_of_step(p: float, key: int, start: int, size: int) -> Array:
    """The same for the noise of steps."""
    z = np.arange(start + 1, start + 1 + size, dtype=np.uint64).astype(np.uint32)
    z *= STRIDE
    z += np.uint32(key & 0xFFFFFFFF)
    z ^= z >> np.uint32(17)
    z *= FIRST
    z += np.uint32(key >> 32)
    z ^= z >> np.uint32(11)
    z *= SECOND
    z ^= z >> np.uint32(15)
    z *= THIRD
    z ^= z >> np.uint32(14)
    return z < np.uint32(min(round(p * 2**32), 2**32 - 1))
