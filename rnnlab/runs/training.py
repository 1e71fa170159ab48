"""Train the model of a recipe, in one stage or several, and resume a run."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from rnnlab.errors import InputError, InputTypeError
from rnnlab.ops import ops_on
from rnnlab.options import Count, check_option
from rnnlab.recipes.overrides import key_of
from rnnlab.recipes.recipe import RECIPES, Recipe
from rnnlab.recipes.resuming import changes_within_a_run, check_changeable
from rnnlab.recipes.stages import Stage, check_stages
from rnnlab.runs.loading import Run, new_model, open_data, open_data_of_run, saved_recipe
from rnnlab.tasks import task_of
from rnnlab.training import Callback, Solver, warm_start
from rnnlab.training.callbacks import JSONLines, TensorBoard
from rnnlab.training.callbacks.callback import check_callbacks
from rnnlab.training.checkpoint import Checkpoint
from rnnlab.training.distributed import communicator_of, device_of_rank, rank_0_prints
from rnnlab.training.monitor import constant_monitor
from rnnlab.training.previous import load_or_previous, load_or_suggest
from rnnlab.training.run_directory import check_last, checkpoint_of, holds_run, stage_directories
from rnnlab.training.step_graphs import obstacle_of_options, obstacle_of_place


def train(
    recipe: Recipe,
    directory: str | os.PathLike[str],
    *,
    progress: bool = True,
    device: str = "cpu",
    graphs: bool | None = None,
    callbacks: Sequence[Callback] = (),
    communicator: Any = None,
) -> Run:
    """Train the model that a recipe describes, in a new run directory.

    Stages are trained one after another: the last in the directory itself, the others in its subdirectories
    ``stage1``, ``stage2`` and so on.

    Parameters
    ----------
    recipe : CaptioningRecipe, TranslationRecipe or ClassificationRecipe
    directory : path
        Must not hold a run.
    progress : bool
        Show a progress bar instead of lines.
    device : str
        "cpu", "gpu" or "gpu:N". It is not saved: a run resumes on any device.
    graphs : bool, optional
        Whether to launch each step as a CUDA graph; on a GPU wherever possible if left out: see
        :class:`~rnnlab.training.Solver`.
    callbacks : sequence of Callback
        Callbacks of all stages, in addition to those of the recipe. They are not saved. With several
        stages, a JSONLines or TensorBoard has no path: each stage has its log in its own directory.
    communicator : mpi4py.MPI.Comm, optional
        The processes that train together, as in :class:`~rnnlab.training.Solver`. All of them read the data
        and the directory; only rank 0 writes.

    Returns
    -------
    Run
        With the best epoch's parameters, if the recipe's ``restore_best`` is on.

    Raises
    ------
    FileExistsError
        If the directory holds a run.
    ImportError
        If the extra of the recipe's scores after every epoch or of its callbacks is not installed, or there
        is no such device.
    JavaError
        If a score after every epoch needs Java and it is missing.
    FileNotFoundError, CheckpointError
        If the recipe's ``warm_start`` does not exist, or its model does not fit; or if the file of the word
        vectors does not exist.
    KeyError
        If the data lack ``evaluation.split``.
    ValueError, TypeError
        If the options of the training contradict each other or are out of range, the model does not fit the
        data or the recipe's word vectors, or a stage does not fit the model. All stages are checked
        before the first is trained.
    """
    if not isinstance(recipe, RECIPES):
        raise InputTypeError(f"train: recipe is {recipe!r}, expected a recipe, as load_recipe returns")
    recipe.check_training()
    path, stages = Path(directory), recipe.stages()
    if holds_run(path):
        raise FileExistsError(f"{path} already holds a run: resume it, or choose another directory")
    start = stages[0].training.warm_start
    checkpoint = None if start is None else _start_of(Path(start))
    arguments = _solver_arguments(stages, progress, device, graphs, communicator)
    _check_callbacks(callbacks, recipe)
    data = open_data(recipe.data)
    task_of(recipe).check_scorable(recipe, data)
    if recipe.stage:
        check_stages(stages, new_model(recipe, data), task_of(recipe).training_data(recipe, data))
    run = Run(path, recipe, data, None)
    with rank_0_prints(arguments["communicator"]):
        return _train_stages(run, stages, arguments, callbacks, start=checkpoint)


def resume(
    directory: str | os.PathLike[str],
    *,
    progress: bool = True,
    num_epochs: int | None = None,
    device: str = "cpu",
    graphs: bool | None = None,
    callbacks: Sequence[Callback] = (),
    overrides: Sequence[str] = (),
    communicator: Any = None,
) -> Run:
    """Resume a run where it stopped, and train its remaining stages.

    Without changes, the result is bitwise equal to that of an uninterrupted run.

    Parameters
    ----------
    directory : path
        The directory of the run.
    progress : bool
        Show a progress bar instead of lines.
    num_epochs : int, optional
        The total number of epochs; see :func:`with_epochs`.
    device : str
        "cpu", "gpu" or "gpu:N"; need not be the previous one.
    graphs : bool, optional
        As in :func:`train`; if left out, the value that the run has.
    callbacks : sequence of Callback
        As in :func:`train`.
    overrides : sequence of str
        Changes of the recipe as in :func:`~rnnlab.recipes.load_recipe`, such as
        ``"training.optim_config.learning_rate=1e-4"``. They are saved with the run.
    communicator : mpi4py.MPI.Comm, optional
        As in :func:`train`; the number of processes need not be the previous one.

    Returns
    -------
    Run

    Raises
    ------
    FileNotFoundError
        If there is no run.
    ValueError
        If the directory is that of a stage, the run already has more epochs, or an override changes a key
        that is fixed within a run.
    CheckpointError
        If the data are not those that the run began with.
    """
    path = Path(directory)
    check_changeable(overrides)
    under_way = _under_way(path)
    checkpoint_of(under_way)  # if there is no run, it raises an error that describes the directory
    last = under_way / "last.h5"
    check_last(last)
    checkpoint = load_or_previous(last)
    recipe = saved_recipe(last, checkpoint, overrides)
    if num_epochs is not None:
        recipe = with_epochs(recipe, num_epochs, overrides)
    stages = recipe.stages()
    directories = [stage.directory(path) for stage in stages]
    _check_is_whole(path, directories)
    if under_way not in directories:
        raise InputError(f"{under_way} is a separate run, not a stage of one in {path}: resume {under_way}")
    left = stages[directories.index(under_way) :]
    resumed: dict[str, Any] = {"config": recipe.to_dict()}
    if not left[0].is_last and _has_ended(left[0], checkpoint):
        changes_within_a_run(overrides, recipe, left[1])  # for its errors: the new stage has the changes
    else:
        resumed |= changes_within_a_run(overrides, recipe, left[0])
        if num_epochs is not None and left[0].is_last:
            resumed["num_epochs"] = num_epochs
    if graphs is None:
        graphs = checkpoint.solver.get("options", {}).get("graphs")
    arguments = _solver_arguments(left, progress, device, graphs, communicator)
    _check_callbacks(callbacks, recipe)
    run = Run(path, recipe, open_data_of_run(recipe), None)
    with rank_0_prints(arguments["communicator"]):
        return _train_stages(run, left, arguments, callbacks, resumed=resumed)


def _solver_arguments(
    stages: Sequence[Stage], progress: bool, device: str, graphs: bool | None, communicator: Any
) -> dict[str, Any]:
    """The arguments of every solver that are not in recipes, checked before the data are read.

    Raises
    ------
    ImportError, ValueError
        If there is no such device, or graphs are asked for and the device, several ranks or the options of a
        stage rule them out.
    """
    ranks = communicator_of(communicator)
    device = device_of_rank(ranks, device)
    ops_on(device)
    obstacle = obstacle_of_place(device, ranks.size)
    if graphs and obstacle is not None:
        raise obstacle
    for stage in stages if graphs else ():
        if (obstacle := obstacle_of_options(stage.training)) is not None:
            raise InputError(f"stage.{stage.number}: {obstacle}" if stage.count > 1 else str(obstacle))
    return {"progress": progress, "device": device, "graphs": graphs, "communicator": ranks}


def _check_callbacks(callbacks: Sequence[Callback], recipe: Recipe) -> None:
    """Check the callbacks given and those of a recipe, before the data are read.

    Raises
    ------
    ImportError
        If an extra of the recipe's callbacks is not installed.
    ValueError
        If a log of several stages has a path, which can hold that of one stage only.
    """
    count = len(recipe.stages())
    for callback in check_callbacks(callbacks):
        if count > 1 and isinstance(callback, JSONLines | TensorBoard) and callback.path is not None:
            raise InputError(
                f"callbacks has a {type(callback).__name__} with path {str(callback.path)!r}, expected none "
                f"with {count} stages: without a path, each has its log in its own directory"
            )
    recipe.callbacks.callbacks()


def _train_stages(
    run: Run,
    stages: Sequence[Stage],
    arguments: Mapping[str, Any],
    callbacks: Sequence[Callback],
    *,
    start: Path | None = None,
    resumed: Mapping[str, Any] = {},
) -> Run:
    """Train stages, the first from its own last checkpoint, from the checkpoint ``start``, or from scratch.

    ``arguments`` are those of every solver, ``resumed`` further ones of the solver of a stage that resumes.
    """
    recipe, data, model = run.recipe, run.data, None
    common: dict[str, Any] = {
        "evaluate": task_of(recipe).epoch_scores(recipe, data, arguments["communicator"]),
        **arguments,
    }
    for stage in stages:
        directory, model = stage.directory(run.directory), new_model(recipe, data)
        stage.prepare(model)
        if recipe.stage:
            print(stage.describe(model))
        trained, objective = task_of(recipe).training_data(recipe, data), None
        if stage.self_critical is not None:
            trained, objective = task_of(recipe).self_critical(data, stage.self_critical)
        common["objective"] = objective
        common["callbacks"] = [*callbacks, *recipe.callbacks.callbacks()]  # the logs come last
        if (directory / "last.h5").exists():
            solver = Solver.resume(directory, model, trained, **common, **resumed)
            _tell_changes(solver, stage, resumed)
        else:
            if start is None:
                for coverage in task_of(recipe).load_word_vectors(recipe, model):
                    print(coverage)
            new = {"run_dir": directory, "config": recipe.to_dict(), **stage.options()}
            solver = Solver(model, trained, **new, **common)
            if start is not None:
                print(warm_start(start, model, trained))
        if stage.is_last and solver.epoch >= solver.options.num_epochs:
            print(solver.why_finished)
        solver.train()
        chooses = solver.options.restore_best and not solver.interrupted
        if chooses and (note := constant_monitor(solver.monitor, solver.history)):
            print(note)
        start = checkpoint_of(directory)
        if solver.interrupted or (solver.stop_requested and not stage.is_last):
            run = replace(run, model=model, inputs=_inputs(recipe, start))
            return replace(run, interrupted=True, stop_reason=solver.stop_reason, signal=solver.signal)
    return replace(run, model=model, inputs=None if start is None else _inputs(recipe, start))


def _tell_changes(solver: Solver, stage: Stage, changes: Mapping[str, Any]) -> None:
    """Print what a stage that resumes does differently from now on.

    Raises
    ------
    ValueError
        If it has ended, so that the changes would have no effect.
    """
    if stage.is_last and solver.finished and changes.keys() - {"config", "num_epochs", "restore_best"}:
        raise InputError(f"{solver.why_finished}; nothing would train with the changes")
    if changes.get("learning_rate") is not None:
        rate = changes["learning_rate"]
        print(f"From iteration {solver.iteration + 1} on, the base learning rate is {rate:g}.")
    if changes.get("matmul") is not None:
        print(f"From iteration {solver.iteration + 1} on, matmul is {solver.options.matmul}.")


def _has_ended(stage: Stage, checkpoint: Checkpoint) -> bool:
    """Whether a stage, of which this is the last checkpoint, has ended, and has no more to train now.

    A stage that only the new options end resumes with them.
    """
    waited = checkpoint.solver.get("monitor", {}).get("waited", 0)

    def ends(num_epochs: int, patience: int | None) -> bool:
        return len(checkpoint.history) >= num_epochs or (patience is not None and waited >= patience)

    now = asdict(stage.training)
    before = now | checkpoint.solver.get("options", {})
    return all(ends(each["num_epochs"], each["patience"]) for each in (now, before))


def _inputs(recipe: Recipe, checkpoint: Path) -> Any:
    return task_of(recipe).inputs(recipe, load_or_suggest(checkpoint))


def with_epochs(recipe: Recipe, num_epochs: int, overrides: Sequence[str] = ()) -> Recipe:
    """The recipe with this total number of epochs; with stages, that of the last stage.

    Parameters
    ----------
    recipe : CaptioningRecipe, TranslationRecipe or ClassificationRecipe
    num_epochs : int
    overrides : sequence of str
        The overrides with which the recipe was read.

    Raises
    ------
    ValueError
        If an override sets the same number, or it is less than 1.
    """
    check_option("with_epochs", "num_epochs", Count, num_epochs)
    key = f"stage.{len(recipe.stage)}.num_epochs" if recipe.stage else "training.num_epochs"
    for override in overrides:
        if key_of(override) == key:
            raise InputError(f"num_epochs (--epochs) is {num_epochs}, and --set {override}: expected one")
    if recipe.stage:
        *stages, last = recipe.stage
        return replace(recipe, stage=[*stages, last.with_changes(num_epochs=num_epochs)])
    return replace(recipe, training=recipe.training.with_changes(num_epochs=num_epochs))


def _start_of(path: Path) -> Path:
    """The checkpoint of a warm start, which is a file or a run directory."""
    if path.is_file():
        return path
    try:
        return checkpoint_of(path)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"training.warm_start: {error}; train that model first") from None


def _under_way(path: Path) -> Path:
    """The directory of the stage that a run is training."""
    if (path / "last.h5").exists():
        return path
    begun = [stage for stage in stage_directories(path) if (stage / "last.h5").exists()]
    return begun[-1] if begun else path


def _check_is_whole(path: Path, stages: Sequence[Path]) -> None:
    """Raise ValueError if ``path`` is one stage of a run; ``stages`` are those that it would have itself."""
    if path.resolve().name in [stage.name for stage in stages[:-1]] and not stages[0].exists():
        raise InputError(f"{path} is one stage of {len(stages)} of a run: resume {path.resolve().parent}")
