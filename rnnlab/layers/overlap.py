"""Arrays that share memory: what a backward writes must not be an array that it reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from rnnlab.types import Array

_MANY = 8  # arrays to write, whose pairs take longer to compare than their sorted extents


def in_same_memory(written: Mapping[str, Array], read: Mapping[str, Any]) -> tuple[str, str] | None:
    """The names of an array to write and of another one that shares its memory; None if there are none."""
    if len(written) > _MANY and _are_apart(written, read):
        return None
    arrays = [*written.items(), *read.items()]
    for k, (name, array) in enumerate(written.items(), 1):
        for other, each in arrays[k:]:
            if in_memory_of(array, each) and (array is each or np.shares_memory(array, each)):
                return name, other
    return None


def _are_apart(written: Mapping[str, Array], read: Mapping[str, Any]) -> bool:
    """Whether an array to write surely shares no memory: faster than the comparison of all pairs."""
    extents = [(*_extent(array), True) for array in written.values()]
    extents += [(*_extent(array), False) for array in read.values() if array is not None]
    end = end_written = -1
    for start, stop, writes in sorted(extents):
        if start < (end if writes else end_written):
            return False
        end = max(end, stop)
        end_written = max(end_written, stop) if writes else end_written
    return True


def _extent(array: Array) -> tuple[int, int]:
    """The first byte of an array and the one after its last; of a CuPy array its identity."""
    if isinstance(array, np.ndarray):
        return byte_bounds(array) if array.size else (0, 0)
    return id(array), id(array) + 1


def in_memory_of(array: Array, other: Any) -> bool:
    """Whether an array is another one or, on the CPU, may share memory with it."""
    on_cpu = isinstance(array, np.ndarray) and isinstance(other, np.ndarray)
    return array is other or (on_cpu and np.may_share_memory(array, other))
