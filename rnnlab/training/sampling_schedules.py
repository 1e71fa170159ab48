"""Schedules of scheduled sampling: the probability over time that a decoder reads its own prediction.

A schedule's :meth:`~SamplingSchedule.probability` is called before every iteration. Iterations and epochs
count from 0. The probability is 1 - eps_i in the notation of Bengio et al. (2015). A custom schedule is a
dataclass that inherits from :class:`SamplingSchedule`; :func:`register_sampling_schedule` gives it a name.

>>> schedule = make_sampling_schedule({"name": "linear", "stop": 0.25, "over": 5})
>>> [round(schedule.probability(iteration=0, epoch=epoch), 2) for epoch in range(7)]
[0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.25]
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

from rnnlab.options import Range
from rnnlab.training.configured import Named, make
from rnnlab.training.registry import Registry
from rnnlab.training.schedules import Share, Unit

AtLeastOne: TypeAlias = Annotated[float, Range("[1, inf)")]


@dataclass(kw_only=True)
class SamplingSchedule(Named, ABC):
    """Base class of the schedules of scheduled sampling.

    It keeps no state from call to call: checkpoints hold its options only.
    """

    @abstractmethod
    def probability(self, iteration: int, epoch: int) -> float:
        """The probability in this iteration of this epoch. It may be asked for several times."""

    def _place(self) -> str:
        return f"scheduled_sampling {self.name}"


@dataclass(kw_only=True)
class Constant(SamplingSchedule):
    """The same ``value`` in all iterations."""

    value: Share
    name = "constant"

    def probability(self, iteration: int, epoch: int) -> float:
        """``value``."""
        return float(self.value)


@dataclass(kw_only=True)
class Linear(SamplingSchedule):
    """Linear from ``start`` to ``stop``, which is reached after ``over`` epochs or iterations."""

    start: Share = 0.0
    stop: Share
    over: AtLeastOne
    unit: Unit = "epochs"
    name = "linear"

    def probability(self, iteration: int, epoch: int) -> float:
        """``start + (stop - start) * min(1, done / over)``."""
        done = iteration if self.unit == "iterations" else epoch
        return float(self.start + (self.stop - self.start) * min(1, done / self.over))


@dataclass(kw_only=True)
class EpochFraction(SamplingSchedule):
    """``epoch / epochs``, at most ``most``: the Recurrent Nested Model's min(0.25, epoch / 100)."""

    epochs: AtLeastOne = 100
    most: Share = 0.25
    name = "epoch_fraction"

    def probability(self, iteration: int, epoch: int) -> float:
        """``min(most, epoch / epochs)``; ``epoch`` is the number of epochs done."""
        return float(min(self.most, epoch / self.epochs))


@dataclass(kw_only=True)
class InverseSigmoid(SamplingSchedule):
    """An inverse sigmoid, from 1 / (k + 1) towards 1 (Bengio et al. 2015, section 2.4).

    The true word has the probability k / (k + exp(i / k)), which is one half at i = k log k.
    """

    k: AtLeastOne
    unit: Unit = "iterations"
    name = "inverse_sigmoid"

    def probability(self, iteration: int, epoch: int) -> float:
        """``1 - k / (k + exp(i / k))``, i the number of iterations or epochs done."""
        done = iteration if self.unit == "iterations" else epoch
        return 1 / (1 + self.k * math.exp(-done / self.k))  # this form cannot overflow


SAMPLING_SCHEDULES: Registry[SamplingSchedule] = Registry(
    "name",
    SamplingSchedule,
    {schedule.name: schedule for schedule in (Constant, Linear, EpochFraction, InverseSigmoid)},
)


def register_sampling_schedule(name: str, schedule: type[SamplingSchedule]) -> None:
    """Register a schedule under a name, for ``Solver(scheduled_sampling={"name": name, ...})`` and recipes.

    The name is registered in this process only. On the command line use "package.module:Object" instead.

    Parameters
    ----------
    name : str
    schedule : class
        A subclass of :class:`SamplingSchedule`.

    Raises
    ------
    ValueError
        If the name is empty, has a colon, or another schedule has it.
    TypeError
        If ``schedule`` is not a class with these members.
    """
    SAMPLING_SCHEDULES.register(name, schedule)


def make_sampling_schedule(config: Mapping[str, Any]) -> SamplingSchedule:
    """The schedule that ``config`` describes by its ``name`` and its options.

    Raises
    ------
    ValueError
        If there is no such schedule, it has no such option, lacks one, or one is out of its range.
    """
    return make("scheduled_sampling", SAMPLING_SCHEDULES, config)
