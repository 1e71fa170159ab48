"""The tables [[stage]] of a recipe: training in stages, each from the parameters of the one before.

A stage is equivalent to a recipe of its own with ``warm_start``: a solver with its own epochs, update rule
and stopping rule. In addition it selects the parameters that train and the weights of the model's losses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar

from rnnlab.errors import InputError
from rnnlab.models import CaptioningRNN, LanguageModel, Seq2Seq, SequenceClassifier
from rnnlab.models.parts.combinations import check_combinations
from rnnlab.models.parts.losses import LOSSES, check_sampled_losses
from rnnlab.options import check_options
from rnnlab.recipes.derived import UNSET, Table, arguments_of, derived_from, with_keys
from rnnlab.recipes.schema import RecipeError
from rnnlab.recipes.tables import NOT_IN_RECIPES, SelfCriticalTable, TrainingTable
from rnnlab.training import Solver
from rnnlab.training.parameter_groups import ParameterGroups
from rnnlab.training.protocols import Model
from rnnlab.training.schedules import make_schedule
from rnnlab.training.step import check_sampled
from rnnlab.training.validation import check_without_validation, has_validation

_MODELS = (CaptioningRNN, Seq2Seq, LanguageModel, SequenceClassifier)
_ARGUMENTS = {name: each for model in _MODELS for name, each in arguments_of(model).items()}

# Keys of [training] that are the same in all stages.
_OF_ALL_STAGES = ("restore_best", "checkpoint_every", "checkpoint_minutes", "prefetch")


@with_keys({name: _ARGUMENTS[name] for name in LOSSES}, unset=True)
class LossWeights(Table):
    """Options of the model that weight its losses; those left out are as in [model]."""


@derived_from(Solver, without=(*NOT_IN_RECIPES, *_OF_ALL_STAGES), unset=True)
class StageTable(Table):
    """The keys of a stage. A key of [training] that is left out has the value of [training].

    So does a key of ``optim_config`` that is left out, unless the stage has another ``update_rule``.
    """

    ELSEWHERE: ClassVar = TrainingTable.ELSEWHERE

    losses: LossWeights = field(default_factory=LossWeights)
    self_critical: SelfCriticalTable | None = None  # train for CIDEr-D of sampled captions


# Keys that [training] does not have.
OF_STAGES = {each.name for each in fields(StageTable)} - {each.name for each in fields(TrainingTable)}


@dataclass(frozen=True)
class Stage:
    """One of the stages of a recipe, with all keys of its training.

    Attributes
    ----------
    number, count : int
        It is the ``number``-th of ``count``.
    training : TrainingTable
    losses : dict of str to float
        Weights to set on the model.
    self_critical : SelfCriticalTable or None
        The options of self-critical training, if the stage trains for a reward. Losses of the model that the
        stage does not set are then 0.
    """

    number: int
    count: int
    training: TrainingTable
    losses: dict[str, float]
    self_critical: SelfCriticalTable | None = None

    @property
    def is_last(self) -> bool:
        """Whether it is the stage that makes the run's model."""
        return self.number == self.count

    def directory(self, run: Path) -> Path:
        """The directory of the stage: the run directory for the last stage, else ``stageN`` in it."""
        return run if self.is_last else run / f"stage{self.number}"

    def options(self) -> dict[str, Any]:
        """The keyword arguments of the Solver."""
        options = asdict(self.training)
        del options["warm_start"]
        return options

    def prepare(self, model: Any) -> None:
        """Set the weights of the model's losses."""
        if self.self_critical is not None:
            for name in LOSSES:
                if hasattr(model, name):
                    setattr(model, name, 0.0)
        for name, weight in self.losses.items():
            setattr(model, name, weight)

    def describe(self, model: Model) -> str:
        """The parameters that train and the weights of losses, as a line of text."""
        groups = ParameterGroups(model.params, self.training.trains)
        said = f"all {len(groups.trained)} parameters train"
        if groups.frozen:
            names = ", ".join(groups.trained)
            said = f"{len(groups.trained)} of {len(model.params)} parameters train: {names}"
        weights = "".join(f"; {name} = {weight:g}" for name, weight in self.losses.items())
        if self.self_critical is not None:
            table = self.self_critical
            weights += f"; self-critical: {table.samples} samples, baseline {table.baseline}"
        return f"Stage {self.number} of {self.count}: {said}{weights}."


