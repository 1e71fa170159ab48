"""The real rows of a memory, which attention reads: a mask is applied once, before the first step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rnnlab.errors import InputError, InputTypeError
from rnnlab.layers.checks import as_mask
from rnnlab.ops import ops_for
from rnnlab.ops.arguments import is_unusual
from rnnlab.types import Array


class SourceRows(NamedTuple):
    """The real rows of memories (N, L, C), one after another."""

    rows: Array  # (R, C)
    slots: Array  # (N, L) the index in rows of each slot; -1 if it is masked
    real_rows: Array | None  # (R,) the row of each in the memory as (N L, C); None if all are real

    @classmethod
    def of(cls, function: str, memory: Array, mask: Array | None) -> SourceRows:
        """Keep the rows for which a mask (N, L) is true, or all without a mask.

        The values of a mask on a device are not read. Masked rows then remain, but no slot refers to them.

        Raises
        ------
        ValueError
            If the mask has another shape, or holds anything but 0 and 1.
        """
        N, L, C = memory.shape
        if is_unusual(memory):
            memory = memory.copy()  # once, and not at every step that reads it
        ops, rows = ops_for(memory), memory.reshape(N * L, C)
        on_device = not isinstance(memory, np.ndarray) and type(mask) is type(memory)
        if mask is not None and on_device:  # its values are not read, which would wait for the device
            if mask.shape != (N, L):
                raise InputError(
                    f"{function}: memory_mask has shape {mask.shape}, expected (N, L) = {(N, L)}"
                )
            if mask.dtype.kind not in "biu":
                raise InputTypeError(
                    f"{function}: memory_mask has dtype {mask.dtype}, "
                    "expected booleans or integers on a device"
                )
            places = ops.asarray(np.arange(1, N * L + 1).reshape(N, L))
            return cls(rows, ops.asarray(places * mask - 1, np.int64), None)
        if mask is not None:
            given = as_mask(function, "memory_mask", mask, (N, L), "N, L")
            if not given.all():
                real = np.flatnonzero(given)
                slots = np.full(N * L, -1)
                slots[real] = np.arange(real.size)
                packed = ops.empty((real.size, C), memory.dtype)
                ops.take(rows, ops.asarray(real), packed)
                return cls(packed, ops.asarray(slots.reshape(N, L)), ops.asarray(real))
        return cls(rows, ops.asarray(np.arange(N * L).reshape(N, L)), None)
