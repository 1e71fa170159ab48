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

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Protocol, TypeAlias

from rnnlab.options import Count, Range
from rnnlab.training.configured import Configured, make
from rnnlab.training.registry import Registry

Factor: TypeAlias = Annotated[float, Range("(0, 1]")]
Unit: TypeAlias = Literal["iterations", "epochs"]


class LearningRateSchedule(Protocol):
    """What the solver uses of a learning rate schedule.

    Attributes
    ----------
    name : str
        Set by :func:`make_schedule`.
    needs_validation : bool
        Whether :meth:`end_epoch` needs to know if the monitored metric improved.
    """

    name: str
    needs_validation: ClassVar[bool]

    def multiplier(self, iteration: int, epoch: int) -> float:
        """The factor of the learning rate in this iteration of this epoch."""
        ...

    def end_epoch(self, improved: bool) -> None:
        """Called when an epoch ends; ``improved`` says whether the monitored metric is the best so far."""
        ...

    def config(self) -> dict[str, Any]:
        """The name and the options, as :func:`make_schedule` takes them."""
        ...

    def state(self) -> dict[str, Any]:
        """What changes while training, in a form that JSON can hold."""
        ...

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Resume from a :meth:`state`."""
        ...


@dataclass(kw_only=True)
class Schedule(Configured, ABC):
    """Base class of learning rate schedules.

    A subclass is a dataclass. Its fields are options with annotations of :mod:`rnnlab.options`, which are
    checked.
    """

    name = ""  # without an annotation, since it is no option
    needs_validation: ClassVar[bool] = False

    @abstractmethod
    def multiplier(self, iteration: int, epoch: int) -> float:
        """The factor of the learning rate in this iteration of this epoch."""

    def end_epoch(self, improved: bool) -> None:
        """Called when an epoch ends; ``improved`` says whether the monitored metric is the best so far."""

    def config(self) -> dict[str, Any]:
        """The name and the options, as :func:`make_schedule` takes them."""
        return {"name": self.name} | super().config()

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
    needs_validation: ClassVar[bool] = True

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


SCHEDULES: Registry[LearningRateSchedule] = Registry(
    "name",
    LearningRateSchedule,
    {schedule.name: schedule for schedule in (Constant, Exponential, Step, Plateau)},
)


def register_schedule(name: str, schedule: type[LearningRateSchedule]) -> None:
    """Give a learning rate schedule a name, for ``Solver(schedule={"name": name, ...})`` and recipes.

    The name is known in this process only. On the command line use "package.module:Object" instead.

    Parameters
    ----------
    name : str
    schedule : class
        A subclass of :class:`Schedule`, or a dataclass that has all members of
        :class:`LearningRateSchedule`.

    Raises
    ------
    ValueError
        If the name is a built-in one, is empty or has a colon.
    TypeError
        If ``schedule`` is not a class with these members.
    """
    SCHEDULES.register(name, schedule)


def make_schedule(config: Mapping[str, Any] | None = None) -> LearningRateSchedule:
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
        If the object of that name is no schedule.
    """
    return make("schedule", SCHEDULES, config or {"name": "constant"})
