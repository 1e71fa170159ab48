"""What a solver does on a GPU and not on a CPU: it does not wait, and it launches whole steps at once."""

from __future__ import annotations

import math
from collections import deque
from typing import Any

import cupy as cp
import numpy as np

from rnnlab.ops.cuda.graphs import AHEAD, Graph, GraphMemory
from rnnlab.ops.cuda.launch import check_contiguous, launch
from rnnlab.types import Array

__all__ = ["GradientLog", "Graph", "GraphMemory", "InUse"]


class GradientLog:
    """Losses and gradients' norms of iterations, which stay on the device until they are asked for.

    An iteration with one that is not finite updates nothing, nor does any after it until they are read. The
    sum of a gradient's squares is not finite either where its norm is above 1e154, which only float64 can be.

    Parameters
    ----------
    rows : int
        How many iterations there are between two calls of :meth:`read`, at most.
    most : float, optional
        The norm that gradients are scaled down to.
    """

    def __init__(self, rows: int, most: float | None = None) -> None:
        self._most = math.inf if most is None else most
        self._rows = rows
        self._log, self._state = cp.zeros((rows, 2)), cp.zeros(2, np.int64)
        self._scale, self._loss = cp.ones(1), cp.zeros(1)

    def look(self, loss: Any, gradient: Array, clipped: Array | None = None) -> Array:
        """Take down an iteration; return the factor for its update, an array () that nobody has waited for.

        Parameters
        ----------
        loss : float, or an array () on the device
        gradient : array ()
            The sum of squares of the gradient.
        clipped : array (), optional
            The same after every element was clipped, if it was.
        """
        self._loss[...] = loss
        clipped = gradient if clipped is None else clipped
        arrays = self._loss, gradient, clipped, self._log, self._state, self._scale
        check_contiguous(*arrays)
        launch("look_at_gradient", np.dtype(float), 1, 1, (*arrays, self._rows, self._most))
        return self._scale

    def read(self) -> list[tuple[float, float]]:
        """Wait for all iterations since the last time; the loss and the norm of each."""
        count = int(self._state[0])
        log = cp.asnumpy(self._log[: min(count, self._rows)])
        self._state[...] = 0
        return [(float(loss), float(norm)) for loss, norm in log]

    def forget_after(self, count: int) -> None:
        """Forget all but the first so many iterations since the last time."""
        self._state[0] = count


class InUse:
    """Holds what work reads that has been launched, until it is done.

    A batch that was copied ahead, on another stream than the work's, would else be overwritten: once nobody
    holds it, the pool gives its memory to the next copy, which does not wait for the work. The host waits
    where the device is ``most`` pieces of work behind.
    """

    def __init__(self, most: int = AHEAD) -> None:
        self._held: deque[tuple[Any, Any]] = deque()
        self._most = most

    def hold(self, things: Any) -> None:
        """Hold what the work reads that has just been launched."""
        while self._held and self._held[0][1].done:
            self._held.popleft()
        if len(self._held) >= self._most:
            self._held.popleft()[1].synchronize()
        event = cp.cuda.Event(disable_timing=True)
        event.record()
        self._held.append((things, event))
