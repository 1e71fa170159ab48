"""Learning rate schedules: the factor of the base learning rate over time.

A schedule's :meth:`~Schedule.multiplier` is called before every iteration, its :meth:`~Schedule.end_epoch`
after every epoch, with whether the monitored metric improved. Iterations and epochs count from 0.

>>> schedule = make_schedule({"name": "step", "factor": 0.7, "every": 3, "unit": "epochs"})
>>> [schedule.multiplier(iteration=0, epoch=epoch) for epoch in range(5)]
[1.0, 1.0, 1.0, 0.7, 0.7]

A custom schedule is a dataclass that inherits from :class:`Schedule`; :func:`register_schedule` gives
it a name.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

from rnnlab.errors import InputError
from rnnlab.options import Count, Range, Stored
from rnnlab.training.configured import Named, make
from rnnlab.training.registry import Registry

Factor: TypeAlias = Annotated[float, Range("(0, 1]")]
Share: TypeAlias = Annotated[float, Range("[0, 1]")]
ScheduleFunction: TypeAlias = Callable[[int, int], float]  # arguments: iteration and epoch, both from 0
ScheduleOption: TypeAlias = Annotated[
    Mapping[str, Any] | ScheduleFunction | None, Stored(Mapping[str, Any] | None)
]
Unit: TypeAlias = Literal["iterations", "epochs"]


@dataclass(kw_only=True)
class Schedule(Named, ABC):
    """Base class of learning rate schedules.

    A subclass is a dataclass. Its fields are options with annotations of :mod:`rnnlab.options`, which are
    checked.

    Attributes
    ----------
    name : str
        Set by :func:`make_schedule`.
    needs_validation : bool
        Whether :meth:`end_epoch` needs to know if the monitored metric improved.
    """

    needs_validation = False  # without an annotation, since it is not an option

    @abstractmethod
    def multiplier(self, iteration: int, epoch: int) -> float:
        """The factor of the learning rate in this iteration of this epoch."""

    def end_epoch(self, improved: bool) -> None:
        """Called when an epoch ends; ``improved`` says whether the monitored metric is the best so far."""

    def state(self) -> dict[str, Any]:
        """What changes while training, in a form that JSON can hold."""
        return {}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Resume from a :meth:`state`."""

    def _place(self) -> str:
        return f"schedule {self.name or type(self).__name__}"


@dataclass(kw_only=True)
class Constant(Schedule):
    """The same learning rate in all iterations."""

    name = "constant"

    def multiplier(self, iteration: int, epoch: int) -> float:
        """1."""
        return 1.0


@dataclass(kw_only=True)
class Exponential(Schedule):
    """Multiply by ``decay`` after every epoch: the course's ``lr_decay``."""

    decay: Factor
    name = "exponential"

    def multiplier(self, iteration: int, epoch: int) -> float:
        """``decay ** epoch``."""
        return float(self.decay**epoch)


