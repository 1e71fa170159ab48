"""Gradient monitors: the loss, its terms, the norm and clipping of each iteration, before its update.

On a CPU the values are read at once. On a GPU they stay on the device, where the update uses them. The host
reads them every so many iterations, so that it does not wait for the device in each one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from rnnlab.ops import device_of, gpu_training, ops_for
from rnnlab.parameters import Parameters
from rnnlab.training.clipping import clip_by_value, gradient_norm, norm_scale
from rnnlab.training.nonfinite import check_iteration
from rnnlab.training.optim import runs_on_device
from rnnlab.training.options import Options

Terms = Mapping[str, Any]  # floats, or arrays () on the device, by name
NO_TERMS: Terms = MappingProxyType({})

_READ_EVERY = 256  # iterations, at most


class Recorded(NamedTuple):
    """The recorded numbers of an iteration."""

    loss: float
    norm: float  # norm of the gradient before clipping
    terms: Mapping[str, float] = {}  # terms of the loss before they are weighted


class GradientMonitor(Protocol):
    """Records the loss and the gradient's norm of one iteration after another, and clips the gradient.

    The gradient is always in the same arrays.

    Attributes
    ----------
    read_every : int
        Maximum number of iterations between two calls of :meth:`read`.
    scale : float, or an array ()
        The factor that scales the last recorded gradient to a norm of at most ``clip_norm``.
    loss : float, or an array ()
        The last recorded loss.
    """

    read_every: int
    scale: Any
    loss: Any

    def record_and_clip(self, iteration: int, loss: Any, terms: Terms = NO_TERMS) -> None:
        """Record an iteration, clip its gradient by value in place, and set ``scale`` to clip it by norm."""
        ...

    def keep_alive(self, batch: Any) -> None:
        """Hold a reference to a batch until the device has finished the update that reads it."""
        ...

    def drop_after(self, count: int) -> None:
        """Drop all but the first ``count`` iterations since the last :meth:`read`, after one has failed."""
        ...

    def read(self, first: int) -> list[Recorded]:
        """The records of the iterations since the last call, the first of which is ``first``.

        Raises
        ------
        NonFiniteError
            If one is not finite. Nothing has been updated from that iteration on; its ``before`` has the
            iterations before it.
        """
        ...


class HostMonitor:
    """Reads every loss and norm at once: :class:`GradientMonitor`."""

    read_every = 1

    def __init__(self, params: Parameters, grads: Parameters, options: Options) -> None:
        self._params, self._grads, self._options = params, grads, options
        self._recorded: list[Recorded] = []
        self.scale, self.loss = 1.0, math.nan

    def record_and_clip(self, iteration: int, loss: Any, terms: Terms = NO_TERMS) -> None:
        """As in :class:`GradientMonitor`; raises the error that :meth:`read` would raise."""
        grads, options = self._grads, self._options
        loss, norm = float(loss), gradient_norm(grads)
        check_iteration(iteration, loss, norm, self._params, grads)
        self.loss = loss
        self._recorded.append(Recorded(loss, norm, {name: float(term) for name, term in terms.items()}))
        if options.clip_value is not None:
            clip_by_value(grads, options.clip_value)
            if options.clip_norm is not None:
                norm = gradient_norm(grads)
        self.scale = norm_scale(norm, options.clip_norm)

    def keep_alive(self, batch: Any) -> None:
        """Nothing: the update is complete."""

    def drop_after(self, count: int) -> None:
        """As in :class:`GradientMonitor`."""
        del self._recorded[count:]

    def read(self, first: int) -> list[Recorded]:
        """As in :class:`GradientMonitor`."""
        recorded, self._recorded = self._recorded, []
        return recorded


class DeviceMonitor:
    """Leaves losses, terms and norms on a GPU: :class:`GradientMonitor`."""

    def __init__(self, params: Parameters, grads: Parameters, options: Options) -> None:
        self._params, self._grads = params, grads
        self.read_every = min(options.print_every, _READ_EVERY)
        self._clip_value = options.clip_value
        self._log = gpu_training().GradientLog(self.read_every, options.clip_norm)
        self._in_use = gpu_training().InUse()
        self.loss = self._log.loss
        self.keep_alive, self.drop_after = self._in_use.hold, self._log.forget_after

    def record_and_clip(self, iteration: int, loss: Any, terms: Terms = NO_TERMS) -> None:
        """As in :class:`GradientMonitor`; ``scale`` is an array () on the device."""
        grads = self._grads
        sum_of_squares = ops_for(grads.flat).sum_of_squares
        squares, clipped = sum_of_squares(grads.flat), None
        if self._clip_value is not None:
            clip_by_value(grads, self._clip_value)
            clipped = sum_of_squares(grads.flat)
        self.scale = self._log.look(loss, squares, clipped, terms)

    def read(self, first: int) -> list[Recorded]:
        """As in :class:`GradientMonitor`."""
        recorded = [Recorded(*each) for each in self._log.read()]
        for k, (loss, norm, _) in enumerate(recorded):
            if not (math.isfinite(loss) and math.isfinite(norm)):
                check_iteration(first + k, loss, norm, self._params, self._grads, before=recorded[:k])
        return recorded


def gradient_monitor(params: Parameters, grads: Parameters, options: Options) -> GradientMonitor:
    """The monitor of the gradient ``grads``, for the device of the parameters.

    An update rule that is not built in takes its scale from the host, so it needs the host's monitor.
    """
    on_host = device_of(params.flat) == "cpu" or not runs_on_device(options.update_rule)
    return (HostMonitor if on_host else DeviceMonitor)(params, grads, options)
