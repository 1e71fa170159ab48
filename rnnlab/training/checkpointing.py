"""What is kept of a run: its checkpoints, history and curve, or the best parameters in memory."""

from __future__ import annotations

import os
from typing import Any, Protocol

import rnnlab
from rnnlab.training.checkpoint import Checkpoint, describe_model, load_parameters, save_checkpoint
from rnnlab.training.nonfinite import check_parameters
from rnnlab.training.options import Options
from rnnlab.training.protocols import Data, Model
from rnnlab.training.run_directory import RunDirectory
from rnnlab.training.state import TrainingState


class Keeper(Protocol):
    """Keeps what somebody may want after a training run, or to go on with it."""

    def begin(self) -> None:
        """Training begins, or goes on."""

    def save(self) -> None:
        """Make what there is now the state to resume from.

        Raises
        ------
        NonFiniteError
            If a parameter is not finite; what was kept before stays.
        """

    def keep_best(self) -> None:
        """These are the best parameters so far."""

    def restore_best(self) -> None:
        """Give the model the best parameters."""

    def show(self, *, at_the_end: bool = False) -> None:
        """Write down the losses so far, for people."""


class InMemory:
    """Keeps the best parameters only, if anybody wants them: :class:`Keeper`."""

    def __init__(self, model: Model, options: Options) -> None:
        self._model, self._wanted = model, options.restore_best
        self._best = model.params

    def begin(self) -> None:
        """Nothing."""

    def save(self) -> None:
        """Nothing: there is nowhere to resume from."""

    def keep_best(self) -> None:
        """Copy the parameters, if they are to be restored."""
        if self._wanted:
            self._best = self._model.params.copy()

    def restore_best(self) -> None:
        """From the copy."""
        self._model.params.flat[...] = self._best.flat

    def show(self, *, at_the_end: bool = False) -> None:
        """Nothing."""


class InDirectory:
    """Keeps everything in a run directory: :class:`Keeper`.

    Parameters
    ----------
    run : RunDirectory
    model : Model
    data : Data
        Whose ``vocabulary``, if it has one, goes with the parameters.
    options : Options
    state : TrainingState
    config : dict or None
        The user's.
    own_evaluate : bool
        Whether whoever resumes has to bring a function that evaluates.
    """

    def __init__(
        self,
        run: RunDirectory,
        model: Model,
        data: Data,
        options: Options,
        state: TrainingState,
        config: dict[str, Any] | None,
        own_evaluate: bool,
    ) -> None:
        self._run, self._model, self._options, self._state = run, model, options, state
        self._config, self._own_evaluate = config, own_evaluate
        vocabulary = getattr(data, "vocabulary", None)
        self._words = None if vocabulary is None else list(vocabulary.idx_to_word)

    def begin(self) -> None:
        """Write config.json; the model's vocabulary and other long things are in the checkpoints only."""
        model = describe_model(self._model)
        model["config"] = {
            key: value for key, value in model["config"].items() if not isinstance(value, dict | list)
        }
        self._run.write_config(
            {
                "rnnlab_version": rnnlab.__version__,
                "config": self._config,
                "model": model,
                "num_parameters": int(self._model.params.flat.size),
                "solver": self._options.to_dict(),
            }
        )

    def save(self) -> None:
        """Write last.h5."""
        self._write(self._run.last)

    def keep_best(self) -> None:
        """Write best.h5."""
        self._write(self._run.best)

    def restore_best(self) -> None:
        """From best.h5."""
        load_parameters(self._run.best, self._model)

    def show(self, *, at_the_end: bool = False) -> None:
        """Write history.csv and, now and then and at the end, loss.png."""
        state = self._state
        if state.history:
            self._run.write_history(state.history)
        self._run.plot(state.losses, state.history, state.monitor, force=at_the_end)

    def _write(self, path: os.PathLike[str]) -> None:
        model, state = self._model, self._state.save()
        check_parameters(self._state.iteration, model.params)
        state["solver"] |= {"options": self._options.to_dict(), "own_evaluate": self._own_evaluate}
        described = describe_model(model)
        save_checkpoint(path, Checkpoint(model.params, described, self._words, self._config, **state))
