"""Dropout and zoneout as kernels, with masks that are bitwise equal to :mod:`rnnlab.ops.numpy.masks`."""

from __future__ import annotations

import numpy as np

from rnnlab.ops.numba.kernel import inlined, kernel, primitive
from rnnlab.ops.numba.parallel import share
from rnnlab.ops.numpy.masks import FIRST, GAMMA, MIX_1, MIX_2, SECOND, STRIDE, THIRD
from rnnlab.types import Array

_BLOCK = 1 << 14  # elements for one thread
_STATES = 1 << 16  # elements of a state for which it is worth waking other threads


@primitive
def dropout(x: Array, p: float, seed: int, out: Array) -> None:
    dropped = _contiguous(out)
    _dropout(np.ascontiguousarray(x).reshape(-1), p, 1 / (1 - float(p)), seed, dropped.reshape(-1))
    if dropped is not out:
        out[...] = dropped


@primitive
def dropout_mask(p: float, seed: int, start: int, out: Array) -> None:
    mask = _contiguous(out)
    _dropout_mask(mask.reshape(-1), p, 1 / (1 - float(p)), seed, start)
    if mask is not out:
        out[...] = mask


def _contiguous(out: Array) -> Array:
    """The array to write: ``out``, or a temporary one that is copied to ``out`` afterwards."""
    return out if out.flags.c_contiguous else np.empty(out.shape, out.dtype)


@kernel(
    "T[::1], float64, T, int64, T[::1]",
    arguments="x (P,); out! (P,) = x",
    parallel_from=1 << 17,
)
def _dropout(part, parts, x, p, scale, seed, out):
    zero, below = x.dtype.type(0), _threshold(p)
    for block in share((x.size + _BLOCK - 1) // _BLOCK, part, parts):
        start, stop = block * _BLOCK, min(x.size, (block + 1) * _BLOCK)
        x_, out_, state = x[start:stop], out[start:stop], _state(seed, start)
        for j in range(x_.size):
            out_[j] = x_[j] * (zero if _number(state, j) < below else scale)


@kernel(
    "T[::1], float64, T, int64, int64",
    arguments="out! (P,)",
    parallel_from=1 << 17,
)
def _dropout_mask(part, parts, out, p, scale, seed, first):
    zero, below, high = out.dtype.type(0), least(p), np.uint32(seed >> 32)
    for block in share((out.size + _BLOCK - 1) // _BLOCK, part, parts):
        start, stop = block * _BLOCK, min(out.size, (block + 1) * _BLOCK)
        out_, low = out[start:stop], low_half(seed, first + start)
        for j in range(out_.size):
            out_[j] = zero if is_drawn(low, high, j, below) else scale


@primitive
@kernel("T[:,::1], float64, int64, int64, T[:,::1]", parallel_from=_STATES)
def zoneout_forward(part, parts, prev, p, seed, start, h):
    """h = prev where drawn."""
    below, high = least(p), np.uint32(seed >> 32)
    for row in share(h.shape[0], part, parts):
        prev_, h_, low = prev[row], h[row], low_half(seed, start + row * h.shape[1])
        for j in range(h_.size):
            old, new = prev_[j], h_[j]  # reading both avoids a branch, which would prevent vectorisation
            h_[j] = old if is_drawn(low, high, j, below) else new


@primitive
@kernel("T[:,::1], float64, int64, int64, T[:,::1]", parallel_from=_STATES)
def zoneout_backward(part, parts, dh, p, seed, start, dprev):
    """dprev = dh and dh = 0 where drawn, dprev = 0 elsewhere."""
    zero, below, high = dh.dtype.type(0), least(p), np.uint32(seed >> 32)
    for row in share(dh.shape[0], part, parts):
        dh_, dprev_, low = dh[row], dprev[row], low_half(seed, start + row * dh.shape[1])
        for j in range(dh_.size):
            d, drawn = dh_[j], is_drawn(low, high, j, below)
            dprev_[j] = d if drawn else zero
            dh_[j] = zero if drawn else d


# ---------------------------------------------------------------- splitmix64


@inlined
def _threshold(p):
    return np.uint64(round(p * 2.0**32))


@inlined
def _state(seed, start):
    return np.uint64(seed) + np.uint64(start) * GAMMA


@inlined
def _number(state, j):
    """The upper half of splitmix64's output j + 1 steps after ``state``."""
    z = state + np.uint64(j + 1) * GAMMA
    z = (z ^ (z >> np.uint64(30))) * MIX_1
    z = (z ^ (z >> np.uint64(27))) * MIX_2
    return (z ^ (z >> np.uint64(31))) >> np.uint64(32)


# ---------------------------------------------------------------- masks of recurrent steps


@inlined
def least(p):
    return np.uint32(min(round(p * 2.0**32), 2.0**32 - 1))


@inlined
def low_half(seed, start):
    return np.uint32(np.uint32(seed & 0xFFFFFFFF) + np.uint32(start & 0xFFFFFFFF) * STRIDE)


@inlined
def is_drawn(low, high, j, below):  # numba's sums and products of 32 bits have 64
    z = np.uint32(low + np.uint32(j + 1) * STRIDE)
    z = np.uint32(np.uint32((z ^ (z >> np.uint32(17))) * FIRST) + high)
    z = np.uint32((z ^ (z >> np.uint32(11))) * SECOND)
    z = np.uint32((z ^ (z >> np.uint32(15))) * THIRD)
    return (z ^ (z >> np.uint32(14))) < below
