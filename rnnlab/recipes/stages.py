"""The tables [[stage]] of a recipe: training in stages, each from the best parameters of the one before.

A stage is what a recipe of its own with ``warm_start`` would be: a solver with its own epochs, update rule
and stopping rule. Besides, it says which parameters train, and what the model's losses weigh.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from rnnlab.recipes.schema import Count, Fraction, Natural, NotNegative, Positive
from rnnlab.recipes.training import TrainingConfig
from rnnlab.training.frozen_parameters import Trained
from rnnlab.training.protocols import Model
from rnnlab.training.step import check_sampled


@dataclass(frozen=True)
class LossWeights:
    """Options of the model that weigh its losses; what is left out is as in [model]."""

    reconstruction: NotNegative | None = None
    encoder_reconstruction: NotNegative | None = None
    label_smoothing: Fraction | None = None
    doubly_stochastic: NotNegative | None = None


@dataclass(frozen=True)
class StageConfig:
    """What is particular to a stage; a key of [training] that is left out is as there.

    So is a key of ``optim_config``, unless the stage has another ``update_rule``.
    """

    trains: list[str] = field(default_factory=lambda: ["*"])  # names of parameters, * for any part of one
    losses: LossWeights = field(default_factory=LossWeights)
    seed: Natural | None = None  # of the order of the data, and dropout
    num_epochs: Count | None = None
    update_rule: str | None = None
    optim_config: dict[str, Any] | None = None
    schedule: dict[str, Any] | None = None
    scheduled_sampling: dict[str, Any] | None = None
    clip_norm: Positive | None = None
    clip_value: Positive | None = None
    monitor: str | None = None
    patience: Count | None = None


@dataclass(frozen=True)
class Stage:
    """One of the stages of a recipe, with all keys of its training.

    Attributes
    ----------
    number, count : int
        It is the ``number``-th of ``count``.
    training : TrainingConfig
    trains : list of str
        Patterns of the names of the parameters that train.
    losses : dict of str to float
        What is set on the model.
    """

    number: int
    count: int
    training: TrainingConfig
    trains: list[str]
    losses: dict[str, float]

    @property
    def is_last(self) -> bool:
        """Whether it is the one that makes the run's model."""
        return self.number == self.count

    def directory(self, run: Path) -> Path:
        """Where it trains: in the directory of the run if it is the last, else in one of its own therein."""
        return run if self.is_last else run / f"stage{self.number}"

    def options(self) -> dict[str, Any]:
        """The keyword arguments of the Solver."""
        options = asdict(self.training)
        del options["warm_start"]
        return options | {"trains": self.trains}

    def prepare(self, model: Any) -> None:
        """Set the weights of the model's losses."""
        for name, weight in self.losses.items():
            setattr(model, name, weight)

    def describe(self, model: Model) -> str:
        """What trains, and by which losses."""
        trained = Trained(model.params, self.trains)
        said = f"all {len(trained.names)} parameters train"
        if trained.frozen:
            said = f"{len(trained.names)} of {len(model.params)} parameters train: {', '.join(trained.names)}"
        weights = "".join(f"; {name} = {weight:g}" for name, weight in self.losses.items())
        return f"Stage {self.number} of {self.count}: {said}{weights}."


def stages_of(training: TrainingConfig, tables: Sequence[StageConfig]) -> list[Stage]:
    """The stages that the tables describe; one of the whole [training] if there is none.

    Raises
    ------
    ValueError, TypeError
        If the keys of a stage do not fit together; names it.
    """
    if not tables:
        return [Stage(1, 1, training, ["*"], {})]
    stages = []
    for number, table in enumerate(tables, start=1):
        changes = {name: value for name, value in _given(table).items() if name not in ("trains", "losses")}
        if number > 1:
            changes["warm_start"] = None
        if changes.get("update_rule", training.update_rule) == training.update_rule:
            changes["optim_config"] = {**training.optim_config, **changes.get("optim_config", {})}
        try:
            trained = replace(training, **changes)
        except (ValueError, TypeError) as error:
            raise type(error)(f"stage.{number}.{error}") from error
        stages.append(Stage(number, len(tables), trained, table.trains, _given(table.losses)))
    return stages


def check_stages(stages: Sequence[Stage], model: Any) -> None:
    """Check that all stages fit the model, before the first one is trained.

    Raises
    ------
    ValueError, TypeError
        If a pattern matches no parameter, a loss is not one of this model, or it has no parameters for it.
    """
    for stage in stages:
        try:
            Trained(model.params, stage.trains)
            check_sampled(model, stage.training.scheduled_sampling)
            _check_losses(stage.losses, model)
        except (ValueError, TypeError) as error:
            raise type(error)(f"stage.{stage.number}: {error}") from error


def _check_losses(losses: dict[str, float], model: Any) -> None:
    """Hold the weights against what the model's own constructor says of them."""
    name, config = type(model).__name__, model.config()
    for loss in losses:
        if loss not in config or not hasattr(model, loss):
            known = [field.name for field in fields(LossWeights) if field.name in config]
            raise ValueError(
                f"losses has {loss}, which is no loss of {name}; it has {', '.join(known) or 'none'}"
            )
    if losses and type(model).from_config(config | losses).params.shapes != model.params.shapes:
        raise ValueError(
            f"losses has {', '.join(losses)}, and the model lacks parameters for that; "
            "give it them by its options in [model]"
        )


def _given(table: Any) -> dict[str, Any]:
    return {name: value for name, value in asdict(table).items() if value is not None}
