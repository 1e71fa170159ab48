"""The state of a training run: everything that an iteration changes, except the parameters."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from typing import Any

import numpy as np

from rnnlab.errors import InputError
from rnnlab.options import NotNegative, accepts, expectation
from rnnlab.training.callbacks.callback import Callback, load_states, saved_states
from rnnlab.training.carried_state import CarriedState, carries_state
from rnnlab.training.checkpoint import Checkpoint, CheckpointError
from rnnlab.training.epoch_totals import FORMER, EpochTotals, check_column_names
from rnnlab.training.gradient_monitor import Recorded
from rnnlab.training.monitor import Monitor
from rnnlab.training.options import Options, Rules
from rnnlab.training.order import DataOrder
from rnnlab.training.parameter_average import ParameterAverage
from rnnlab.training.protocols import Data
from rnnlab.training.schedules import Share
from rnnlab.types import Array


class TrainingState:
    """Update rule, schedule, monitor, data order, generator of dropout, and history of one run.

    Parameters
    ----------
    options : Options
    rules : Rules
        The update rule and the schedules, which this state owns.
    data : Data
    average : ParameterAverage, optional
        The moving average of the parameters, if there is one.
    callbacks : sequence of Callback, optional
        Their states are saved. None on ranks that have no callbacks.

    Attributes
    ----------
    losses : list of float
        One per iteration.
    history : list of dict
        One per epoch.
    totals : EpochTotals
        The totals of the current epoch.
    former : dict of str to float or str
        The values before the run resumed with other ones in the current epoch: ``former_learning_rate``, the
        base learning rate, and ``former_matmul``, the precision of products.
    carried : CarriedState or None
        What the next batch begins at; None if the batches of the data do not continue each other.
    rng : numpy Generator
        Draws dropout and zoneout, and samples of scheduled sampling; the data order has its own generator.
    """

    def __init__(
        self,
        options: Options,
        rules: Rules,
        data: Data,
        average: ParameterAverage | None = None,
        callbacks: Sequence[Callback] | None = (),
    ) -> None:
        self._callbacks = callbacks
        order_seed, dropout_seed = np.random.SeedSequence(options.seed).spawn(2)
        self.rule, self.schedule, self._sampling_schedule = rules
        self.average = average
        self.monitor = Monitor(options.monitor, options.patience, options.monitor_mode)
        self._num_epochs = options.num_epochs
        self.order = DataOrder(data, options.batch_size, np.random.default_rng(order_seed))
        self.carried = CarriedState() if carries_state(data) else None
        self.rng = np.random.default_rng(dropout_seed)
        self.totals = EpochTotals()
        self.former: dict[str, float | str] = {}
        self.losses: list[float] = []
        self.history: list[dict[str, Any]] = []
        self._unread: list[dict[str, Any]] = []  # one for each iteration whose loss has not been read yet

    def begin(self, w: Array) -> None:
        """Prepare for the iterations, with the parameters ``w`` (P,).

        Raises
        ------
        TypeError
            If JSON cannot hold the state of a callback.
        """
        saved_states(self._callbacks or ())
        if self.average is not None and not self.iteration:
            self.average.start(w)

    def averaged(self, w: Array) -> AbstractContextManager[None]:
        """A context in which the parameters ``w`` (P,) are their moving average, if there is one."""
        return nullcontext() if self.average is None else self.average.in_place_of(w)

    @property
    def iteration(self) -> int:
        """The number of iterations done."""
        return len(self.losses) + len(self._unread)

    @property
    def progress(self) -> str:
        """What is done, and the best metric so far, in words."""
        found = f"{len(self.history)} of {self._num_epochs} epochs, {self.iteration:,} iterations"
        best = self.monitor.best
        return found if best is None else f"{found}; best {self.monitor.name} {best:.4g}"

    @property
    def unread(self) -> int:
        """The number of these whose losses have not been read yet."""
        return len(self._unread)

    @property
    def multiplier(self) -> float:
        """The schedule's factor of the learning rate in the next iteration."""
        return self._multiplier_in(self.iteration)

    @property
    def learning_rate(self) -> float:
        """The learning rate of the last iteration of this epoch, or of the first one before it has run."""
        rate = self._multiplier_in(self.iteration - 1 if self.order.batch else self.iteration)
        return self.rule.learning_rate * rate

    @property
    def sampling(self) -> float | None:
        """The probability of scheduled sampling in the next iteration; None if there is none."""
        return self._sampling_in(self.iteration)

    def _sampling_in(self, iteration: int) -> float | None:
        schedule, epoch = self._sampling_schedule, self.order.epoch
        if schedule is None:
            return None
        return _checked(schedule, schedule.probability(iteration, epoch), Share, iteration, epoch)

    def count(self, **sums: Any) -> None:
        """Count an iteration; ``sums`` are arguments of :meth:`EpochTotals.add`."""
        self._unread.append(sums)
        self.order.batch += 1

    def read(self, results: Sequence[Recorded]) -> None:
        """Add the records of the first iterations whose losses have not been read yet."""
        for loss, norm, terms in results:
            counted = self._unread.pop(0)
            counted["measured"] = {**(counted.get("measured") or {}), **terms}
            self.losses.append(loss)
            self.totals.add(loss=loss, gradient_norm=norm, **counted)

    def snapshot(self) -> Callable[[], None]:
        """A function that restores the generator and the count of updates, for an iteration that fails."""
        drawn, steps = self.rng.bit_generator.state, self.rule.steps

        def restore() -> None:
            self.rng.bit_generator.state, self.rule.steps = drawn, steps

        return restore

    def drop_unread(self) -> None:
        """Drop all iterations without a loss: they have updated nothing."""
        self.order.batch -= len(self._unread)
        self.rule.steps -= len(self._unread)
        self._unread = []

    def check_metrics(self, metrics: Mapping[str, float]) -> None:
        """Check the metrics of a validation before they become a part of the history.

        Raises
        ------
        ValueError
            If one has the name of another column of the history, or the monitored one is missing.
        NonFiniteError
            If the monitored one is not finite.
        """
        self.monitor.value_in(metrics, self.order.epoch + 1)
        check_column_names("evaluate returned a metric", metrics, self.totals.row())

    def end_epoch(self, metrics: Mapping[str, float] | None) -> bool:
        """Add an epoch to the history and begin the next; true if it is the best so far.

        Parameters
        ----------
        metrics : mapping of str to float, or None
            The metrics of the validation; None if there is none.

        Raises
        ------
        ValueError, NonFiniteError
            If the monitored metric is missing or not finite. Nothing is changed then.
        """
        epoch = self.order.epoch + 1
        improved = metrics is not None and self.monitor.update(metrics, epoch)
        sampling = self._sampling_in(self.iteration - 1)
        self.history.append(
            {
                "epoch": epoch,
                "iteration": self.iteration,
                **self.totals.row(),
                "learning_rate": self.learning_rate,
                **({} if sampling is None else {"sampling": sampling}),
                **self.former,
                **(metrics or {}),
            }
        )
        self.former = {}
        self.schedule.end_epoch(improved)
        self.order.end_epoch()
        if self.carried is not None:
            self.carried.begin_epoch()
        self.totals = EpochTotals()
        return improved

    def _multiplier_in(self, iteration: int) -> float:
        """The schedule's factor of the learning rate in an iteration of this epoch.

        Raises
        ------
        ValueError
            If it is not a finite number of at least 0.
        """
        factor, epoch = self.schedule.multiplier(iteration, self.order.epoch), self.order.epoch
        return _checked(self.schedule, factor, NotNegative, iteration, epoch)

    def note_changes(self, saved: Mapping[str, Any], options: Options) -> None:
        """Record the options that differ from those the run was ``saved`` with."""
        changes = {
            # a custom rule may lack the option learning_rate; runs of earlier versions have no matmul
            "former_learning_rate": (
                saved["optim_config"].get("learning_rate", self.rule.learning_rate),
                self.rule.learning_rate,
            ),
            "former_matmul": (saved.get("matmul", options.matmul), options.matmul),
        }
        for column, (former, now) in changes.items():
            if former != now:
                self.former.setdefault(column, former)

    def save(self) -> dict[str, Any]:
        """The fields of a :class:`Checkpoint` that hold this state."""
        return {
            "optimiser": self.rule.state(),
            "average": None if self.average is None else self.average.values,
            "state": (self.carried and self.carried.arrays) or (),
            "losses": np.asarray(self.losses),
            "history": self.history,
            "solver": {
                "schedule": self.schedule.state(),
                "monitor": self.monitor.state(),
                "order": self.order.state(),
                "rng": self.rng.bit_generator.state,
                "totals": asdict(self.totals),
                "callbacks": saved_states(self._callbacks or ()),
                **self.former,
            },
        }

    def load(self, path: str | os.PathLike[str], checkpoint: Checkpoint, w: Array) -> None:
        """Resume from a checkpoint, read from ``path``, over the parameters ``w`` (P,).

        Raises
        ------
        CheckpointError
            If a part of it is missing or does not fit this run.
        """
        saved = checkpoint.solver
        for name in ("schedule", "monitor", "order", "rng", "totals"):
            if name not in saved:
                raise CheckpointError(path, f"solver: {name}", "nothing", "the state of a training run")
        try:
            self.rule.load_state(checkpoint.optimiser, w)
        except ValueError as error:
            raise CheckpointError(path, "optimiser", error, "the update rule's state") from None
        if self.average is not None:
            self.average.load(path, checkpoint)
        try:
            self.schedule.load_state(saved["schedule"])
            self.monitor.load_state(saved["monitor"])
            self.order.load_state(saved["order"])
            self.rng.bit_generator.state = saved["rng"]
            self.totals = EpochTotals(**saved["totals"])
            self.former = {column: saved[column] for column in FORMER if saved.get(column) is not None}
            if self._callbacks is not None:
                load_states(self._callbacks, saved.get("callbacks", ()))
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(path, "solver", repr(error), "the state of a training run") from None
        if self.carried is not None:
            self.carried.load(path, checkpoint, within_epoch=self.order.batch > 0)
        done = (checkpoint.history[-1].get("iteration", 0) if checkpoint.history else 0) + self.order.batch
        if len(checkpoint.losses) != done or len(checkpoint.history) != self.order.epoch:
            found = f"{len(checkpoint.losses)} losses and {len(checkpoint.history)} epochs in the history"
            raise CheckpointError(path, "losses", found, f"{done} losses and {self.order.epoch} epochs")
        self.losses = checkpoint.losses.tolist()
        self.history = checkpoint.history


def _checked(schedule: Any, value: Any, annotation: Any, iteration: int, epoch: int) -> float:
    """What a schedule has returned, after a check."""
    if not accepts(annotation, value):
        raise InputError(
            f"{schedule} returned {value!r} in iteration {iteration} of epoch {epoch}, expected "
            f"{expectation(annotation)}"
        )
    return float(value)