@dataclass(kw_only=True)
class Step(Schedule):
    """Multiply by ``factor`` after every ``every`` iterations or epochs, as ``unit`` says."""

    factor: Factor = 0.5
    every: Count
    unit: Unit = "epochs"
    name = "step"

    def multiplier(self, iteration: int, epoch: int) -> float:
        """``factor ** (number of whole steps done)``."""
        done = iteration if self.unit == "iterations" else epoch
        return float(self.factor ** (done // self.every))


@dataclass(kw_only=True)
class Plateau(Schedule):
    """Multiply by ``factor`` after ``patience`` epochs in a row without a better metric."""

    factor: Factor = 0.5
    patience: Count = 1
    name = "plateau"
    needs_validation = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self._drops = self._waited = 0

    def multiplier(self, iteration: int, epoch: int) -> float:
        """``factor ** (number of drops so far)``."""
        return float(self.factor**self._drops)

    def end_epoch(self, improved: bool) -> None:
        """Count the epochs without improvement; after ``patience`` of them drop, and restart the count."""
        self._waited = 0 if improved else self._waited + 1
        if self._waited == self.patience:
            self._waited = 0
            self._drops += 1

    def state(self) -> dict[str, Any]:
        """The drops so far, and the epochs since the last drop or improvement."""
        return {"drops": self._drops, "waited": self._waited}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Resume from a :meth:`state`."""
        self._drops, self._waited = state["drops"], state["waited"]


@dataclass(kw_only=True)
class Cosine(Schedule):
    """Half a cosine from 1 to ``minimum`` over ``over`` epochs or iterations, then constant.

    Loshchilov and Hutter (2017), eq. 5, without restarts.
    """

    over: Count
    minimum: Share = 0.0
    unit: Unit = "epochs"
    name = "cosine"

    def multiplier(self, iteration: int, epoch: int) -> float:
        """``minimum + (1 - minimum) (1 + cos(pi done / over)) / 2``."""
        done = iteration if self.unit == "iterations" else epoch
        share = min(1.0, done / self.over)
        return self.minimum + (1 - self.minimum) * (1 + math.cos(math.pi * share)) / 2


@dataclass(kw_only=True)
class Warmup(Schedule):
    """Linear from 1 / over to 1 in the first ``over`` iterations or epochs, times the schedule ``then``.

    In the k-th iteration or epoch, counted from 1, the factor is k / over. ``then`` is the table of another
    schedule; constant if left out. It counts from the beginning of training, or from the end of the warmup
    with ``then_after``. Both then need the same unit, and ``then`` cannot be ``plateau``.
    """

    over: Count
    unit: Unit = "iterations"
    then: Mapping[str, Any] | None = None
    then_after: bool = False
    name = "warmup"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._then = make("schedule warmup.then", SCHEDULES, self.then or {"name": "constant"})
        self.then = self._then.config()
        self.needs_validation = self._then.needs_validation
        unit = getattr(self._then, "unit", "epochs")
        if self.then_after and self.needs_validation:
            raise InputError(
                f"schedule warmup: then_after is True, expected False with then = {self._then.name}, which "
                "counts epochs without a better metric, also those of the warmup"
            )
        if self.then_after and self._then.name == Constant.name:
            raise InputError("schedule warmup: then_after is True, which needs then")
        if self.then_after and unit != self.unit:
            raise InputError(
                f"schedule warmup: then_after is True and unit is {self.unit!r}, expected {unit!r}, the unit "
                f"of then, {self._then.name}"
            )

    def multiplier(self, iteration: int, epoch: int) -> float:
        """``min(1, (done + 1) / over)`` times the factor of ``then``."""
        done = iteration if self.unit == "iterations" else epoch
        factor = min(1.0, (done + 1) / self.over)
        if self.then_after:
            since = max(0, done - self.over)
            iteration, epoch = (since, epoch) if self.unit == "iterations" else (iteration, since)
        return factor * self._then.multiplier(iteration, epoch)

    def end_epoch(self, improved: bool) -> None:
        """That of ``then``."""
        self._then.end_epoch(improved)

    def state(self) -> dict[str, Any]:
        """That of ``then``."""
        return self._then.state()

    def load_state(self, state: Mapping[str, Any]) -> None:
        """That of ``then``."""
        self._then.load_state(state)


class OwnSchedule(Schedule):
    """A function of the iteration and the epoch, both from 0, as a schedule."""

    name = "function"

    def __init__(self, function: ScheduleFunction) -> None:
        self._function = function

    def multiplier(self, iteration: int, epoch: int) -> float:
        """The value of the function."""
        return self._function(iteration, epoch)

    def __str__(self) -> str:
        return f"schedule: {_name_of(self._function)}"

    def config(self) -> dict[str, Any]:
        """The name of the function, which cannot be saved itself."""
        return {"name": self.name, "function": _name_of(self._function)}


SCHEDULES: Registry[Schedule] = Registry(
    "name",
    Schedule,
    {schedule.name: schedule for schedule in (Constant, Exponential, Step, Plateau, Cosine, Warmup)},
    reserved=(OwnSchedule.name,),
)


def register_schedule(name: str, schedule: type[Schedule]) -> None:
    """Register a schedule under a name, for ``Solver(schedule={"name": name, ...})`` and recipes.

    The name is registered in this process only. On the command line use "package.module:Object" instead.

    Parameters
    ----------
    name : str
    schedule : class
        A subclass of :class:`Schedule`, or a dataclass with its members.

    Raises
    ------
    ValueError
        If the name is "function", is empty, has a colon, or another schedule has it.
    TypeError
        If ``schedule`` is not a class with these members.
    """
    SCHEDULES.register(name, schedule)


def make_schedule(config: Mapping[str, Any] | None = None) -> Schedule:
    """The schedule that ``config`` describes by its ``name`` and its options; constant if None.

    Parameters
    ----------
    config : mapping, optional
        Its ``name`` is a built-in one, a registered one, or "package.module:Object".

    Raises
    ------
    ValueError
        If there is no such schedule, it has no such option, lacks one, or one is out of its range.
    TypeError
        If the object of that name is not a schedule.
    """
    return make("schedule", SCHEDULES, config or {"name": "constant"})


def schedule_of(schedule: Mapping[str, Any] | ScheduleFunction | None) -> Schedule:
    """The schedule of a function, or as :func:`make_schedule`."""
    return OwnSchedule(schedule) if callable(schedule) else make_schedule(schedule)


def resumed_schedule(
    saved: Mapping[str, Any] | None, function: ScheduleFunction | None
) -> Mapping[str, Any] | ScheduleFunction | None:
    """The schedule of a saved run, whose function is ``function`` if it has one.

    Raises
    ------
    ValueError
        If the run's schedule is a function and no function of that name is given, or the other way round.
    """
    name = (saved or {}).get("name")
    if saved is not None and name == OwnSchedule.name:
        given = _name_of(function) if callable(function) else function
        if given != saved["function"]:
            raise InputError(
                f"resume: schedule is {given}, expected the function {saved['function']}, which this run has"
            )
        return function
    if function is not None:
        raise InputError(f"resume: schedule is given, but the schedule of this run is {name}")
    return saved


def _name_of(function: ScheduleFunction) -> str:
    return getattr(function, "__qualname__", type(function).__qualname__)
