"""The storage of a run's results: a run directory, or the best parameters in memory."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Protocol

import rnnlab
from rnnlab import ops
from rnnlab.files import WriteError
from rnnlab.locks import InUseError
from rnnlab.training.checkpoint import (
    Checkpoint,
    CheckpointError,
    describe_model,
    load_parameters,
    save_checkpoint,
)
from rnnlab.training.compatibility import fingerprint_of, loss_weights
from rnnlab.training.nonfinite import check_parameters
from rnnlab.training.options import Options
from rnnlab.training.previous import (
    keep_previous,
    load_and_repair,
    load_or_previous,
    previous_of,
    repair_best,
)
from rnnlab.training.protocols import Data, Model
from rnnlab.training.run_directory import RunDirectory
from rnnlab.training.state import TrainingState


class Storage(Protocol):
    """Stores the results of a training run, and the state from which it resumes."""

    def locked(self) -> AbstractContextManager[None]:
        """A context in which no other process writes to the same place.

        Raises
        ------
        InUseError
            If another process does.
        """

    def begin(self) -> None:
        """Called when training begins or resumes."""

    def save(self) -> Path | None:
        """Save the state from which training resumes; return the file, if there is one.

        Raises
        ------
        NonFiniteError
            If a parameter is not finite. The previous state stays.
        """

    def is_resumable(self) -> bool:
        """Whether a state from which training resumes is saved, or none is ever saved."""

    def save_best(self) -> Path | None:
        """Save the parameters, which are the best so far; return the file, if there is one."""

    def restore_best(self) -> None:
        """Copy the best parameters into the model."""

    def write_reports(self, *, at_the_end: bool = False) -> None:
        """Write the history and the loss curve."""


class InMemory:
    """A :class:`Storage` of the best parameters only, and only if ``restore_best`` is on.

    Parameters
    ----------
    model : Model
    state : TrainingState
    options : Options
    """

    def __init__(self, model: Model, state: TrainingState, options: Options) -> None:
        self._model, self._state, self._wanted = model, state, options.restore_best
        self._best = model.params

    def locked(self) -> AbstractContextManager[None]:
        """Nothing: no other process can write to this memory."""
        return nullcontext()

    def begin(self) -> None:
        """Nothing."""

    def save(self) -> None:
        """Check the parameters and save nothing: a run without a directory cannot resume."""
        check_parameters(self._state.iteration, self._model.params)

    def is_resumable(self) -> bool:
        """True: nothing can be saved."""
        return True

    def save_best(self) -> None:
        """Copy the parameters."""
        self.save()
        if self._wanted:
            self._best = self._model.params.copy()

    def restore_best(self) -> None:
        """Restore the copy."""
        self._model.params.flat[...] = self._best.flat

    def write_reports(self, *, at_the_end: bool = False) -> None:
        """Nothing."""


class OnOtherRanks(InMemory):
    """The :class:`Storage` of all ranks but rank 0, which writes the files and has the best parameters."""

    def save_best(self) -> None:
        """Raise the error that rank 0 raises if a parameter is not finite."""
        self.save()

    def restore_best(self) -> None:
        """Nothing: the parameters come from rank 0."""


class InDirectory:
    """A :class:`Storage` in a run directory.

    Parameters
    ----------
    run : RunDirectory
    model : Model
    data : Data
        Its ``vocabulary``, ``preprocessing()`` and ``fingerprint()`` are saved with the parameters, if it has
        them.
    options : Options
    state : TrainingState
    config : dict or None
        Saved with the run.
    own_evaluate : bool
        Whether ``Solver.resume`` needs the argument ``evaluate``.
    objective : dict or None
        The options of the objective.
    graphs : bool
        Whether steps are launched as CUDA graphs.
    """

    def __init__(
        self,
        run: RunDirectory,
        model: Model,
        data: Data,
        options: Options,
        state: TrainingState,
        *,
        config: dict[str, Any] | None,
        own_evaluate: bool,
        objective: dict[str, Any] | None,
        graphs: bool,
    ) -> None:
        self._run, self._model, self._options, self._state = run, model, options, state
        self._graphs, self._loss_weights = graphs, loss_weights(model)
        self._config, self._own_evaluate, self._objective = config, own_evaluate, objective
        vocabulary = getattr(data, "vocabulary", None)
        self._data = {
            "vocabulary": None if vocabulary is None else list(vocabulary.idx_to_word),
            "preprocessing": data.preprocessing() if hasattr(data, "preprocessing") else {},
            "fingerprint": fingerprint_of(data),
        }

    def locked(self) -> AbstractContextManager[None]:
        """See :meth:`RunDirectory.locked`."""
        return self._run.locked()

    def begin(self) -> None:
        """Write config.json. The vocabulary and other long entries are in the checkpoints only.

        A damaged checkpoint is replaced by the one before it. If a run resumes with other options, last.h5 is
        written, so that they stay even if the process is killed before its next checkpoint.

        Raises
        ------
        InUseError
            If another process has trained in the directory since this run was read.
        FileNotFoundError, CheckpointError
            If the parameters of the best epoch will be restored, and their checkpoint is missing, or it and
            the one before it are damaged.
        """
        saved = self._saved_state()
        self._restore_best_file()
        model = describe_model(self._model)
        model["config"] = {
            key: value for key, value in model["config"].items() if not isinstance(value, dict | list)
        }
        self._run.write_config(
            {
                "rnnlab_version": rnnlab.__version__,
                "computed_by": [
                    *ops.describe_on(ops.device_of(self._model.params.flat)),
                    *["training steps: CUDA graphs"] * self._graphs,
                ],
                "config": self._config,
                "model": model,
                "num_parameters": int(self._model.params.flat.size),
                "solver": self._options.to_dict(),
                "objective": self._objective,
            }
        )
        options = self._options.to_dict()
        if saved is not None and (saved.solver["options"], saved.config) != (options, self._config):
            self.save()

    def _restore_best_file(self) -> None:
        """Make best.h5 the checkpoint of the best epoch, if it is another one or missing."""
        best, epoch, state = self._run.best, self._state.monitor.best_epoch, self._state
        if epoch is None or repair_best(best, epoch):
            return
        last = state.history[-1]
        if last["epoch"] == epoch and last["iteration"] == state.iteration:  # the model still has them
            with state.averaged(self._model.params.flat):
                self.save_best()
        elif best.exists() and not (self._options.restore_best and _is_lost(best)):
            print(f"{best} is damaged or of another epoch than {epoch}, this run's best", file=sys.stderr)
        elif self._options.restore_best:
            other = "resume with restore_best=False (--set training.restore_best=false)"
            if state.average is not None:  # which needs restore_best
                other = f"use {self._run.last} as the warm start of a new run"
            expected = f"that of epoch {epoch}, the best one of this run: put it back, or {other}"
            if best.exists():
                found = f"a damaged one, and no intact {previous_of(best).name}"
                raise CheckpointError(best, "checkpoint", found, expected)
            raise FileNotFoundError(f"{best}: no such checkpoint, expected {expected}")

    def _saved_state(self) -> Checkpoint | None:
        """Read last.h5; replace it if it is damaged.

        Raises
        ------
        InUseError
            If it has more iterations than this run.
        """
        if not self._run.last.exists():
            return None
        saved = load_and_repair(self._run.last)
        done = 0 if saved is None else len(saved.losses)
        if done > self._state.iteration:
            raise InUseError(
                f"run_dir {self._run.path} has {done} iterations, and this run continues from "
                f"{self._state.iteration}: another process has trained in it since; resume it again"
            )
        return saved

    def save(self) -> Path:
        """Write last.h5."""
        return self._write(self._run.last)

    def is_resumable(self) -> bool:
        """Whether there is a last.h5."""
        return self._run.last.exists()

    def save_best(self) -> Path:
        """Write best.h5."""
        return self._write(self._run.best)

    def restore_best(self) -> None:
        """Read best.h5, or the one before it if it is damaged."""
        try:
            load_parameters(self._run.best, self._model)
        except CheckpointError:
            load_and_repair(self._run.best)
            load_parameters(self._run.best, self._model)

    def write_reports(self, *, at_the_end: bool = False) -> None:
        """Write history.csv and, at most every 30 seconds and at the end, loss.png.

        A file that another program keeps open on Windows, such as a spreadsheet, is left out with a warning.
        """
        state = self._state
        if state.history:
            with _unless_open():
                self._run.write_history(state.history)
        with _unless_open():
            self._run.plot(state.losses, state.history, state.monitor, force=at_the_end)

    def _write(self, path: Path) -> Path:
        self._run.check_lock()
        model, state = self._model, self._state.save()
        check_parameters(self._state.iteration, model.params)
        state["solver"] |= {
            "options": self._options.to_dict(),
            "own_evaluate": self._own_evaluate,
            "objective": self._objective,
            "loss_weights": self._loss_weights,
        }
        described = describe_model(model)
        checkpoint = Checkpoint(model.params, described, config=self._config, **self._data, **state)
        save_checkpoint(path, checkpoint, before_rename=lambda: keep_previous(path))
        return path


def _is_lost(checkpoint: Path) -> bool:
    """Whether neither a checkpoint nor the one before it can be read."""
    try:
        load_or_previous(checkpoint)
    except CheckpointError:
        return True
    return False


@contextmanager
def _unless_open() -> Iterator[None]:
    """A context in which it is a warning that another program does not let a file be replaced."""
    try:
        yield
    except WriteError as error:
        if not isinstance(error.__cause__, PermissionError):
            raise
        warnings.warn(f"{error}; it is written again after the next epoch", RuntimeWarning, stacklevel=2)
