"""Score a run on a split, and compare its states under teacher forcing and in free-running mode."""

from __future__ import annotations

from typing import Any

from rnnlab.errors import InputError, InputTypeError
from rnnlab.recipes.tables import DecodingTable, EvaluationTable
from rnnlab.runs.loading import Run
from rnnlab.tasks import task_of
from rnnlab.tasks.discrepancy import Discrepancy
from rnnlab.tasks.discrepancy import discrepancy as measure_discrepancy
from rnnlab.training.distributed import communicator_of


def evaluate(
    run: Run,
    split: str | None = None,
    *,
    decoding: DecodingTable | None = None,
    evaluation: EvaluationTable | None = None,
    communicator: Any = None,
    **options: Any,
) -> Any:
    """Caption, translate or classify a split, and score the results against its references or labels.

    Parameters
    ----------
    run : Run
    split : str, optional
        The recipe's ``evaluation.split`` by default.
    decoding : DecodingTable, optional
        Instead of the recipe's, for models that generate sentences.
    evaluation : EvaluationTable, optional
        Instead of the recipe's: the table of the run's task.
    communicator : mpi4py.MPI.Comm, optional
        The processes that share the work, as in :class:`~rnnlab.training.Solver`. All of them return the
        same.
    **options
        Options of the task's method ``evaluate``, such as ``lexicon`` for translations.

    Returns
    -------
    Evaluation
        The class is that of :mod:`rnnlab.tasks.captioning`, :mod:`rnnlab.tasks.translation` or
        :mod:`rnnlab.tasks.classification`.

    Raises
    ------
    ImportError
        If the extra that computes the scores is not installed.
    KeyError
        If the data have no such split.
    TypeError
        If an argument has another type.
    ValueError
        If the run has no data, or ``decoding`` is given for a classifier.
    """
    recipe: Any = _with_data("evaluate", run).recipe
    task = task_of(recipe)
    changed = "run.recipe.decoding.changed(...)", "dataclasses.replace(run.recipe.evaluation, ...)"
    for name, given, kind, example in (
        ("decoding", decoding, DecodingTable, changed[0]),
        ("evaluation", evaluation, type(recipe.evaluation), changed[1]),
    ):
        if given is not None and not isinstance(given, kind):
            raise InputTypeError(
                f"evaluate: {name} is {given!r}, expected a {kind.__name__}, such as {example}"
            )
    evaluation = evaluation or recipe.evaluation
    options["communicator"] = communicator_of(communicator)
    if task.scores_sentences:
        options["decoding"] = decoding or recipe.decoding
    elif decoding is not None:
        raise InputError(
            f"evaluate: decoding is given, but the scores of a model that {task.verb} need no search"
        )
    split = split or evaluation.split
    return task.evaluate(recipe, run.data, run.model, split, evaluation=evaluation, **options)


def discrepancy(
    run: Run, split: str | None = None, *, first: int | None = None, communicator: Any = None
) -> Discrepancy:
    """Distances between the model's last states under teacher forcing and in free-running mode.

    Parameters
    ----------
    run : Run
    split : str, optional
        The recipe's by default.
    first : int, optional
        Only the first images or sentences.
    communicator : mpi4py.MPI.Comm, optional
        As in :func:`evaluate`.

    Returns
    -------
    rnnlab.tasks.discrepancy.Discrepancy

    Raises
    ------
    KeyError
        If the data have no such split.
    TypeError
        If ``run`` is not a run.
    ValueError
        If the run has no data, the model does not generate sentences, the runs form an ensemble, the split is
        empty, or ``first`` is less than 1.
    """
    recipe: Any = _with_data("discrepancy", run).recipe
    task = task_of(recipe)
    if not task.scores_sentences:
        raise InputError(
            f"{run.directory} has a model that {task.verb}, expected one that captions or translates"
        )
    if run.members:
        raise InputError(f"discrepancy: run is an ensemble of {len(run.members)} runs, expected one run")
    split, ranks = split or recipe.evaluation.split, communicator_of(communicator)
    return measure_discrepancy(recipe, run.data, run.model, split, first=first, communicator=ranks)


def _with_data(function: str, run: Run) -> Run:
    if not isinstance(run, Run):
        raise InputTypeError(f"{function}: run is {run!r}, expected a Run, such as load_run returns")
    if run.data is None:
        raise InputError(
            f"{function}: {run.directory} was opened without its data: load_run(..., with_data=True)"
        )
    return run
