"""Noise on CuPy, to the bit that of :mod:`rnnlab.ops.numpy.masks`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rnnlab.ops.cuda.graphs import told_keys
from rnnlab.ops.cuda.launch import check_whole, each
from rnnlab.ops.numpy import masks as numpy_masks
from rnnlab.ops.step_masks import StepMasks
from rnnlab.types import Array

__all__ = ["drawing", "dropout", "dropout_mask", "mask_seeds"]
_NO_KEY = np.uint64(0), None


def mask_seeds(rng: np.random.Generator, count: int) -> Sequence[int]:
    """Keys in [0, 2^63)."""
    return told_keys(numpy_masks.mask_seeds(rng, count))


def dropout(x: Array, p: float, key: int, out: Array) -> None:
    """out = 0 where drawn, else x / (1 - p)."""
    check_whole(x, out)
    limit = np.uint64(round(p * 2**32))
    each("dropout", x.size, x, x, out, x.size, 1 / (1 - p), limit, *_key(key))


def dropout_mask(p: float, key: int, start: int, out: Array) -> None:
    """out = 0 where drawn, else 1 / (1 - p)."""
    check_whole(out)
    each("dropout_mask", out.size, out, out, out.size, 1 / (1 - p), _limit(p), np.uint64(start), *_key(key))


def drawing(noise: StepMasks, zoneouts: int, drops: bool) -> tuple[Any, ...]:
    """The noise of a step as kernels take it: zoneout of so many arrays, then dropout if it ``drops``."""
    keys = [_key(key) for key in noise.keys] if noise.keys else [_NO_KEY] * 3
    drawn = noise.keys is not None
    arguments: list[Any] = [np.uint64(noise.start)]
    for p, key in zip(noise.zoneout[:zoneouts], keys, strict=False):
        arguments += [_limit(p if drawn else 0), 0.0 if drawn else float(p), *key]
    if drops:
        p = noise.dropout if drawn else 0
        arguments += [_limit(p), 1 / (1 - p), *keys[2]]
    return tuple(arguments)


def _limit(p: float) -> Any:
    return np.uint32(min(round(p * 2**32), 2**32 - 1))


def _key(key: int) -> tuple[Any, Any]:
    return np.uint64(key), getattr(key, "place", None)
