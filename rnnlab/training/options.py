"""The solver's arguments: checked, and the options among them in a form that a checkpoint can hold."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from rnnlab.training.optim import make_update_rule
from rnnlab.training.sampling_schedules import make_sampling_schedule
from rnnlab.training.schedules import make_schedule

CHANGEABLE = (
    "num_epochs",
    "patience",
    "restore_best",
    "checkpoint_every",
    "accumulate",
    "graphs",
    "prefetch",
    "verbose",
    "print_every",
    "progress",
)


@dataclass(kw_only=True)
class Options:
    """The arguments of the Solver that have these names.

    Those that ``optim_config`` and the schedules leave out are filled in, so that a saved run does not
    depend on what the defaults are when it is resumed.

    Raises
    ------
    ValueError
        If one is not what it should be; names it.
    """

    update_rule: str
    optim_config: Mapping[str, float] | None
    schedule: Mapping[str, Any] | None
    scheduled_sampling: Mapping[str, Any] | None
    trains: Sequence[str] | None
    num_epochs: int
    batch_size: int
    accumulate: int
    graphs: bool
    clip_norm: float | None
    clip_value: float | None
    monitor: str
    patience: int | None
    restore_best: bool
    checkpoint_every: int | None
    prefetch: int
    seed: int
    verbose: bool
    print_every: int
    progress: bool

    def __post_init__(self) -> None:
        self.optim_config = make_update_rule(self.update_rule, self.optim_config).config()
        self.schedule = make_schedule(self.schedule).config()
        if self.scheduled_sampling is not None:
            self.scheduled_sampling = make_sampling_schedule(self.scheduled_sampling).config()
        if self.trains is not None:
            self.trains = _patterns("trains", self.trains)
        for name in ("num_epochs", "batch_size", "accumulate", "print_every"):
            setattr(self, name, _integer(name, getattr(self, name), 1))
        for name in ("seed", "prefetch"):
            setattr(self, name, _integer(name, getattr(self, name), 0))
        for name in ("graphs", "restore_best", "verbose", "progress"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise ValueError(f"Solver: {name} is {getattr(self, name)!r}, expected True or False")
            setattr(self, name, bool(getattr(self, name)))
        for name in ("patience", "checkpoint_every"):
            if getattr(self, name) is not None:
                setattr(self, name, _integer(name, getattr(self, name), 1))
        for name in ("clip_norm", "clip_value"):
            if getattr(self, name) is not None:
                setattr(self, name, _positive(name, getattr(self, name)))


def with_changes(options: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a saved run, with changes that do not contradict what it has done so far.

    Raises
    ------
    ValueError
        If a change is of an option that is not in :data:`CHANGEABLE`.
    """
    for name in changes:
        if name not in CHANGEABLE:
            raise ValueError(f"resume: {name} cannot change within a run, only {', '.join(CHANGEABLE)} can")
    return {**options, **changes}


def check_interface(argument: str, value: Any, names: tuple[str, ...]) -> None:
    """Raise TypeError unless ``value`` has these attributes."""
    missing = [name for name in names if not hasattr(value, name)]
    if missing:
        raise TypeError(
            f"Solver: {argument} is a {type(value).__name__} without {', '.join(missing)}; "
            f"expected an object that has {', '.join(names)}"
        )


def as_json(config: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The configuration as it comes back from JSON; TypeError if JSON cannot hold it."""
    try:
        return json.loads(json.dumps(config))
    except (TypeError, ValueError) as error:
        raise TypeError(f"Solver: config is nothing that JSON can hold: {error}") from None


def _patterns(name: str, value: Any) -> list[str]:
    if not isinstance(value, list | tuple) or not all(isinstance(pattern, str) for pattern in value):
        raise ValueError(f"Solver: {name} is {value!r}, expected a list of patterns")
    return list(value)


def _integer(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"Solver: {name} is {value!r}, expected an integer of at least {least}")
    return int(value)


def _positive(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < math.inf:
        raise ValueError(f"Solver: {name} is {value!r}, expected a positive number")
    return float(value)
