"""A recipe brought to life: the data, model and solver that it describes, and the runs that come of it.

>>> config = load_config("recipes/shapes.toml")                      # doctest: +SKIP
>>> run = train(config, "runs/shapes")                               # doctest: +SKIP
>>> evaluate(run, "test").scores.corpus["BLEU-4"]                    # doctest: +SKIP
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rnnlab.config import (
    DecodingConfig,
    EvaluationConfig,
    Recipe,
    TranslationConfig,
    TranslationEvaluationConfig,
    recipe_from_dict,
)
from rnnlab.data import CaptionData, ParallelData
from rnnlab.models import CaptioningRNN, Seq2Seq
from rnnlab.tasks import captioning, translation
from rnnlab.tasks.discrepancy import Discrepancy
from rnnlab.tasks.discrepancy import discrepancy as measure_discrepancy
from rnnlab.training import Solver, load_checkpoint, load_model, warm_start


@dataclass(frozen=True)
class Run:
    """A trained model with the data it was trained on and the recipe that says how."""

    directory: Path
    config: Recipe
    data: Any  # CaptionData or ParallelData, as the recipe says; None if it was not opened
    model: Any  # CaptioningRNN or Seq2Seq
    interrupted: bool = False  # whether its training was ended by Ctrl-C


def train(config: Recipe, directory: str | os.PathLike[str], *, progress: bool = True) -> Run:
    """Train what the recipe describes in a new run directory.

    Parameters
    ----------
    config : Config or TranslationConfig
    directory : path
        Must not hold a run already.
    progress : bool
        Show a progress bar rather than lines.

    Returns
    -------
    Run
        With the best epoch's parameters, if the recipe's ``restore_best`` is on.

    Raises
    ------
    FileExistsError
        If the directory holds a run.
    ImportError
        If the recipe asks for scores after every epoch and the extra that computes them is not installed.
    FileNotFoundError, CheckpointError
        If the recipe's ``warm_start`` is not there, or is of a model that does not fit.
    KeyError
        If the data lack the split that the recipe wants to be evaluated.
    """
    options = asdict(config.training)
    start = options.pop("warm_start")
    checkpoint = None if start is None else _start_of(Path(start))
    data = open_data(config.data)
    data.split(config.evaluation.split)  # what is wrong with it is said before hours of training
    model = new_model(config, data)
    solver = Solver(
        model,
        data,
        **options,
        evaluate=_task(config).epoch_scores(config, data),
        config=config.to_dict(),
        run_dir=directory,
        progress=progress,
    )
    if checkpoint is not None:
        print(warm_start(checkpoint, model))
    solver.train()
    return Run(Path(directory), config, data, model, solver.interrupted)


def resume(directory: str | os.PathLike[str], *, progress: bool = True, num_epochs: int | None = None) -> Run:
    """Go on with a run where it stopped, bit for bit; for longer, if ``num_epochs`` is given."""
    path = Path(directory)
    config = _config_of(path / "last.h5")
    changes: dict[str, Any] = {}
    if num_epochs is not None:
        changes["num_epochs"] = num_epochs
        config = replace(config, training=replace(config.training, num_epochs=num_epochs))
    data = open_data(config.data)
    model = new_model(config, data)
    solver = Solver.resume(
        path,
        model,
        data,
        evaluate=_task(config).epoch_scores(config, data),
        config=config.to_dict(),
        progress=progress,
        **changes,
    )
    solver.train()
    return Run(path, config, data, model, solver.interrupted)


def load_run(directory: str | os.PathLike[str], *, with_data: bool = True) -> Run:
    """Open a run directory: its best checkpoint, or the last where there was no validation.

    Parameters
    ----------
    directory : path
    with_data : bool
        Whether to open the data as well, which a model can do without.

    Raises
    ------
    FileNotFoundError
        If there is no checkpoint.
    """
    path = Path(directory)
    checkpoint = checkpoint_of(path)
    config = _config_of(checkpoint)
    return Run(path, config, open_data(config.data) if with_data else None, load_model(checkpoint))


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
    raise FileNotFoundError(f"{directory} holds no run: found neither best.h5 nor last.h5")


def _start_of(path: Path) -> Path:
    """The checkpoint of a warm start: that file, or the one of that run."""
    if path.is_file():
        return path
    try:
        return checkpoint_of(path)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"training.warm_start: {error}; train that model first") from None


def _config_of(checkpoint: Path) -> Recipe:
    tables = load_checkpoint(checkpoint).config
    if tables is None:
        raise ValueError(f"{checkpoint} holds no recipe, expected a run of rnnlab train")
    return recipe_from_dict(tables, str(checkpoint))


def open_data(table: Any) -> CaptionData | ParallelData:
    """The data that a recipe's table ``[data]`` names."""
    of_pairs = isinstance(table, translation.TABLES)
    return translation.open_data(table) if of_pairs else captioning.open_data(table)


def new_model(config: Recipe, data: Any) -> CaptioningRNN | Seq2Seq:
    """A model as the recipe describes it, its parameters drawn from the recipe's seed."""
    return _task(config).new_model(config, data)


def evaluate(
    run: Run,
    split: str | None = None,
    *,
    decoding: DecodingConfig | None = None,
    evaluation: EvaluationConfig | TranslationEvaluationConfig | None = None,
    **options: Any,
) -> Any:
    """Caption or translate a split and score that against its references.

    Parameters
    ----------
    run : Run
    split : str, optional
        The recipe's if left out.
    decoding : DecodingConfig, optional
    evaluation : EvaluationConfig or TranslationEvaluationConfig, optional
        Instead of the recipe's.
    **options
        Of the task: see :func:`rnnlab.tasks.captioning.evaluate` and
        :func:`rnnlab.tasks.translation.evaluate`.

    Returns
    -------
    rnnlab.tasks.captioning.Evaluation or rnnlab.tasks.translation.Evaluation

    Raises
    ------
    ImportError
        If the extra that computes the scores is not installed.
    KeyError
        If the data have no such split.
    """
    config: Any = run.config
    evaluation = evaluation or config.evaluation
    return _task(config).evaluate(
        config.training,
        run.data,
        run.model,
        split or evaluation.split,
        decoding=decoding or config.decoding,
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
    """
    return measure_discrepancy(
        run.config, run.data, run.model, split or run.config.evaluation.split, first=first
    )


def _task(config: Recipe) -> Any:
    """The module of what the recipe is about."""
    return translation if isinstance(config, TranslationConfig) else captioning
