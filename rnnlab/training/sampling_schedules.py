"""Schedules of scheduled sampling: how often a word that is read is the model's own, and when.

A schedule is asked for its :meth:`~SamplingSchedule.probability` before every iteration. Iterations and
epochs count from 0. The probability is that of the model's word: 1 - eps_i of Bengio et al. (2015).

>>> schedule = make_sampling_schedule({"name": "linear", "stop": 0.25, "over": 5})
>>> [round(schedule.probability(iteration=0, epoch=epoch), 2) for epoch in range(7)]
[0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.25]
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from rnnlab.training.schedules import made_of


@dataclass(kw_only=True)
class SamplingSchedule(ABC):
    """What all schedules share."""

    name: ClassVar[str]

    @abstractmethod
    def probability(self, iteration: int, epoch: int) -> float:
        """The probability in this iteration of this epoch."""

    def config(self) -> dict[str, Any]:
        """The name and the options, as :func:`make_sampling_schedule` takes them."""
        return {"name": self.name} | {field.name: getattr(self, field.name) for field in fields(self)}

    def _check(self, name: str, low: float, high: float) -> None:
        value = getattr(self, name)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not (is_number and low <= value <= high and math.isfinite(value)):
            expected = f"in [{low:g}, {high:g}]" if high < math.inf else f"of at least {low:g}"
            raise ValueError(
                f"scheduled_sampling {self.name}: {name} is {value!r}, expected a number {expected}"
            )

    def _check_unit(self, unit: str) -> None:
        if unit not in ("iterations", "epochs"):
            raise ValueError(
                f"scheduled_sampling {self.name}: unit is {unit!r}, expected 'iterations' or 'epochs'"
            )


@dataclass(kw_only=True)
class Constant(SamplingSchedule):
    """The same ``value`` from beginning to end."""

    value: float
    name: ClassVar[str] = "constant"

    def __post_init__(self) -> None:
        self._check("value", 0, 1)

    def probability(self, iteration: int, epoch: int) -> float:
        """``value``."""
        return float(self.value)


@dataclass(kw_only=True)
class Linear(SamplingSchedule):
    """From ``start`` in a straight line to ``stop``, which it has after ``over`` epochs or iterations."""

    start: float = 0.0
    stop: float
    over: float
    unit: str = "epochs"
    name: ClassVar[str] = "linear"

    def __post_init__(self) -> None:
        self._check("start", 0, 1)
        self._check("stop", 0, 1)
        self._check("over", 1, math.inf)
        self._check_unit(self.unit)

    def probability(self, iteration: int, epoch: int) -> float:
        """``start + (stop - start) * min(1, done / over)``."""
        done = iteration if self.unit == "iterations" else epoch
        return float(self.start + (self.stop - self.start) * min(1, done / self.over))


@dataclass(kw_only=True)
class EpochFraction(SamplingSchedule):
    """A hundredth more after every epoch, up to a quarter, or as ``epochs`` and ``most`` say.

    The schedule of the Recurrent Nested Model, min(0.25, epoch / 100).
    """

    epochs: float = 100
    most: float = 0.25
    name: ClassVar[str] = "epoch_fraction"

    def __post_init__(self) -> None:
        self._check("epochs", 1, math.inf)
        self._check("most", 0, 1)

    def probability(self, iteration: int, epoch: int) -> float:
        """``min(most, epoch / epochs)``, of the epochs that are done."""
        return float(min(self.most, epoch / self.epochs))


@dataclass(kw_only=True)
class InverseSigmoid(SamplingSchedule):
    """Slowly at first, then fast, then slowly towards 1 (Bengio et al. 2015, section 2.4).

    The true word has the probability k / (k + exp(i / k)). It is as likely as the model's own at i = k log k.
    """

    k: float
    unit: str = "iterations"
    name: ClassVar[str] = "inverse_sigmoid"

    def __post_init__(self) -> None:
        self._check("k", 1, math.inf)
        self._check_unit(self.unit)

    def probability(self, iteration: int, epoch: int) -> float:
        """``1 - k / (k + exp(i / k))``, i the iterations or epochs that are done."""
        done = iteration if self.unit == "iterations" else epoch
        return 1 / (1 + self.k * math.exp(-done / self.k))  # without an exponential that overflows


SAMPLING_SCHEDULES: dict[str, type[SamplingSchedule]] = {
    schedule.name: schedule for schedule in (Constant, Linear, EpochFraction, InverseSigmoid)
}


def make_sampling_schedule(config: Mapping[str, Any]) -> SamplingSchedule:
    """The schedule that ``config`` describes by its ``name`` and its options.

    Raises
    ------
    ValueError
        If there is no such schedule, it has no such option, lacks one, or one is out of its range.
    """
    return made_of("scheduled_sampling", SAMPLING_SCHEDULES, config)
