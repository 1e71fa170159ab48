"""The solver: trains a model on a data set.

for each epoch                                order.py, seeded and resumable
    for each batch                            preparation.py; prefetch.py, ahead in a thread
        loss and gradient of the model        step.py, accumulation.py; dropout from a generator of its own
        norm, check, clipping                 gradient_monitor.py, clipping.py, nonfinite.py
        update rule times schedule            optim.py, schedules.py
            of single parameters              parameter_groups.py
        or all three as a CUDA graph          step_graphs.py
        summed over several machines          gradient_sum.py, distributed/
        moving average of the parameters      parameter_average.py
    validation                                validation.py, monitor.py
    history, checkpoints, loss curve          checkpointing.py, run_directory.py, checkpoint.py
after each of these                           callbacks
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing
from pathlib import Path
from typing import Any

from rnnlab.errors import InputError, InputTypeError
from rnnlab.ops import ops_for, tell_compiled
from rnnlab.ops.precision import products_in
from rnnlab.options import (
    Count,
    MatmulName,
    Mode,
    Natural,
    NotNegative,
    Positive,
    Probability,
    UpdateRuleName,
    as_json,
)
from rnnlab.training.callbacks.callback import Callback, check_callbacks, notify
from rnnlab.training.checkpointing import InDirectory, InMemory, OnOtherRanks, Storage
from rnnlab.training.compatibility import check_fit
from rnnlab.training.distributed import check_same, communicator_of, device_of_rank, of_rank_0, on_host
from rnnlab.training.gradient_monitor import Recorded
from rnnlab.training.interrupt import Interrupt, Interrupted
from rnnlab.training.monitor import MONITOR, Monitor
from rnnlab.training.nonfinite import NonFiniteError
from rnnlab.training.options import Options, with_changes
from rnnlab.training.parameter_average import ParameterAverage
from rnnlab.training.prefetch import prefetched
from rnnlab.training.preparation import Preparation, Prepared
from rnnlab.training.progress import Progress, make_progress
from rnnlab.training.protocols import Data, Model, Objective, averages_tokens, check_interface
from rnnlab.training.resuming import config_of, load_saved_run
from rnnlab.training.run_directory import RunDirectory
from rnnlab.training.schedules import ScheduleFunction, ScheduleOption, resumed_schedule
from rnnlab.training.state import TrainingState
from rnnlab.training.step import Update
from rnnlab.training.validation import Evaluate, check_without_validation, default_evaluate, metrics_of


class Solver:
    """Trains a model with stochastic gradient descent or a variant of it.

    Parameters
    ----------
    model : Model
        Has ``params``, ``loss(*batch, rng=, grads=)``, ``nll(*batch)`` and ``config()``. The loss is a mean
        over the examples of a batch, or over their tokens if the model's ``loss_average`` is "token".
    data : Data
        Has ``splits``, ``epoch(split, batch_size, rng)``, ``batch(split, indices)`` and
        ``num_tokens(batch)``. A "train" split is required; a "val" split is validated on after every epoch.
        Where a row of a batch is several examples, it also has ``num_examples(batch)``. It may have
        ``row_lengths(split, indices)``, by which parts of a batch are balanced, and ``carries_state``, which
        is true if the rows of a batch continue those of the batch before.
    objective : Objective, optional
        Computes the batches of the loss from those of the data, with the model itself, such as
        :class:`~rnnlab.training.SelfCritical`. If left out, the model is trained on the batches of the data.
    communicator : mpi4py.MPI.Comm, optional
        The processes that train together, such as ``MPI.COMM_WORLD``, each with a solver of the same
        arguments: see the page Several machines of the guide. Rank 0 alone calls callbacks, prints and
        writes. Without graphs.
    device : str, optional
        Where to train: "cpu", "gpu" or "gpu:N". The model is moved there and stays there. The model's own
        device if left out. With "gpu" the ranks of a machine take its GPUs in turn. Checkpoints are the same
        files on every device.
    update_rule : str
        The update rule: a built-in one, a registered one (:func:`~rnnlab.training.register_update_rule`), or
        "package.module:Object".
    optim_config : mapping, optional
        Hyperparameters of the update rule, such as ``learning_rate``; those left out have its defaults. The
        page Training of the guide lists the keys of update rules and schedules.
    schedule : mapping or callable, optional
        Factor of the learning rate over time: ``{"name": "exponential", "decay": 0.95}``. The name is
        constant, exponential, step, plateau, cosine, warmup, a registered name
        (:func:`~rnnlab.training.register_schedule`) or "package.module:Object"; constant if left out. In
        Python it may be a function of the iteration and the epoch, both from 0:
        ``lambda iteration, epoch: 0.5**epoch``. It is not saved: pass it to :meth:`resume` again.
    learning_rate_factors : mapping, optional
        Factors of the learning rate of single parameters, by patterns of names; the first one that matches
        applies, and without any it is 1: ``{"W_embed": 0.1, "encoder_*": 0.5}``.
    weight_decay : float or mapping, optional
        Decoupled weight decay, w -= learning_rate * decay * w before each update; with adam it is AdamW
        (:mod:`rnnlab.training.parameter_groups`). A number is the decay of all matrices, not of biases. A
        mapping has patterns of names; the first one that matches applies: ``{"W_embed": 0, "*W*": 1e-4}``.
    scheduled_sampling : mapping, optional
        Probability over time that the decoder reads a word drawn from its own distribution instead of the
        true one: ``{"name": "constant", "value": 0.25}``. The name is constant, linear, epoch_fraction or
        inverse_sigmoid (:mod:`rnnlab.training.sampling_schedules`), a registered one
        (:func:`~rnnlab.training.register_sampling_schedule`) or "package.module:Object". Passed to
        ``model.loss`` as ``sampling``.
    trains : sequence of str, optional
        Patterns, as in :mod:`fnmatch`, of the names of the parameters that train; the others are frozen. A
        pattern after "!" excludes: ``["!W_embed"]``. All train if left out.
    num_epochs : int
        Number of passes over the training examples.
    batch_size : int
        Number of examples in a batch.
    accumulate : int
        Compute the gradient of a batch in this many parts, one after another, for a single update. The loss
        and the gradient are the same up to rounding, but only one part's activations are in memory. Each part
        is read by ``data.batch``. It draws dropout, and the samples of scheduled sampling and of an
        objective, from its own generator, so that these differ from those of the whole batch (with
        ``graphs``, dropout uses the generator of the run). More than 1 needs a ``model.loss`` that takes
        ``part_of``. A batch with fewer examples has one part per example.
    graphs : bool, optional
        On a GPU, launch each step as a CUDA graph, captured at the second batch of a shape
        (:mod:`rnnlab.training.step_graphs`), so that the CPU has almost nothing to do. Sequences are padded
        to multiples of 8 steps; losses and gradients are the same up to rounding, dropout masks differ. Not
        with ``scheduled_sampling``, several ranks, or an update rule that is not built in. If left out,
        graphs are used wherever possible for models and cells whose classes are the library's own.
    matmul : str, optional
        Precision of matrix products of float32 in training, validation and callbacks: "float32", "tf32",
        "tf32x3" or "bfloat16" (:mod:`rnnlab.ops.precision`). If left out, the precision of the process, which
        the environment variable RNNLAB_MATMUL sets. It is saved with the run.
    clip_norm : float, optional
        Scale a gradient with a larger Euclidean norm down to this norm.
    clip_value : float, optional
        Clip every element of the gradient to [-clip_value, clip_value], before ``clip_norm``.
    ema_decay : float in [0, 1), optional
        Factor of an exponential moving average of the parameters
        (:mod:`rnnlab.training.parameter_average`). Validation measures the average, ``best.h5`` holds it, and
        the trained model has that of the best epoch. The updates are those of a run without it. Needs
        validation and ``restore_best``.
    evaluate : callable, optional
        From the model to a dict of metrics, called after every epoch, on every rank. The default is
        :func:`~rnnlab.training.validation.validation_loss` if the data have a "val" split.
    callbacks : sequence of Callback, optional
        Called at the start, after every iteration, epoch and checkpoint, and at the end, in this order:
        :mod:`rnnlab.training.callbacks`. An exception in one ends the run with a checkpoint.
    monitor : str
        The metric by which the best epoch is chosen. One that is not the default needs validation.
    monitor_mode : "min" or "max", optional
        Whether the smallest or the largest value of the monitored metric is best. Known for val_loss,
        val_perplexity, val_accuracy, BLEU, BLEU-1 to BLEU-4, ROUGE-L, CIDEr and METEOR, required for others.
    patience : int, optional
        Stop after this many epochs in a row without a better value of the monitored metric.
    restore_best : bool
        Whether to end with the parameters of the best epoch rather than of the last one, if there is
        validation.
    run_dir : path, optional
        Directory for configuration, checkpoints, history and loss curve; nothing is written if left out.
    checkpoint_every : int, optional
        Iterations between checkpoints within an epoch, in addition to the one at its end. Needs ``run_dir``.
    checkpoint_minutes : float, optional
        Minutes between checkpoints within an epoch. Needs ``run_dir``.
    prefetch : int
        Number of batches that a thread prepares ahead with ``data.batch``. The batches and their order do not
        depend on it. With 0, or for data whose ``in_memory`` is true, the main thread prepares each batch.
    config : mapping, optional
        Anything that JSON can hold, saved with the run.
    seed : int
        Seed of the data's order, dropout, samples, and in recipes of the initial parameters.
    verbose : bool
        Whether to print.
    print_every : int
        Iterations between printed losses. On a GPU losses and norms are read at the same interval, but at
        least every 256 iterations. Only then does the progress bar move and are non-finite values reported.
    progress : bool
        Whether to show a progress bar instead of lines, even if ``verbose`` is false.

    Attributes
    ----------
    model : Model
    data : Data
    options : Options
    run_dir : Path or None
    interrupted : bool
        Whether a signal or :meth:`stop` ended the last :meth:`train`.
    stop_requested : bool
        Whether there was a signal or a call of :meth:`stop`, even if training was complete by then.
    signal : signal.Signals or None
        SIGINT, which is Ctrl-C, SIGTERM, SIGUSR1 or SIGHUP, if that ended the last :meth:`train`.
    stop_reason : str or None
        The argument of :meth:`stop`.

    Raises
    ------
    ValueError, TypeError
        If an argument is invalid, or the model's vocabulary is not that of the data. The error names it.
    FileExistsError
        If ``run_dir`` already holds a run.
    """

    def __init__(
        self,
        model: Model,
        data: Data,
        *,
        objective: Objective | None = None,
        communicator: Any = None,
        device: str | None = None,
        update_rule: UpdateRuleName = "adam",
        optim_config: Mapping[str, Any] | None = None,
        schedule: ScheduleOption = None,
        learning_rate_factors: Mapping[str, Any] | None = None,
        weight_decay: NotNegative | Mapping[str, Any] | None = None,
        scheduled_sampling: Mapping[str, Any] | None = None,
        trains: Sequence[str] | None = None,
        num_epochs: Count = 10,
        batch_size: Count = 64,
        accumulate: Count = 1,
        graphs: bool | None = None,
        matmul: MatmulName | None = None,
        clip_norm: Positive | None = None,
        clip_value: Positive | None = None,
        ema_decay: Probability | None = None,
        evaluate: Evaluate | None = None,
        callbacks: Sequence[Callback] = (),
        monitor: str = MONITOR,
        monitor_mode: Mode | None = None,
        patience: Count | None = None,
        restore_best: bool = True,
        run_dir: str | os.PathLike[str] | None = None,
        checkpoint_every: Count | None = None,
        checkpoint_minutes: Positive | None = None,
        prefetch: Natural = 2,
        config: Mapping[str, Any] | None = None,
        seed: Natural = 0,
        verbose: bool = True,
        print_every: Count = 10,
        progress: bool = False,
    ) -> None:
        check_interface("model", model, ("params", "loss", "config"))
        check_interface("data", data, ("splits", "epoch", "batch", "num_tokens"))
        if objective is not None:
            check_interface("objective", objective, ("check", "config", "dropout", "__call__"))
        if evaluate is not None and not callable(evaluate):
            raise InputTypeError(f"Solver: evaluate is {evaluate!r}, expected a function of the model")
        self.options, rules = Options.of(Solver, locals())
        run = run_dir if isinstance(run_dir, RunDirectory | None) else RunDirectory(run_dir)
        for name in ("checkpoint_every", "checkpoint_minutes"):
            if run_dir is None and (every := getattr(self.options, name)) is not None:
                raise InputError(f"Solver: {name} is {every!r}, which needs run_dir")
        ranks = self._communicator = communicator_of(communicator)
        if device is not None:
            check_interface("model", model, ("to",))
            model.to(device_of_rank(ranks, device))  # type: ignore[attr-defined]
        check_fit(model, data, objective)
        self.model, self.data = model, data
        self.callbacks = check_callbacks(callbacks) if ranks.rank == 0 else []
        self.interrupted = self.stop_requested = False
        self.stop_reason: str | None = None
        self.signal: signal.Signals | None = None
        self.run_dir: Path | None = None
        average = None if ema_decay is None else ParameterAverage(ema_decay, model.params.flat)
        saved = None if ranks.rank else self.callbacks
        self._state = TrainingState(self.options, rules, data, average, saved)
        self._update = Update(model, self.options, objective, ranks, carries_state=bool(self._state.carried))
        self._prepare = Preparation(model, data, self.options, ranks, self._update.graphs, objective)
        self._averages_tokens = averages_tokens(model) and objective is None
        self._evaluate = evaluate or default_evaluate(model, data, batch_size, monitor, ranks)
        if self._evaluate is None:
            check_without_validation(self.options, self._state.schedule)
        config = as_json(config, "Solver: config")
        self._storage: Storage = InMemory(model, self._state, self.options)
        if run is not None:
            self._keep_in(
                run, config=config, own_evaluate=evaluate is not None, objective=config_of(objective)
            )

    @classmethod
    def resume(
        cls,
        run_dir: str | os.PathLike[str],
        model: Model,
        data: Data,
        *,
        objective: Objective | None = None,
        communicator: Any = None,
        device: str | None = None,
        evaluate: Evaluate | None = None,
        callbacks: Sequence[Callback] = (),
        config: Mapping[str, Any] | None = None,
        schedule: ScheduleFunction | None = None,
        learning_rate: Positive | None = None,
        **changes: Any,
    ) -> Solver:
        """A solver that resumes the run in ``run_dir``, bit for bit as if it had never stopped.

        Parameters
        ----------
        run_dir : path
            Of a run that ended, was interrupted, or was killed.
        model : Model
            Of the same configuration; its parameters are overwritten.
        data : Data
            The same data.
        objective : Objective, optional
            As in the constructor, with the same options.
        communicator : mpi4py.MPI.Comm, optional
            As in the constructor; the number of ranks need not be that of the run. Every rank reads the
            checkpoint.
        device : str, optional
            As in the constructor; may differ from the run's device.
        evaluate : callable, optional
            As in the constructor; must be given if it was given there.
        callbacks : sequence of Callback, optional
            As in the constructor. They are not saved with a run.
        config : mapping, optional
            Saved with the run from now on instead of its own.
        schedule : callable, optional
            As in the constructor; must be given if it was a function there.
        learning_rate : float, optional
            Instead of the one in ``optim_config``; the schedule continues. The next row of the history has
            the previous one as ``former_learning_rate``.
        **changes
            New values of num_epochs, patience, restore_best, checkpoint_every, checkpoint_minutes,
            accumulate, graphs, matmul, prefetch, verbose, print_every, progress. After a change of matmul,
            the next row of the history has the previous one as ``former_matmul``.

        Raises
        ------
        FileNotFoundError
            If there is no run.
        CheckpointError
            If the checkpoint is damaged, or is not of this model.
        ValueError
            If a change is of another option, ``num_epochs`` is less than the epochs trained, or ``evaluate``,
            the schedule's function or the objective is not that of the run.

        Warns
        -----
        UserWarning
            If the run has the state of a callback that is not given, or a fingerprint of its data, and
            ``data`` has none.
        """
        run = RunDirectory(run_dir, resume=True)
        checkpoint = load_saved_run(run.last, model, data, evaluate=evaluate, objective=objective)
        options = with_changes(checkpoint.solver["options"], changes, learning_rate)
        options["schedule"] = resumed_schedule(options.get("schedule"), schedule)
        solver = cls(
            model,
            data,
            objective=objective,
            communicator=communicator,
            device=device,
            evaluate=evaluate,
            callbacks=callbacks,
            run_dir=run,
            config=checkpoint.config if config is None else config,
            **options,
        )
        solver._state.load(run.last, checkpoint, model.params.flat)
        if len(solver.history) > solver.options.num_epochs:
            raise InputError(
                f"resume: num_epochs is {solver.options.num_epochs}, "
                f"but {run.path} has {len(solver.history)} epochs already; a larger number continues training"
            )
        solver._state.note_changes(checkpoint.solver["options"], solver.options)
        model.params.flat[...] = ops_for(model.params.flat).asarray(checkpoint.parameters.flat)
        for name, at_first in checkpoint.solver.get("loss_weights", {}).items():
            if checkpoint.model["config"][name] != at_first:  # a callback has changed it
                setattr(model, name, checkpoint.model["config"][name])
        return solver

    def __repr__(self) -> str:
        return f"Solver({type(self.model).__name__}, {type(self.data).__name__}; {self._state.progress})"

    @property
    def iteration(self) -> int:
        """The number of iterations done."""
        return self._state.iteration

    @property
    def epoch(self) -> int:
        """The number of epochs done."""
        return self._state.order.epoch

    @property
    def learning_rate(self) -> float:
        """The learning rate of the last iteration of this epoch, or of the first one before it has run."""
        return self._state.learning_rate

    @property
    def loss_history(self) -> list[float]:
        """The loss of every iteration. On a GPU the latest ones are added when they are read."""
        return self._state.losses

    @property
    def history(self) -> list[dict[str, Any]]:
        """A row for every epoch.

        Columns: epoch, iteration, train_loss, train_loss_per_token, gradient_norm, seconds,
        tokens_per_second, the objective's measurements, the model's ``last_terms``, learning_rate, sampling
        if it is scheduled, former_learning_rate and former_matmul if :meth:`resume` changed them, and the
        metrics. The loss, the gradient's norm (before clipping), the objective's measurements and the terms
        are means over the iterations; learning_rate and sampling are those of the last iteration. The loss
        per token has the unit of val_loss, but it is measured while the parameters change, with dropout, and
        includes all terms.
        """
        return self._state.history

    @property
    def monitor(self) -> Monitor:
        """The monitored metric: its ``best`` value so far and the ``best_epoch``."""
        return self._state.monitor

    def train(self) -> None:
        """Train until the last epoch is done, ``patience`` is exhausted, or a signal or :meth:`stop` ends it.

        The first Ctrl-C, SIGTERM, SIGUSR1 or SIGHUP finishes the current iteration, writes a checkpoint and
        returns; calling :meth:`train` again resumes from there. A second one raises KeyboardInterrupt.

        Raises
        ------
        NonFiniteError
            If a loss, a gradient, a parameter or the monitored metric is not finite. The last checkpoint
            remains.
        InUseError
            If another process trains in ``run_dir``, or has trained there since :meth:`resume` read it.
        WriteError
            If a file in ``run_dir`` cannot be written. The last checkpoint remains.
        DriftError
            If the parameters of several ranks differ.
        BrokenPipeError
            If the reader of the output has closed it: after the iteration, with a checkpoint.
        """
        self.stop_reason = self.signal = None
        self.interrupted = self.stop_requested = False
        progress = Progress() if self._communicator.rank else make_progress(self.options, self.stop)
        try:
            with (
                products_in(self.options.matmul),
                Interrupt() as interrupt,
                self._storage.locked(),
                ExitStack() as ends,
            ):
                self._storage.begin()
                self._saved_at = time.monotonic()
                self._check_ranks()
                for callback in self.callbacks:
                    ends.callback(callback.on_end, self)
                    callback.on_start(self)
                self._state.begin(self.model.params.flat)
                while not (self.finished or self._is_to_stop(interrupt)):
                    if self._train_epoch(progress, interrupt):
                        self._end_epoch(progress, interrupt)
                self.interrupted = self._is_to_stop(interrupt) and not self.finished
                if not self.interrupted and self.epoch < self.options.num_epochs:
                    progress.message(self.why_finished)
                self._end(progress)
                self.stop_requested = self._is_to_stop(interrupt)  # and rank 0 has written everything
        finally:
            progress.close()
        if progress.broken_pipe is not None and self.signal is None:
            raise progress.broken_pipe

    def stop(self, reason: str) -> None:
        """Stop :meth:`train` after the current iteration, as Ctrl-C does: for callbacks.

        The run is interrupted, not finished: a checkpoint is written, the parameters remain those of the last
        iteration, and the run can resume. Use ``patience`` to finish a run early.

        Parameters
        ----------
        reason : str
            Shown to the user.
        """
        self.stop_reason = reason

    def _is_to_stop(self, interrupt: Interrupt) -> bool:
        """Whether there was a signal or :meth:`stop` on any rank. All ranks call this together."""
        asked = self._communicator.gather((interrupt.received, self.stop_reason))
        self.signal = next((received for received, _ in asked if received is not None), None)
        self.stop_reason = next((reason for _, reason in asked if reason is not None), None)
        return self.signal is not None or self.stop_reason is not None

    @property
    def finished(self) -> bool:
        """Whether all epochs are done, or ``patience`` is exhausted."""
        return self._state.order.epoch >= self.options.num_epochs or self.monitor.exhausted

    @property
    def why_finished(self) -> str:
        """Why there is nothing to train, if the run is :attr:`finished`."""
        done, asked = self.epoch, self.options.num_epochs
        if done >= asked:
            return f"{done} of {asked} epochs are done; --epochs N (num_epochs) continues training"
        return (
            f"training has stopped early, after {done} of {asked} epochs: patience is {self.options.patience}"
        )

    def _train_epoch(self, progress: Progress, interrupt: Interrupt) -> bool:
        """Train on the remaining batches of this epoch; false if interrupted."""
        order = self._state.order
        batches = order.batches()
        before = self._state.iteration - order.batch
        total = before + len(batches) * (self.options.num_epochs - order.epoch)
        if self._state.multiplier == 0:
            progress.message(f"note: the learning rate is 0 at the start of epoch {order.epoch + 1}")
        ahead = 0 if getattr(self.data, "in_memory", False) else self.options.prefetch
        with closing(prefetched(self._prepare, batches[order.batch :], ahead)) as prepared:
            started = time.perf_counter()
            for batch in prepared:
                self._iterate(batch, started, interrupt)
                tell_compiled()
                is_to_save = self._checkpoint_is_due()
                if is_to_save or self._results_are_due():
                    self._show_results(progress, total)
                self._notify("on_step", self._update.loss, self._update.grads)
                if self._is_to_stop(interrupt):
                    self._show_results(progress, total)
                    return False
                if is_to_save:
                    self._save()
                started = time.perf_counter()
        return True

    def _checkpoint_is_due(self) -> bool:
        """Whether to write a checkpoint now, within the epoch."""
        every, minutes = self.options.checkpoint_every, self.options.checkpoint_minutes
        if every is not None and self._state.iteration % every == 0:
            return True
        return minutes is not None and time.monotonic() - self._saved_at >= 60 * minutes

    def _results_are_due(self) -> bool:
        """Whether the losses of the iterations so far are to be shown now."""
        return self._state.order.at_end or (self._state.iteration - 1) % self._update.read_every == 0

    def _iterate(self, batch: Prepared, started: float, interrupt: Interrupt) -> None:
        """Make one update from a batch; ``started`` is when the wait for the batch began.

        A signal comes before the update or after it is counted.
        """
        try:
            batch = self._update(batch, self._state, interrupt.hold)
            self._state.count(
                averaged_over=batch.tokens if self._averages_tokens else batch.examples,
                tokens=batch.tokens,
                seconds=time.perf_counter() - started,
                measured=batch.means,
            )
        finally:
            interrupt.release()

    def _show_results(self, progress: Progress, total: int) -> None:
        """Read the results of the iterations since the last call, and show them."""
        results = self._read_results()
        for done, recorded in enumerate(results, len(self.loss_history) - len(results) + 1):
            progress.iteration(done, total, recorded.loss, self._state.totals)

    def _read_results(self) -> list[Recorded]:
        """Read the losses and norms of the iterations since the last call."""
        state, started = self._state, time.perf_counter()
        if not state.unread:
            return []
        try:
            results = self._update.read(len(state.losses) + 1)
        except NonFiniteError as error:
            state.read(error.before)
            state.drop_unread()
            raise
        state.read(results)
        state.totals.seconds += time.perf_counter() - started
        return results

    def _end_epoch(self, progress: Progress, interrupt: Interrupt) -> None:
        """Validate, add the epoch to the history, and save; a signal ends the validation and adds nothing.

        If the metrics fail, the epoch is saved first, and a resumed run computes them again.
        """
        self._check_ranks()
        try:
            with self._averaged():
                metrics = of_rank_0(self._communicator, lambda: self._validate(interrupt))
            if metrics is not None:
                self._state.check_metrics(metrics)
        except Interrupted:
            return
        except BaseException as error:
            self._save_after(error)
            raise
        totals = self._state.totals
        improved = self._state.end_epoch(metrics)
        progress.epoch(self.epoch, self.options.num_epochs, totals, metrics or {})
        self._notify("on_epoch", improved=improved)
        self._check_ranks()
        if improved and (path := self._save_best()):
            self._notify("on_checkpoint", path)
        self._save()
        self._storage.write_reports()

    def _save_best(self) -> Path | None:
        """Save the parameters of the best epoch so far; return the file, if there is one."""
        if not self._storage.is_resumable():  # best.h5 alone would be a run that cannot be resumed
            self._storage.save()
        with self._averaged():
            return self._storage.save_best()

    def _averaged(self) -> AbstractContextManager[None]:
        """A context in which the model has the averaged parameters, if there is an average."""
        return self._state.averaged(self.model.params.flat)

    def _check_ranks(self) -> None:
        """Check that all ranks have the same parameters."""
        check_same(self._communicator, self.model.params, f"epoch {self.epoch}, iteration {self.iteration}")

    def _validate(self, interrupt: Interrupt) -> dict[str, float] | None:
        """The metrics of the current model."""
        if self._evaluate is None:
            return None
        with interrupt.at_once():
            return metrics_of(self._evaluate, self.model)

    def _end(self, progress: Progress) -> None:
        """Save after an interruption; after the last epoch restore the best parameters."""
        if self.interrupted:
            stopped = "Interrupted" if self.stop_reason is None else "Stopped"
            reason = "" if self.stop_reason is None else f": {self.stop_reason}"
            progress.message(f"{stopped} after iteration {self._state.iteration}{reason}")
            self._save()
        self._storage.write_reports(at_the_end=True)
        if not self.interrupted and self.options.restore_best and self.monitor.best_epoch is not None:
            self._storage.restore_best()
            with on_host(self.model.params.flat) as flat:
                self._communicator.share(flat)

    def _save(self) -> None:
        """Write the checkpoint to resume from."""
        self._saved_at = time.monotonic()
        if path := self._storage.save():
            self._notify("on_checkpoint", path)

    def _notify(self, event: str, *arguments: Any, improved: bool = False) -> None:
        """Call a method of all callbacks. An exception in one is raised after a checkpoint."""
        error = notify(self.callbacks, event, self, *arguments)
        if error is not None:
            self._save_after(error, improved=improved)
            raise error

    def _save_after(self, error: BaseException, *, improved: bool = False) -> None:
        """Write a checkpoint before an error is raised, and the best one if the epoch has ``improved``.

        If that fails, too, the error gets a note.
        """
        try:
            self._read_results()
            self._storage.save()
            if improved:
                self._save_best()
        except Exception as other:
            error.add_note(f"No checkpoint was written: {str(other) or repr(other)}")

    def _keep_in(self, run: RunDirectory, **saved: Any) -> None:
        """Write history, loss curve and checkpoints, with ``saved``, to a directory from now on."""
        self.run_dir = run.path
        if self._communicator.rank:
            self._storage = OnOtherRanks(self.model, self._state, self.options)
            return
        graphs = self._update.graphs
        self._storage = InDirectory(
            run, self.model, self.data, self.options, self._state, graphs=graphs, **saved
        )
