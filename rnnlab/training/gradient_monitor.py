"""What is asked of a gradient before an update: is it finite, how long is it, is it to be clipped.

On a CPU the answers are there at once. On a GPU the update reads them from the device, and the host only now
and then, so that it need not wait at each iteration.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

from rnnlab.ops import device_of, gpu_training, ops_for
from rnnlab.parameters import Parameters
from rnnlab.training.clipping import clip_by_value, gradient_norm, norm_scale
from rnnlab.training.nonfinite import check_iteration
from rnnlab.training.optim import make_update_rule, runs_on_device
from rnnlab.training.options import Options

_READ_EVERY = 256  # iterations, at most


class GradientChecks(Protocol):
    """Looks at the gradients of the iterations, one after another.

    Attributes
    ----------
    read_every : int
        How many iterations it may be until :meth:`read` is called.
    scale : float, or an array ()
        The factor by which the last gradient that was looked at is to be multiplied, so that its norm is at
        most ``clip_norm``.
    """

    read_every: int
    scale: Any

    def look(self, iteration: int, loss: Any, params: Parameters, grads: Parameters) -> None:
        """Clip by value in place, and find the factor that clips by norm, for the update rule."""
        ...

    def hold(self, batch: Any) -> None:
        """Hold what an update reads that has been launched, as long as that takes."""
        ...

    def forget_after(self, count: int) -> None:
        """Forget all but the first ``count`` iterations since the last :meth:`read`: one has failed."""
        ...

    def read(self, first: int, params: Parameters, grads: Parameters) -> list[tuple[float, float]]:
        """Losses and norms, before clipping, of the iterations since the last time; ``first`` is the first.

        Raises
        ------
        NonFiniteError
            If one is not finite: then nothing has been updated from that iteration on. Those before it are
            in its ``before``.
        """
        ...


class ReadAtOnce:
    """Waits for every loss and norm."""

    read_every = 1

    def __init__(self, options: Options) -> None:
        self._options = options
        self._seen: list[tuple[float, float]] = []
        self.scale = 1.0

    def look(self, iteration: int, loss: Any, params: Parameters, grads: Parameters) -> None:
        """As of :class:`GradientChecks`; raises what :meth:`read` would."""
        loss, norm, options = float(loss), gradient_norm(grads), self._options
        check_iteration(iteration, loss, norm, params, grads)
        self._seen.append((loss, norm))
        if options.clip_value is not None:
            clip_by_value(grads, options.clip_value)
            if options.clip_norm is not None:
                norm = gradient_norm(grads)
        self.scale = norm_scale(norm, options.clip_norm)

    def hold(self, batch: Any) -> None:
        """Nothing: the update has been done."""

    def forget_after(self, count: int) -> None:
        """As of :class:`GradientChecks`."""
        del self._seen[count:]

    def read(self, first: int, params: Parameters, grads: Parameters) -> list[tuple[float, float]]:
        """As of :class:`GradientChecks`."""
        seen, self._seen = self._seen, []
        return seen


class ReadLater:
    """Leaves losses and norms on a GPU, and has the update wait for nobody."""

    def __init__(self, options: Options) -> None:
        self.read_every = min(options.print_every, _READ_EVERY)
        self._clip_value = options.clip_value
        self._log = gpu_training().GradientLog(self.read_every, options.clip_norm)
        self._in_use = gpu_training().InUse()
        self.hold, self.forget_after = self._in_use.hold, self._log.forget_after

    def look(self, iteration: int, loss: Any, params: Parameters, grads: Parameters) -> None:
        """As of :class:`GradientChecks`; the factor is an array () on the device."""
        sum_of_squares = ops_for(grads.flat).sum_of_squares
        squares, clipped = sum_of_squares(grads.flat), None
        if self._clip_value is not None:
            clip_by_value(grads, self._clip_value)
            clipped = sum_of_squares(grads.flat)
        self.scale = self._log.look(loss, squares, clipped)

    def read(self, first: int, params: Parameters, grads: Parameters) -> list[tuple[float, float]]:
        """As of :class:`GradientChecks`."""
        seen = self._log.read()
        for k, (loss, norm) in enumerate(seen):
            if not (math.isfinite(loss) and math.isfinite(norm)):
                check_iteration(first + k, loss, norm, params, grads, before=seen[:k])
        return seen


def gradient_checks(params: Parameters, options: Options) -> GradientChecks:
    """The checks for the parameters' device, and for a rule that takes its scale from the host."""
    rule = make_update_rule(options.update_rule, options.optim_config)
    at_once = device_of(params.flat) == "cpu" or not runs_on_device(rule)
    return ReadAtOnce(options) if at_once else ReadLater(options)
