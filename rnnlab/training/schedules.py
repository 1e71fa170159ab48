"""Learning rate schedules: what multiplies the base learning rate, and when.

A schedule is asked for its :meth:`~Schedule.multiplier` before every iteration, and told after every epoch
whether the monitored metric improved. Iterations and epochs count from 0.

>>> schedule = make_schedule({"name": "step", "factor": 0.7, "every": 3, "unit": "epochs"})
>>> [schedule.multiplier(iteration=0, epoch=epoch) for epoch in range(5)]
[1.0, 1.0, 1.0, 0.7, 0.7]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar, TypeVar

T = TypeVar("T")


@dataclass(kw_only=True)
class Schedule:
    """What all schedules share, and the constant schedule."""

    name: ClassVar[str] = "constant"
    needs_validation: ClassVar[bool] = False

    def multiplier(self, iteration: int, epoch: int) -> float:
        """What to multiply the learning rate by in this iteration of this epoch."""
        return 1.0

    def end_epoch(self, improved: bool) -> None:
        """Take note that an epoch ended, and whether the monitored metric became better than ever before."""

    def config(self) -> dict[str, Any]:
        """The name and the options, as :func:`make_schedule` takes them."""
        return {"name": self.name} | {field.name: getattr(self, field.name) for field in fields(self)}

    def state(self) -> dict[str, int]:
        """What the schedule remembers."""
        return {}

    def load_state(self, state: Mapping[str, int]) -> None:
        """Go on from a :meth:`state`."""


@dataclass(kw_only=True)
class Exponential(Schedule):
    """Multiply by ``decay`` after every epoch: the course's ``lr_decay``."""

    decay: float
    name: ClassVar[str] = "exponential"

    def __post_init__(self) -> None:
        _check_factor("exponential", "decay", self.decay)

    def multiplier(self, iteration: int, epoch: int) -> float:
        """``decay ** epoch``."""
        return float(self.decay**epoch)


@dataclass(kw_only=True)
class Step(Schedule):
    """Multiply by ``factor`` after every ``every`` iterations or epochs, whichever ``unit`` says."""

    factor: float = 0.5
    every: int
    unit: str = "epochs"
    name: ClassVar[str] = "step"

    def __post_init__(self) -> None:
        _check_factor("step", "factor", self.factor)
        _check_count("step", "every", self.every)
        if self.unit not in ("iterations", "epochs"):
            raise ValueError(f"schedule step: unit is {self.unit!r}, expected 'iterations' or 'epochs'")

    def multiplier(self, iteration: int, epoch: int) -> float:
        """``factor ** (number of whole steps done)``."""
        done = iteration if self.unit == "iterations" else epoch
        return float(self.factor ** (done // self.every))


@dataclass(kw_only=True)
class Plateau(Schedule):
    """Multiply by ``factor`` after ``patience`` epochs in a row without a better metric."""

    factor: float = 0.5
    patience: int = 1
    name: ClassVar[str] = "plateau"
    needs_validation: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_factor("plateau", "factor", self.factor)
        _check_count("plateau", "patience", self.patience)
        self._drops = self._waited = 0

    def multiplier(self, iteration: int, epoch: int) -> float:
        """``factor ** (number of drops so far)``."""
        return float(self.factor**self._drops)

    def end_epoch(self, improved: bool) -> None:
        """Count the epochs without improvement; after ``patience`` of them drop, and count anew."""
        self._waited = 0 if improved else self._waited + 1
        if self._waited == self.patience:
            self._waited = 0
            self._drops += 1

    def state(self) -> dict[str, int]:
        """The drops so far and the epochs waited since the last drop or improvement."""
        return {"drops": self._drops, "waited": self._waited}

    def load_state(self, state: Mapping[str, int]) -> None:
        """Go on from a :meth:`state`."""
        self._drops, self._waited = state["drops"], state["waited"]


SCHEDULES: dict[str, type[Schedule]] = {
    schedule.name: schedule for schedule in (Schedule, Exponential, Step, Plateau)
}


def make_schedule(config: Mapping[str, Any] | None = None) -> Schedule:
    """The schedule that ``config`` describes by its ``name`` and its options; constant if None.

    Raises
    ------
    ValueError
        If there is no such schedule, it has no such option, lacks one, or one is out of its range.
    """
    return made_of("schedule", SCHEDULES, config or {"name": "constant"})


def made_of(argument: str, choices: Mapping[str, type[T]], config: Mapping[str, Any]) -> T:
    """An instance of the one of some dataclasses that ``config`` has the ``name`` of, with its other keys.

    Raises
    ------
    ValueError
        If there is no such name, or it has no such option or lacks one; names the argument.
    """
    if not isinstance(config, Mapping):
        raise ValueError(
            f"{argument} is {config!r}, expected a table with a name, one of {', '.join(choices)}"
        )
    options = dict(config)
    name = options.pop("name", None)
    if name not in choices:
        raise ValueError(f"{argument}: name is {name!r}, expected one of {', '.join(choices)}")
    known = fields(choices[name])  # type: ignore[arg-type]
    names = [field.name for field in known]
    for key in options:
        if key not in names:
            raise ValueError(f"{argument} {name}: unknown key {key!r}; it has {', '.join(names) or 'none'}")
    for field in known:
        if field.default is MISSING and field.name not in options:
            raise ValueError(f"{argument} {name}: {field.name} is missing")
    return choices[name](**options)


def _check_factor(schedule: str, name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        raise ValueError(f"schedule {schedule}: {name} is {value!r}, expected a number in (0, 1]")


def _check_count(schedule: str, name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"schedule {schedule}: {name} is {value!r}, expected a positive integer")
