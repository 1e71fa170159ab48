"""A trained run with its recipe, data and model: opened from its directory, or made from a recipe."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from signal import Signals
from typing import Any

from rnnlab.data import CaptionData, ParallelData, PixelData
from rnnlab.errors import InputError
from rnnlab.models import CaptioningRNN, Seq2Seq, SequenceClassifier
from rnnlab.parameters import Parameters
from rnnlab.recipes.data import ShapesTable
from rnnlab.recipes.recipe import Recipe, recipe_from_dict
from rnnlab.shell import quoted
from rnnlab.tasks import task_of, task_of_data
from rnnlab.training.checkpoint import Checkpoint, model_of
from rnnlab.training.compatibility import check_data
from rnnlab.training.previous import load_or_suggest
from rnnlab.training.run_directory import checkpoint_of


@dataclass(frozen=True)
class Run:
    """A trained model with its recipe and its data.

    Attributes
    ----------
    directory : Path
    recipe : CaptioningRecipe, TranslationRecipe, LanguageRecipe or ClassificationRecipe
        The recipe.
    data : CaptionData, ParallelData, TextData, RunningText, PixelData or None
        None if not opened.
    model : CaptioningRNN, Seq2Seq, LanguageModel or SequenceClassifier
    interrupted : bool
        Whether a signal or a callback ended the training.
    stop_reason : str or None
        The reason that the callback gave.
    signal : Signals or None
        SIGINT, which is Ctrl-C, SIGTERM, SIGUSR1 or SIGHUP.
    inputs : CaptionInputs, TranslationInputs, TextInputs or PixelInputs
        The preprocessing of new inputs, from the checkpoint. None if there is no checkpoint.
    members : tuple of Path
        The directories of an ensemble's runs; see :mod:`rnnlab.ensembles`.
    """

    directory: Path
    recipe: Recipe
    data: Any
    model: Any
    interrupted: bool = False
    stop_reason: str | None = None
    signal: Signals | None = None
    inputs: Any = None
    members: tuple[Path, ...] = ()

    def __repr__(self) -> str:
        return f"Run({str(self.directory)!r}, model={self.model!r}, data={self.data!r})"


def load_run(directory: str | os.PathLike[str], *, with_data: bool = True, device: str = "cpu") -> Run:
    """Open a run directory with the parameters that its training ends with.

    They come from the best checkpoint, or from the last one if there was no validation or ``restore_best``
    is off. If the best one is missing, the last one is read, with a message on standard error.

    Parameters
    ----------
    directory : path
    with_data : bool
        Whether to open the data as well. New inputs need only the run: see :attr:`Run.inputs`.
    device : str
        The device of the model: "cpu", "gpu" or "gpu:N".

    Raises
    ------
    FileNotFoundError
        If there is no checkpoint.
    CheckpointError
        If the vocabulary or the scaling of the data differs from that of the training data.
    """
    run, check = load_without_data(directory, device)
    if not with_data:
        return run
    data = open_data_of_run(run.recipe)
    check(data)
    return replace(run, data=data)


def load_without_data(directory: str | os.PathLike[str], device: str) -> tuple[Run, Callable[[Any], None]]:
    """A run as :func:`load_run` opens it, and a function that checks data against its checkpoint.

    The function raises CheckpointError if the vocabulary or the scaling of the data differs.
    """
    path = Path(directory)
    file = checkpoint_of(path)
    checkpoint = load_or_suggest(file)
    best = checkpoint.solver.get("monitor", {}).get("best_epoch")
    if best is not None and file.name == "last.h5" and checkpoint.solver["options"].get("restore_best", True):
        print(
            f"{path} has no best.h5, the checkpoint of its best epoch {best}: {file} is read", file=sys.stderr
        )
    recipe = saved_recipe(file, checkpoint, to_train=False)
    model = model_of(file, checkpoint).to(device)
    run = Run(path, recipe, None, model, inputs=task_of(recipe).inputs(recipe, checkpoint))
    kept = replace(checkpoint, parameters=Parameters({}), optimiser={}, average=None)  # large arrays are not
    return run, partial(check_data, file, kept)


def open_data_of_run(recipe: Recipe) -> Any:
    """The data of a run. Built-in data are not generated, because a checkpoint may name any folder.

    Raises
    ------
    FileNotFoundError
        If they are the built-in data, and their folder does not exist.
    """
    folder = recipe.data.directory if isinstance(recipe.data, ShapesTable) else None
    if folder is not None and not Path(folder).exists():
        name = os.fspath(folder)
        how = f"rnnlab data info shapes --set {quoted(f'data.directory={name}')} makes them"
        if not os.path.isabs(name):
            how = (
                f"the path is relative to the current folder, {os.getcwd()}: go to the folder where the run "
                f"was trained; if the data were deleted, {how}"
            )
        raise FileNotFoundError(f"{name}: found no such folder, expected the built-in data of the run; {how}")
    return open_data(recipe.data)


def open_data(table: Any) -> CaptionData | ParallelData | PixelData:
    """The data that a recipe's table [data] describes."""
    return task_of_data(table).open_data(table)


def new_model(recipe: Recipe, data: Any) -> CaptioningRNN | Seq2Seq | SequenceClassifier:
    """A model as the recipe describes it, with parameters drawn from the recipe's seed."""
    return task_of(recipe).new_model(recipe, data)


def saved_recipe(
    path: Path, checkpoint: Checkpoint, overrides: Sequence[str] = (), *, to_train: bool = True
) -> Recipe:
    """The recipe in a checkpoint, with overrides.

    Raises
    ------
    ValueError
        If it holds no recipe.
    """
    if checkpoint.config is None:
        raise InputError(
            f"{path} holds no recipe, expected a run of rnnlab train; "
            "rnnlab.training.load_model loads the model of a run of Solver"
        )
    return recipe_from_dict(checkpoint.config, str(path), overrides, to_train=to_train)
