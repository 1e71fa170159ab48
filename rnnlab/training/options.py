"""The solver's options: checked, completed, and in a form that a checkpoint can hold."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple, Self

from rnnlab.errors import InputError
from rnnlab.ops.precision import products_precision
from rnnlab.options import as_plain, check_options
from rnnlab.training.monitor import mode_of
from rnnlab.training.optim import make_update_rule
from rnnlab.training.parameter_groups import check_groups
from rnnlab.training.sampling_schedules import SamplingSchedule, make_sampling_schedule
from rnnlab.training.schedules import Schedule, schedule_of
from rnnlab.training.update_rule import UpdateRule

CHANGEABLE = (
    "num_epochs",
    "patience",
    "restore_best",
    "checkpoint_every",
    "checkpoint_minutes",
    "accumulate",
    "graphs",
    "matmul",
    "prefetch",
    "verbose",
    "print_every",
    "progress",
)

# Arguments of the solver that are objects or paths, not options.
NOT_OPTIONS = (
    *("model", "data", "objective", "communicator", "device"),
    *("evaluate", "callbacks", "run_dir", "config"),
)


class Rules(NamedTuple):
    """The objects that options of a solver, or keys of [training] in a recipe, describe."""

    update_rule: UpdateRule
    schedule: Schedule
    scheduled_sampling: SamplingSchedule | None


def rules_of(options: Any) -> Rules:
    """Make the update rule and the schedules of options, and check the options that depend on others.

    Raises
    ------
    ValueError, TypeError
        If there is no such rule or schedule, it has no such option, a value is out of range, or options are
        incompatible. The error names the option.
    """
    if options.ema_decay is not None and not options.restore_best:
        raise InputError(
            f"ema_decay is {options.ema_decay}, which needs restore_best: the averaged parameters are those "
            "of the best epoch"
        )
    rule, sampling = make_update_rule(options.update_rule, options.optim_config), options.scheduled_sampling
    check_groups(options, rule)
    return Rules(
        rule, schedule_of(options.schedule), None if sampling is None else make_sampling_schedule(sampling)
    )


class Options(SimpleNamespace):
    """The options of a :class:`~rnnlab.training.Solver`, an attribute for each argument of that name.

    Options that ``optim_config``, the schedules, ``monitor_mode`` and ``matmul`` leave out are filled in, so
    that a saved run does not depend on the version that resumes it, nor on its environment.
    """

    @classmethod
    def of(cls, solver: type, arguments: Mapping[str, Any]) -> tuple[Self, Rules]:
        """Make the options, and the objects that they describe, from the arguments of a solver's constructor.

        Raises
        ------
        ValueError, TypeError
            If an argument does not match its annotation, or options are incompatible. The error names it.
        """
        others = ("self", *NOT_OPTIONS)
        options = {name: as_plain(value) for name, value in arguments.items() if name not in others}
        schedule = options["schedule"]
        is_function = callable(schedule) and not isinstance(schedule, type)
        if not is_function and not isinstance(schedule, Mapping | None):
            raise InputError(
                f"Solver: schedule is {schedule!r}, expected a mapping such as "
                "{'name': 'step', 'every': 3}, a function of iteration and epoch, or None"
            )
        check_options("Solver", solver, options | {"schedule": None} if is_function else options)
        rules = rules_of(SimpleNamespace(**options))
        options["optim_config"] = rules.update_rule.config()
        options["schedule"] = rules.schedule.config()
        if rules.scheduled_sampling is not None:
            options["scheduled_sampling"] = rules.scheduled_sampling.config()
        options["matmul"] = options["matmul"] or products_precision()
        options["monitor_mode"] = mode_of(options["monitor"], options["monitor_mode"])
        return cls(**options), rules

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(
            f"the solver's option {name} cannot be changed; Solver.resume takes new options of a run"
        )

    def to_dict(self) -> dict[str, Any]:
        """The options by name, in a form that JSON can hold."""
        return dict(vars(self))


def with_changes(
    options: Mapping[str, Any], changes: Mapping[str, Any], learning_rate: float | None = None
) -> dict[str, Any]:
    """The options of a saved run with changes that do not contradict the epochs it has trained.

    ``learning_rate`` is a new one in ``optim_config``; None leaves it as it is.

    Raises
    ------
    ValueError
        If a change is of an option that is not in :data:`CHANGEABLE`.
    """
    for name in changes:
        if name not in CHANGEABLE:
            changeable = ", ".join((*CHANGEABLE, "learning_rate"))
            raise InputError(f"resume: {name} cannot change within a run, only {changeable} can")
    changed = {**options, **changes}
    if learning_rate is not None:
        changed["optim_config"] = {**options["optim_config"], "learning_rate": learning_rate}
    return changed
