"""The solver: trains a model on a data set.

for each epoch                                    order.py, seeded and resumable
    for each batch                                prefetch.py, prepared ahead in a thread
        loss and gradient of the model            update.py, noise from a generator of its own
        norm, check, clipping                     freezing.py, gradient_checks.py
        update rule times schedule                optim.py, schedules.py
        or all three as a CUDA graph              step_graphs.py
    validation                                    validation.py
    history, checkpoints, loss curve              keeping.py, run_directory.py, checkpoint.py
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

from rnnlab.ops import ops_for
from rnnlab.training.checkpoint import CheckpointError, load_checkpoint
from rnnlab.training.checkpointing import InDirectory, InMemory, Storage
from rnnlab.training.compatibility import check_data, check_model
from rnnlab.training.interrupt import Interrupt
from rnnlab.training.nonfinite import NonFiniteError
from rnnlab.training.options import Options, as_json, check_interface, with_changes
from rnnlab.training.prefetch import prefetched
from rnnlab.training.progress import Progress, make_progress
from rnnlab.training.protocols import Array, Data, Model
from rnnlab.training.run_directory import RunDirectory
from rnnlab.training.state import TrainingState
from rnnlab.training.step import Prepared, Update
from rnnlab.training.validation import Evaluate, Monitor, default_evaluate


class Solver:
    """Trains a model by a stochastic gradient method, epoch after epoch.

    Parameters
    ----------
    model : Model
        Has ``params``, ``loss(*batch, rng=, grads=)``, ``nll(*batch)`` and ``config()``. The loss is a mean
        over the examples of a batch, or, if its ``loss_average`` is "token", over their tokens.
    data : Data
        Has ``splits``, ``epoch(split, batch_size, rng)``, ``batch(split, indices)`` and
        ``num_tokens(batch)``. It needs a "train" split; a "val" split is validated on after every epoch.
    device : str, optional
        Where to train: "cpu", "gpu" or "gpu:N", which the model is moved to and stays on. Where the model is,
        if left out. Checkpoints are the same files everywhere.
    update_rule : str
        One of sgd, momentum, rmsprop, adagrad, adadelta, adam, adamw.
    optim_config : mapping, optional
        The rule's hyperparameters, among them ``learning_rate``.
    schedule : mapping, optional
        What multiplies the learning rate: ``{"name": "exponential", "decay": 0.95}``, see
        :mod:`rnnlab.training.schedules`; constant if left out.
    num_epochs, batch_size : int
    accumulate : int
        Compute the gradient of a batch in so many parts, one after another, for a single update: the same
        loss and gradient but for rounding, with the memory of the activations of one part. Noise is drawn
        for each part, so that with noise it is not the same draw as for the whole batch. More than 1 needs a
        ``model.loss`` that takes ``part_of``; a batch of fewer examples has as many parts as examples.
    graphs : bool
        On a GPU, launch each step as a CUDA graph, captured when a shape of a batch comes for the second time
        (:mod:`rnnlab.training.step_graphs`): next to no time of the CPU. Sequences are padded to multiples of
        8 steps; losses and gradients are the same but for rounding, the noise is another draw. Not with
        ``scheduled_sampling``.
    scheduled_sampling : mapping, optional
        How often a word that the model reads is its own: ``{"name": "constant", "value": 0.25}``, see
        :mod:`rnnlab.training.sampling_schedules`. Passed on to ``model.loss`` as ``sampling``; never if left
        out.
    trains : sequence of str, optional
        Patterns, as of :mod:`fnmatch`, of the names of the parameters that train; the others are frozen. All
        train if left out.
    clip_norm : float, optional
        Scale a gradient of a larger Euclidean norm down to this norm.
    clip_value : float, optional
        Bring every element of the gradient into [-clip_value, clip_value], before ``clip_norm``.
    evaluate : callable, optional
        From the model to a dict of metrics, called after every epoch. The default is
        :func:`~rnnlab.training.validation.validation_loss` if the data have a "val" split.
    monitor : str
        The metric that tells which epoch is best. It is minimised if its name contains "loss" or
        "perplexity", else maximised.
    patience : int, optional
        Stop after so many epochs in a row without a better value of the monitored metric.
    restore_best : bool
        Whether to end with the parameters of the best epoch rather than of the last one, if there is
        validation.
    run_dir : path, optional
        Where to keep configuration, checkpoints, history and loss curve; nothing is written if left out.
    checkpoint_every : int, optional
        Iterations between checkpoints within an epoch; there is always one at its end.
    prefetch : int
        How many batches a thread of its own prepares ahead by ``data.batch``; the batches and their order do
        not depend on it. With 0, and for data whose ``in_memory`` is true, which have nothing to wait for,
        the main thread prepares each batch when its turn comes.
    config : mapping, optional
        Anything that JSON can hold, kept with the run.
    seed : int
        Of the generators of the data order and of the noise.
    verbose : bool
        Whether to print.
    print_every : int
        Iterations between the printed losses. On a GPU it is also how often losses and norms are read, at
        most every 256 iterations, so that a progress bar moves and an error of them is raised only then.
    progress : bool
        Whether to show a progress bar rather than lines.

    Attributes
    ----------
    options : Options
    interrupted : bool
        Whether the last :meth:`train` was ended by Ctrl-C.
    told_to_stop : bool
        Whether there was a Ctrl-C, even if all was done by then.

    Raises
    ------
    ValueError, TypeError
        If an argument is not what it should be; names it.
    FileExistsError
        If ``run_dir`` holds a run already.
    """

    def __init__(
        self,
        model: Model,
        data: Data,
        *,
        device: str | None = None,
        update_rule: str = "adam",
        optim_config: Mapping[str, float] | None = None,
        schedule: Mapping[str, Any] | None = None,
        scheduled_sampling: Mapping[str, Any] | None = None,
        trains: Sequence[str] | None = None,
        num_epochs: int = 10,
        batch_size: int = 64,
        accumulate: int = 1,
        graphs: bool = False,
        clip_norm: float | None = None,
        clip_value: float | None = None,
        evaluate: Evaluate | None = None,
        monitor: str = "val_loss",
        patience: int | None = None,
        restore_best: bool = True,
        run_dir: str | os.PathLike[str] | None = None,
        checkpoint_every: int | None = None,
        prefetch: int = 2,
        config: Mapping[str, Any] | None = None,
        seed: int = 0,
        verbose: bool = True,
        print_every: int = 10,
        progress: bool = False,
    ) -> None:
        check_interface("model", model, ("params", "loss", "config"))
        check_interface("data", data, ("splits", "epoch", "batch", "num_tokens"))
        self.options = Options(
            update_rule=update_rule,
            optim_config=optim_config,
            schedule=schedule,
            scheduled_sampling=scheduled_sampling,
            trains=trains,
            num_epochs=num_epochs,
            batch_size=batch_size,
            accumulate=accumulate,
            graphs=graphs,
            clip_norm=clip_norm,
            clip_value=clip_value,
            monitor=monitor,
            patience=patience,
            restore_best=restore_best,
            checkpoint_every=checkpoint_every,
            prefetch=prefetch,
            seed=seed,
            verbose=verbose,
            print_every=print_every,
            progress=progress,
        )
        if device is not None:
            check_interface("model", model, ("to",))
            model.to(device)  # type: ignore[attr-defined]
        self.model, self.data = model, data
        self.interrupted = self.told_to_stop = False
        self._state = TrainingState(self.options, data)
        self._update = Update(model, self.options)
        self._averages_tokens = getattr(model, "loss_average", "batch") == "token"
        self._evaluate = evaluate or default_evaluate(data, batch_size, monitor)
        if self._evaluate is None and (patience is not None or self._state.schedule.needs_validation):
            raise ValueError("Solver: patience and a plateau schedule need a 'val' split or evaluate")
        self._config, self._own_evaluate = as_json(config), evaluate is not None
        self._storage: Storage = InMemory(model, self.options)
        if run_dir is not None:
            self._keep_in(RunDirectory(run_dir))

    @classmethod
    def resume(
        cls,
        run_dir: str | os.PathLike[str],
        model: Model,
        data: Data,
        *,
        device: str | None = None,
        evaluate: Evaluate | None = None,
        config: Mapping[str, Any] | None = None,
        **changes: Any,
    ) -> Solver:
        """A solver that goes on from ``run_dir`` as if the run had never stopped, bit for bit.

        Parameters
        ----------
        run_dir : path
            Of a run that ended, was interrupted, or was killed.
        model : Model
            Of the same configuration; its parameters are overwritten.
        data : Data
            The same data.
        device : str, optional
            As in the constructor; need not be the one before.
        evaluate : callable, optional
            As in the constructor; must be given if it was given there.
        config : mapping, optional
            Kept with the run from now on instead of its own.
        **changes
            New values of num_epochs, patience, restore_best, checkpoint_every, accumulate, graphs, prefetch,
            verbose, print_every, progress.

        Raises
        ------
        FileNotFoundError
            If there is no run.
        CheckpointError
            If the checkpoint is damaged, or is not of this model.
        ValueError
            If a change is of another option, or asks for fewer epochs than there were, or ``evaluate`` is
            missing.
        """
        run = RunDirectory(run_dir, resume=True)
        checkpoint = load_checkpoint(run.last)
        for name in ("options", "own_evaluate"):
            if name not in checkpoint.solver:
                raise CheckpointError(run.last, f"solver: {name}", "nothing", "the state of a training run")
        if checkpoint.solver["own_evaluate"] and evaluate is None:
            raise ValueError("resume: this run was evaluated by a function of its own, pass it as evaluate")
        check_model(run.last, checkpoint, model)
        check_data(run.last, checkpoint, data, same=True)
        options = with_changes(checkpoint.solver["options"], changes)
        solver = cls(
            model, data, device=device, evaluate=evaluate, config=config or checkpoint.config, **options
        )
        solver._keep_in(run)
        solver._state.load(run.last, checkpoint, model.params.flat)
        if len(solver.history) > solver.options.num_epochs:
            raise ValueError(
                f"resume: num_epochs is {solver.options.num_epochs}, "
                f"but {run.path} has {len(solver.history)} epochs already"
            )
        model.params.flat[...] = ops_for(model.params.flat).asarray(checkpoint.parameters.flat)
        return solver

    @property
    def loss_history(self) -> list[float]:
        """The loss of every iteration."""
        return self._state.losses

    @property
    def history(self) -> list[dict[str, Any]]:
        """A row for every epoch.

        Columns: epoch, iteration, train_loss, train_loss_per_token, gradient_norm, seconds,
        tokens_per_second, learning_rate, sampling where it is scheduled, and the metrics. Loss and norm are
        means over the iterations, the norm before clipping; rate and sampling are the last iteration's. The
        loss per token compares with val_loss, but is taken while the parameters change, with noise, and with
        the terms that the model adds to it: ARNet's, that of smoothed labels, the doubly stochastic one.
        """
        return self._state.history

    @property
    def monitor(self) -> Monitor:
        """The monitored metric: its ``best`` value so far and the ``best_epoch``."""
        return self._state.monitor

    def train(self) -> None:
        """Train until the last epoch, until the monitored metric has stopped improving, or until Ctrl-C.

        The first Ctrl-C ends the iteration under way, writes the checkpoint and returns; calling
        :meth:`train` again goes on from there.

        Raises
        ------
        NonFiniteError
            If a loss, a gradient, a parameter or the monitored metric is not finite. The last checkpoint
            stays.
        """
        self._storage.begin()
        progress = make_progress(self.options)
        try:
            with Interrupt() as interrupt:
                while not (self._finished or interrupt.requested):
                    if self._train_epoch(progress, interrupt):
                        self._end_epoch(progress)
                self.told_to_stop = interrupt.requested
                self.interrupted = self.told_to_stop and not self._finished
                self._end(progress)
        finally:
            progress.close()

    @property
    def _finished(self) -> bool:
        return self._state.order.epoch >= self.options.num_epochs or self.monitor.exhausted

    def _train_epoch(self, progress: Progress, interrupt: Interrupt) -> bool:
        """Use the batches that are left of this epoch; false if interrupted."""
        order, every = self._state.order, self.options.checkpoint_every
        batches = order.batches()
        before = self._state.iteration - order.batch
        total = before + len(batches) * (self.options.num_epochs - order.epoch)
        ahead = 0 if getattr(self.data, "in_memory", False) else self.options.prefetch
        with closing(prefetched(self._prepare, batches[order.batch :], ahead)) as prepared:
            started = time.perf_counter()
            for batch in prepared:
                self._iterate(batch, started)
                stops = interrupt.requested  # asked once: it may change at any time
                if stops or self._results_are_due():
                    self._read_results(progress, total)
                if stops:
                    return False
                if every and self._state.iteration % every == 0:
                    self._storage.save()
                started = time.perf_counter()
        return True

    def _results_are_due(self) -> bool:
        """Whether somebody waits for the losses of the iterations so far."""
        done, every = self._state.iteration, self.options.checkpoint_every
        saved = every is not None and done % every == 0
        return saved or self._state.order.at_end or (done - 1) % self._update.read_every == 0

    def _prepare(self, indices: Array) -> Prepared:
        """A batch as the update wants to have it."""
        batch = self.data.batch("train", indices)
        return self._update.prepared(batch, self.data.num_tokens(batch))

    def _iterate(self, batch: Prepared, started: float) -> None:
        """One update by a batch that was waited for since ``started``."""
        self._update(batch, self._state)
        self._state.count(
            averaged_over=batch.tokens if self._averages_tokens else batch.examples,
            tokens=batch.tokens,
            seconds=time.perf_counter() - started,
        )

    def _read_results(self, progress: Progress, total: int) -> None:
        """Wait for the losses and norms of the iterations since the last time, and show them."""
        state = self._state
        before, started = state.iteration - state.unread, time.perf_counter()
        try:
            results = self._update.read(before + 1)
        except NonFiniteError as error:
            state.read(error.before)
            state.forget_unread()
            raise
        state.read(results)
        state.totals.seconds += time.perf_counter() - started
        for done, (loss, _) in enumerate(results, before + 1):
            progress.iteration(done, total, loss, state.totals)

    def _end_epoch(self, progress: Progress) -> None:
        """Validate, take the epoch into the history, and save."""
        metrics = self._validate()
        improved = self._state.end_epoch(metrics)
        progress.epoch(self._state.order.epoch, self.options.num_epochs, metrics or {})
        if improved:
            self._storage.save_best()
        self._storage.save()
        self._storage.show()

    def _validate(self) -> dict[str, float] | None:
        """The metrics now; if they fail, the epoch is saved, and a resume begins by computing them again."""
        if self._evaluate is None:
            return None
        try:
            return {name: float(value) for name, value in self._evaluate(self.model).items()}
        except BaseException:
            self._storage.save()
            raise

    def _end(self, progress: Progress) -> None:
        """Leave the model and the run directory as whoever comes next wants to find them."""
        if self.interrupted:
            progress.message(f"Interrupted after iteration {self._state.iteration}")
            self._storage.save()
        self._storage.show(at_the_end=True)
        if not self.interrupted and self.options.restore_best and self.monitor.best_epoch is not None:
            self._storage.restore_best()

    def _keep_in(self, run: RunDirectory) -> None:
        """Keep everything in a directory from now on."""
        self._storage = InDirectory(
            run, self.model, self.data, self.options, self._state, self._config, self._own_evaluate
        )
