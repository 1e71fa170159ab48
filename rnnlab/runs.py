"""A recipe brought to life: the data, model and solver that it describes, and the runs that come of it.

>>> config = load_config("recipes/shapes.toml")                      # doctest: +SKIP
>>> run = train(config, "runs/shapes")                               # doctest: +SKIP
>>> evaluate(run, "test").scores.corpus["BLEU-4"]                    # doctest: +SKIP
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rnnlab.data import CaptionData, ParallelData, PixelData
from rnnlab.models import CaptioningRNN, Seq2Seq, SequenceClassifier
from rnnlab.ops import ops_on
from rnnlab.recipes.recipe import (
    ClassificationConfig,
    ClassificationEvaluationConfig,
    Config,
    DecodingConfig,
    EvaluationConfig,
    Recipe,
    TranslationConfig,
    TranslationEvaluationConfig,
    recipe_from_dict,
)
from rnnlab.recipes.stages import Stage, check_stages
from rnnlab.tasks import captioning, classification, translation
from rnnlab.tasks.discrepancy import Discrepancy
from rnnlab.tasks.discrepancy import discrepancy as measure_discrepancy
from rnnlab.training import Solver, load_checkpoint, load_model, warm_start
from rnnlab.training.step import check_device_of_graphs

_TASKS: dict[type[Recipe], Any] = {
    Config: captioning,
    TranslationConfig: translation,
    ClassificationConfig: classification,
}


@dataclass(frozen=True)
class Run:
    """A trained model with the data it was trained on and the recipe that says how."""

    directory: Path
    config: Recipe
    data: Any  # CaptionData, ParallelData or PixelData, as the recipe says; None if it was not opened
    model: Any  # CaptioningRNN, Seq2Seq or SequenceClassifier
    interrupted: bool = False  # whether its training was ended by Ctrl-C


def train(
    config: Recipe,
    directory: str | os.PathLike[str],
    *,
    progress: bool = True,
    device: str = "cpu",
    graphs: bool = False,
) -> Run:
    """Train what the recipe describes in a new run directory.

    Stages are trained one after another: the last in the directory itself, the others in ``stage1``,
    ``stage2`` and so on therein.

    Parameters
    ----------
    config : Config, TranslationConfig or ClassificationConfig
    directory : path
        Must not hold a run already.
    progress : bool
        Show a progress bar rather than lines.
    device : str
        "cpu", "gpu" or "gpu:N"; no part of the run, which goes on anywhere.
    graphs : bool
        On a GPU, launch each step as a CUDA graph, as :class:`~rnnlab.training.Solver` has it; likewise.

    Returns
    -------
    Run
        With the best epoch's parameters, if the recipe's ``restore_best`` is on.

    Raises
    ------
    FileExistsError
        If the directory holds a run.
    ImportError
        If the recipe asks for scores after every epoch and the extra that computes them is not installed; or
        there is no such device.
    FileNotFoundError, CheckpointError
        If the recipe's ``warm_start`` is not there, or is of a model that does not fit.
    KeyError
        If the data lack the split that the recipe wants to be evaluated.
    ValueError, TypeError
        If a stage does not fit the model: all of them are looked at before the first is trained.
    """
    path, stages = Path(directory), config.stages()
    if holds_run(path):
        raise FileExistsError(f"{path} already holds a run: resume it, or choose another directory")
    start = stages[0].training.warm_start
    checkpoint = None if start is None else _start_of(Path(start))
    _check_device(device, graphs)
    data = open_data(config.data)
    data.split(config.evaluation.split)  # what is wrong with it is said before hours of training
    if config.stage:
        check_stages(stages, new_model(config, data))
    return _train_stages(Run(path, config, data, None), stages, checkpoint, progress, device, graphs, {})


def resume(
    directory: str | os.PathLike[str],
    *,
    progress: bool = True,
    num_epochs: int | None = None,
    device: str = "cpu",
    graphs: bool = False,
) -> Run:
    """Go on with a run where it stopped, bit for bit, and through the stages that are left.

    Parameters
    ----------
    directory : path
        Of the run, whichever stage it is in.
    progress : bool
        Show a progress bar rather than lines.
    num_epochs : int, optional
        Train for so many epochs in all, as :func:`with_epochs` has it.
    device : str
        "cpu", "gpu" or "gpu:N", whichever it was before.
    graphs : bool
        As of :func:`train`, whichever it was before.

    Returns
    -------
    Run

    Raises
    ------
    FileNotFoundError
        If there is no run.
    ValueError
        If the directory is a stage's own, or had more epochs already.
    """
    path = Path(directory)
    under_way = _under_way(path)
    config = _config_of(under_way / "last.h5")
    changes = {}
    if num_epochs is not None:
        config, changes = with_epochs(config, num_epochs), {"num_epochs": num_epochs}
    stages = config.stages()
    _check_is_whole(path, len(stages))
    left = stages[[stage.directory(path) for stage in stages].index(under_way) :]
    _check_device(device, graphs)
    run = Run(path, config, open_data(config.data), None)
    return _train_stages(run, left, None, progress, device, graphs, changes)


def _train_stages(
    run: Run,
    stages: Sequence[Stage],
    start: Path | None,
    progress: bool,
    device: str,
    graphs: bool,
    changes: Mapping[str, Any],
) -> Run:
    """Train stages, the first of them from the checkpoint ``start`` or from where it stopped itself.

    ``changes`` are those of the solver's options if it is the last stage that is resumed.
    """
    config, data, model = run.config, run.data, None
    common: dict[str, Any] = {
        "evaluate": _task(config).epoch_scores(config, data),
        "config": config.to_dict(),
        "progress": progress,
        "device": device,
        "graphs": graphs,
    }
    for stage in stages:
        directory, model = stage.directory(run.directory), new_model(config, data)
        stage.prepare(model)
        if config.stage:
            print(stage.describe(model))
        if (directory / "last.h5").exists():
            solver = Solver.resume(directory, model, data, **common, **(changes if stage.is_last else {}))
        else:
            solver = Solver(model, data, **stage.options(), run_dir=directory, **common)
            if start is not None:
                print(warm_start(start, model))
        solver.train()
        if solver.interrupted or (solver.told_to_stop and not stage.is_last):
            return replace(run, model=model, interrupted=True)
        start = checkpoint_of(directory)
    return replace(run, model=model)


def _check_device(device: str, graphs: bool) -> None:
    """Say what is wrong with a device, or with graphs on it, before the data are read."""
    ops_on(device)
    if graphs:
        check_device_of_graphs(device)


def with_epochs(config: Recipe, num_epochs: int) -> Recipe:
    """The recipe, trained for so many epochs in all; its last stage, if it has stages."""
    if config.stage:
        *stages, last = config.stage
        return replace(config, stage=[*stages, last.with_changes(num_epochs=num_epochs)])
    return replace(config, training=config.training.with_changes(num_epochs=num_epochs))


def load_run(directory: str | os.PathLike[str], *, with_data: bool = True, device: str = "cpu") -> Run:
    """Open a run directory: its best checkpoint, or the last where there was no validation.

    Parameters
    ----------
    directory : path
    with_data : bool
        Whether to open the data as well, which a model can do without.
    device : str
        Where the model is to be: "cpu", "gpu" or "gpu:N".

    Raises
    ------
    FileNotFoundError
        If there is no checkpoint.
    """
    path = Path(directory)
    checkpoint = checkpoint_of(path)
    config = _config_of(checkpoint)
    model = load_model(checkpoint).to(device)
    return Run(path, config, open_data(config.data) if with_data else None, model)


def holds_run(directory: Path) -> bool:
    """Whether there is a checkpoint in the directory, or in that of a stage therein."""
    places = (directory, *directory.glob("stage*"))
    return any((place / name).exists() for place in places for name in ("best.h5", "last.h5"))


def checkpoint_of(directory: Path) -> Path:
    """The best checkpoint of a run directory, or the last where there was no validation.

    Raises
    ------
    FileNotFoundError
        If there is none.
    """
    for name in ("best.h5", "last.h5"):
        if (directory / name).exists():
            return directory / name
    stages = sorted(stage.name for stage in directory.glob("stage*") if holds_run(stage))
    hint = f"; its last stage has not begun, {directory / stages[-1]} has the one under way" if stages else ""
    raise FileNotFoundError(f"{directory} holds no run: found neither best.h5 nor last.h5{hint}")


def _start_of(path: Path) -> Path:
    """The checkpoint of a warm start: that file, or the one of that run."""
    if path.is_file():
        return path
    try:
        return checkpoint_of(path)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"training.warm_start: {error}; train that model first") from None


def _under_way(path: Path) -> Path:
    """Where the training of a run is: in its directory, or in that of the last stage that was begun."""
    if (path / "last.h5").exists():
        return path
    begun = [last.parent for last in path.glob("stage*/last.h5") if last.parent.name[5:].isdecimal()]
    return max(begun, key=lambda stage: int(stage.name[5:]), default=path)


def _check_is_whole(path: Path, num_stages: int) -> None:
    """Raise ValueError if the directory is that of a stage of the run around it."""
    names = [f"stage{number}" for number in range(1, num_stages)]
    if path.resolve().name in names and not (path / "stage1").exists():
        raise ValueError(f"{path} is one stage of {num_stages} of a run: resume {path.resolve().parent}")


def _config_of(checkpoint: Path) -> Recipe:
    tables = load_checkpoint(checkpoint).config
    if tables is None:
        raise ValueError(f"{checkpoint} holds no recipe, expected a run of rnnlab train")
    return recipe_from_dict(tables, str(checkpoint))


def open_data(table: Any) -> CaptionData | ParallelData | PixelData:
    """The data that a recipe's table ``[data]`` names."""
    return next(task for task in _TASKS.values() if isinstance(table, task.TABLES)).open_data(table)


