"""The table [training] of a recipe."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rnnlab.recipes.schema import Count, EnvPath, Natural, Positive
from rnnlab.training.optim import make_update_rule
from rnnlab.training.sampling_schedules import make_sampling_schedule
from rnnlab.training.schedules import make_schedule


@dataclass(frozen=True)
class TrainingConfig:
    """Keyword arguments of :class:`rnnlab.training.Solver`, and where the parameters start."""

    # A run or a checkpoint: what its model has of the parameters is copied before training.
    warm_start: EnvPath | None = None
    seed: Natural = 0  # of the initial parameters, the order of the data, and dropout
    num_epochs: Count = 10
    batch_size: Count = 64
    accumulate: Count = 1  # parts in which a batch's gradient is computed, one after another: less memory
    update_rule: str = "adam"  # sgd, momentum, rmsprop, adagrad, adadelta, adam or adamw
    optim_config: dict[str, Any] = field(default_factory=dict)  # learning_rate and what else the rule has
    schedule: dict[str, Any] | None = None  # name = constant, exponential, step or plateau, and its options
    # How often a word that is read is the model's own: constant, linear, epoch_fraction or inverse_sigmoid.
    scheduled_sampling: dict[str, Any] | None = None
    clip_norm: Positive | None = None  # scale a larger gradient down to this norm
    clip_value: Positive | None = None  # bring every number of the gradient into [-clip_value, clip_value]
    # Tells which epoch is best: val_loss; val_perplexity or a score of each epoch; val_accuracy of classes.
    monitor: str = "val_loss"
    patience: Count | None = None  # stop after so many epochs without a better one
    restore_best: bool = True  # end with the best epoch's parameters, not with the last one's
    checkpoint_every: Count | None = (
        None  # iterations between checkpoints; there is always one after an epoch
    )
    prefetch: Natural = 2  # batches that a thread prepares ahead, unless the data are in memory

    def __post_init__(self) -> None:
        make_update_rule(self.update_rule, self.optim_config)
        make_schedule(self.schedule)
        if self.scheduled_sampling is not None:
            make_sampling_schedule(self.scheduled_sampling)
