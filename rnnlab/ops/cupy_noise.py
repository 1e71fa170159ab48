"""Noise on CuPy, to the bit that of :mod:`rnnlab.ops.numpy_noise`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rnnlab.ops import numpy_noise
from rnnlab.ops.cupy_graphs import told_keys
from rnnlab.ops.cupy_kernels import check_whole, each

__all__ = ["dropout", "keep_mask", "noise_keys", "zoneout_backward", "zoneout_forward"]

Array = Any


def noise_keys(rng: np.random.Generator, count: int) -> Sequence[int]:
    """Keys in [0, 2^63)."""
    return told_keys(numpy_noise.noise_keys(rng, count))


def dropout(x: Array, p: float, key: int, out: Array) -> None:
    """out = 0 where drawn, else x / (1 - p)."""
    check_whole(x, out)
    limit = np.uint64(round(p * 2**32))
    each("dropout", x.size, x, x, out, x.size, 1 / (1 - p), limit, *_key(key))


def keep_mask(p: float, key: int, start: int, out: Array) -> None:
    """out = 0 where drawn, else 1 / (1 - p)."""
    check_whole(out)
    each("keep_mask", out.size, out, out, out.size, 1 / (1 - p), *_step_noise(p, key, start))


def zoneout_forward(prev: Array, p: float, key: int, start: int, h: Array) -> None:
    """h = prev where drawn."""
    check_whole(prev, h)
    each("zoneout_forward", h.size, h, prev, h, h.size, *_step_noise(p, key, start))


def zoneout_backward(dh: Array, p: float, key: int, start: int, dprev: Array) -> None:
    """dprev = dh and dh = 0 where drawn, dprev = 0 elsewhere."""
    check_whole(dh, dprev)
    each("zoneout_backward", dh.size, dh, dh, dprev, dh.size, *_step_noise(p, key, start))


def _step_noise(p: float, key: int, start: int) -> tuple[Any, ...]:
    return np.uint32(min(round(p * 2**32), 2**32 - 1)), np.uint64(start), *_key(key)


def _key(key: int) -> tuple[Any, Any]:
    return np.uint64(key), getattr(key, "place", None)