def new_model(config: Recipe, data: Any) -> CaptioningRNN | Seq2Seq | SequenceClassifier:
    """A model as the recipe describes it, its parameters drawn from the recipe's seed."""
    return _task(config).new_model(config, data)


def evaluate(
    run: Run,
    split: str | None = None,
    *,
    decoding: DecodingConfig | None = None,
    evaluation: EvaluationConfig | TranslationEvaluationConfig | ClassificationEvaluationConfig | None = None,
    **options: Any,
) -> Any:
    """Caption, translate or classify a split and score that against its references or labels.

    Parameters
    ----------
    run : Run
    split : str, optional
        The recipe's if left out.
    decoding : DecodingConfig, optional
        Instead of the recipe's; of recipes that search for sentences.
    evaluation : EvaluationConfig, TranslationEvaluationConfig or ClassificationEvaluationConfig, optional
        Instead of the recipe's.
    **options
        Of the task: see :func:`rnnlab.tasks.captioning.evaluate`,
        :func:`rnnlab.tasks.translation.evaluate` and :func:`rnnlab.tasks.classification.evaluate`.

    Returns
    -------
    Evaluation
        Of :mod:`rnnlab.tasks.captioning`, :mod:`rnnlab.tasks.translation` or
        :mod:`rnnlab.tasks.classification`.

    Raises
    ------
    ImportError
        If the extra that computes the scores is not installed.
    KeyError
        If the data have no such split.
    """
    config: Any = run.config
    evaluation = evaluation or config.evaluation
    if not isinstance(config, ClassificationConfig):
        options["decoding"] = decoding or config.decoding
    elif decoding is not None:
        raise ValueError("evaluate: decoding is given, but a model that classifies searches for nothing")
    return _task(config).evaluate(
        config.training,
        run.data,
        run.model,
        split or evaluation.split,
        evaluation=evaluation,
        **options,
    )


def discrepancy(run: Run, split: str | None = None, *, first: int | None = None) -> Discrepancy:
    """How far the model's last states under teacher forcing are from those when it runs free.

    Parameters
    ----------
    run : Run
    split : str, optional
        The recipe's if left out.
    first : int, optional
        Only so many images or sentences.

    Returns
    -------
    rnnlab.tasks.discrepancy.Discrepancy

    Raises
    ------
    KeyError
        If the data have no such split.
    ValueError
        If the model writes no sentences, or the split is empty.
    """
    if isinstance(run.config, ClassificationConfig):
        raise ValueError(f"{run.directory} holds a model that classifies, expected one that writes sentences")
    return measure_discrepancy(
        run.config, run.data, run.model, split or run.config.evaluation.split, first=first
    )


def _task(config: Recipe) -> Any:
    """The module of what the recipe is about."""
    return _TASKS[type(config)]
