"""Dropout and zoneout on CuPy, with masks that are bitwise equal to :mod:`rnnlab.ops.numpy.masks`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cupy as cp
import numpy as np

from rnnlab.ops.cuda.checks import checked
from rnnlab.ops.cuda.graphs import graph_seeds
from rnnlab.ops.cuda.launch import NULL, each
from rnnlab.ops.numpy import masks as numpy_masks
from rnnlab.ops.step_masks import StepMasks
from rnnlab.types import Array

_NO_SEED = 0, NULL


def mask_seeds(rng: np.random.Generator, count: int) -> Sequence[int]:
    return graph_seeds(numpy_masks.mask_seeds(rng, count))


@checked
def dropout(x: Array, p: float, seed: int, out: Array) -> None:
    x, dropped = cp.ascontiguousarray(x), _contiguous(out)
    limit = round(float(p) * 2**32)
    each("dropout", x.size, x, x, dropped, x.size, 1 / (1 - float(p)), limit, *_seed(seed))
    if dropped is not out:
        out[...] = dropped


@checked
def dropout_mask(p: float, seed: int, start: int, out: Array) -> None:
    mask, scale = _contiguous(out), 1 / (1 - float(p))
    each("dropout_mask", out.size, mask, mask, out.size, scale, _limit(p), start, *_seed(seed))
    if mask is not out:
        out[...] = mask


def mask_arguments(masks: StepMasks, zoneouts: int, drops: bool) -> tuple[Any, ...]:
    """A step's masks as arguments of a kernel: of ``zoneouts`` states, and of dropout if it ``drops``."""
    seeds = [_seed(seed) for seed in masks.seeds] if masks.seeds else [_NO_SEED] * 3
    drawn = masks.seeds is not None
    arguments: list[Any] = [masks.start]
    for p, seed in zip(masks.zoneout[:zoneouts], seeds, strict=False):
        arguments += [_limit(p if drawn else 0), 0.0 if drawn else p, *seed]
    if drops:
        p = masks.dropout if drawn else 0
        arguments += [_limit(p), 1 / (1 - float(p)), *seeds[2]]
    return tuple(arguments)


def _contiguous(out: Array) -> Array:
    """The array that a kernel writes: ``out``, or a temporary one that is copied to ``out`` afterwards."""
    return out if out.flags.c_contiguous else cp.empty(out.shape, out.dtype)


def _limit(p: float) -> int:
    return min(round(float(p) * 2**32), 2**32 - 1)


def _seed(seed: int) -> tuple[int, Any]:
    """The seed as a number, and its address on the device if a graph replaces it."""
    return seed, getattr(seed, "address", NULL)
