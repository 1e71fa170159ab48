"""Functions that a solver needs on a GPU only: a log on the device, graphs, batches in use, and NCCL."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import cupy as cp
import numpy as np

from rnnlab.errors import InputError
from rnnlab.ops.cuda.graphs import AHEAD, Graph, GraphMemory
from rnnlab.ops.cuda.launch import check_contiguous, launch
from rnnlab.ops.cuda.nccl import NCCLSum, machine_and_gpu, new_identity
from rnnlab.types import Array

__all__ = ["GradientLog", "Graph", "GraphMemory", "InUse", "NCCLSum", "machine_and_gpu", "new_identity"]


_TERMS = 8  # maximum number of names in a log


class GradientLog:
    """Losses, their terms and norms of gradients, which stay on the device until they are read.

    If the loss or the norm of an iteration is not finite, neither this iteration nor any later one updates
    the parameters until the log is read. A norm above 1e154, which is possible in float64 only, counts as not
    finite, because its square overflows.

    Parameters
    ----------
    rows : int
        The largest number of iterations between two calls of :meth:`read`.
    most : float, optional
        The norm to which larger gradients are scaled down; by default none are.

    Attributes
    ----------
    loss : array ()
        The last recorded loss. The next record overwrites it.
    """

    def __init__(self, rows: int, most: float | None = None) -> None:
        self._most = math.inf if most is None else most
        self._rows = rows
        self._log, self._state = cp.zeros((rows, 2 + _TERMS)), cp.zeros(2, np.int64)
        self._scale, self._loss, self._terms = cp.ones(1), cp.zeros(1), cp.zeros(_TERMS)
        self.loss = self._loss.reshape(())
        self._columns: dict[str, int] = {}  # column of each term so far

    def look(
        self,
        loss: Any,
        gradient: Array,
        clipped: Array | None = None,
        terms: Mapping[str, Any] = MappingProxyType({}),
    ) -> Array:
        """Record an iteration; return the factor of its update, an array () on the device.

        Parameters
        ----------
        loss : float, or an array () on the device
        gradient : array ()
            The sum of squares of the gradient.
        clipped : array (), optional
            The sum of squares after clipping by value, if the gradient was clipped.
        terms : mapping of str to float, or to an array () on the device
            Terms of the loss by name. An iteration need not have all of them. A log has at most 8 names.

        Raises
        ------
        ValueError
            If there are more names.
        """
        self._loss[...] = loss
        given = 0
        for name, term in terms.items():
            if name not in self._columns and len(self._columns) == _TERMS:
                names = ", ".join([*self._columns, name])
                raise InputError(f"a loss has the terms {names}, expected at most {_TERMS}")
            column = self._columns.setdefault(name, len(self._columns))
            self._terms[column : column + 1] = term
            given |= 1 << column
        clipped = gradient if clipped is None else clipped
        arrays = self._loss, gradient, clipped, self._terms, self._log, self._state, self._scale
        check_contiguous(*arrays)
        launch("record_gradient", np.dtype(float), 1, 1, (*arrays, self._rows, _TERMS, given, self._most))
        return self._scale

    def read(self) -> list[tuple[float, float, dict[str, float]]]:
        """Wait for all iterations since the last call; return the loss, the norm and the terms of each."""
        count = int(self._state[0])
        log = cp.asnumpy(self._log[: min(count, self._rows)]).tolist()
        self._state[...] = 0
        columns = self._columns.items()
        return [
            (loss, norm, {name: row[k] for name, k in columns if not math.isnan(row[k])})
            for loss, norm, *row in log
        ]

    def forget_after(self, count: int) -> None:
        """Remove all but the first ``count`` iterations since the last call of :meth:`read`."""
        self._state[0] = count


class InUse:
    """Keeps the arrays that launched work reads alive until the work is done.

    A prefetched batch is copied on a stream of its own. Without a reference to it, the pool would give its
    memory to the next copy, which does not wait for the work. The host waits when the device is ``most``
    pieces of work behind.
    """

    def __init__(self, most: int = AHEAD) -> None:
        self._held: deque[tuple[Any, Any]] = deque()
        self._most = most

    def hold(self, things: Any) -> None:
        """Keep the arrays that the last launched work reads."""
        while self._held and self._held[0][1].done:
            self._held.popleft()
        if len(self._held) >= self._most:
            self._held.popleft()[1].synchronize()
        event = cp.cuda.Event(disable_timing=True)
        event.record()
        self._held.append((things, event))