def has_own(table: StageTable, key: str, training: TrainingTable) -> bool:
    """Whether a stage does not take the value of a key of [training], which may be dotted.

    It has its own value of the key, of the table that holds it, or of the key that it belongs to: the update
    rule of ``optim_config``, or the monitor of ``monitor_mode``. Tables other than ``optim_config`` are
    replaced as a whole.
    """
    name, _, option = key.partition(".")
    given = _given(table)
    belongs_to = {"optim_config": "update_rule", "monitor_mode": "monitor"}.get(name, "")
    if belongs_to in given and given[belongs_to] != getattr(training, belongs_to):
        return True
    if name != "optim_config" or name not in given:
        return name in given
    options = [option] if option else list(training.optim_config or {})
    return all(each in (given[name] or {}) for each in options)


def check_reach(keys: Sequence[str], tables: Sequence[StageTable], training: TrainingTable) -> None:
    """Raise RecipeError if an override sets a key of [training] of which every stage has its own value."""
    for key in keys:
        table, _, name = key.partition(".")
        if table == "training" and tables and all(has_own(stage, name, training) for stage in tables):
            raise RecipeError(f"--set {key}: every stage has its own {name}, so set stage.1.{name} and so on")


def stages_of(training: TrainingTable, tables: Sequence[StageTable]) -> list[Stage]:
    """The stages that the tables describe; one stage of the whole [training] if there are no tables.

    Raises
    ------
    ValueError, TypeError
        If the keys of a stage contradict each other. The error names the stage.
    """
    if not tables:
        return [Stage(1, 1, training, {})]
    stages = []
    for number, table in enumerate(tables, start=1):
        changes = {name: value for name, value in _given(table).items() if name not in OF_STAGES}
        if number > 1:
            changes["warm_start"] = None
        if changes.get("update_rule", training.update_rule) == training.update_rule:
            changes["optim_config"] = (training.optim_config or {}) | (changes.get("optim_config") or {})
        else:
            changes.setdefault("optim_config", None)
        if changes.get("monitor", training.monitor) != training.monitor:
            changes.setdefault("monitor_mode", None)
        try:
            trained = training.with_changes(**changes)
            _check_self_critical(table, trained)
        except (ValueError, TypeError) as error:
            raise type(error)(f"stage.{number}.{error}") from error
        losses = _given(table.losses)
        stages.append(Stage(number, len(tables), trained, losses, table.self_critical))
    return stages


def _check_self_critical(table: StageTable, training: TrainingTable) -> None:
    """Raise ValueError if keys of a stage contradict its self-critical training."""
    if table.self_critical is None:
        return
    if training.scheduled_sampling is not None:
        raise InputError(
            "scheduled_sampling is given, expected 'none' with self_critical, which samples whole captions"
        )
    check_sampled_losses("losses.", _given(table.losses))


def check_stages(stages: Sequence[Stage], model: Any, data: Any) -> None:
    """Check that all stages fit the model and the data that it trains on, before the first one trains.

    Raises
    ------
    ValueError, TypeError
        If an option is out of range, a pattern matches no parameter, or a stage needs validation and the data
        have none.
    """
    for stage in stages:
        check_options(f"stage.{stage.number}", Solver, stage.options())
        try:
            if not has_validation(data, stage.training.batch_size):
                check_without_validation(stage.training, make_schedule(stage.training.schedule))
            ParameterGroups.of(model.params, stage.training)
            check_sampled(model, stage.training.scheduled_sampling)
        except (ValueError, TypeError) as error:
            raise type(error)(f"stage.{stage.number}: {error}") from error


def check_losses(stages: Sequence[Stage], options: Mapping[str, Any]) -> None:
    """Check that the weights of the stages' losses fit the model that all stages share.

    Parameters
    ----------
    stages : sequence of Stage
    options : mapping of str to any
        The keyword arguments of the model's constructor.

    Raises
    ------
    ValueError
        If a loss is not one of this model, or needs parameters or other options that the model lacks. The
        error begins with the stage.
    """
    for stage in stages:
        table = f"stage.{stage.number}.losses"
        for loss, weight in stage.losses.items():
            if loss not in options:
                known = ", ".join(name for name in LOSSES if name in options)
                raise InputError(f"{table}.{loss} is not a loss of this kind of model, which has {known}")
            if not weight:
                continue
            check_combinations(table, {**options, loss: weight})
            part = LOSSES[loss].part
            if part is not None and not options[loss] and options[part.size] is None:
                raise InputError(
                    f"{table}.{loss} is {weight}, and the model lacks the parameters of that loss: set "
                    f"model.{part.size}, which gives them to the model of all stages"
                )


def _given(table: Table) -> dict[str, Any]:
    """The keys of a table that are set."""
    values = {field.name: getattr(table, field.name) for field in fields(table)}
    return {name: value for name, value in values.items() if value is not UNSET}
