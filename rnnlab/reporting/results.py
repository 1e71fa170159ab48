"""The scores of runs for reports, or the reasons why they cannot be computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rnnlab import runs
from rnnlab.metrics import JavaError
from rnnlab.options import TokenizerName
from rnnlab.recipes.recipe import CaptioningRecipe
from rnnlab.recipes.tables import DecodingTable
from rnnlab.reporting.record import UNKNOWN, Record
from rnnlab.runs import Run
from rnnlab.tasks import task_of

_INPUTS = ("features", "global_features", "lazy", "standardise", "images", "captions_per_image")
# Errors that make a report omit something and give the message as the reason: missing files, extras or Java,
# and damaged files.
_LEFT_OUT = (OSError, ValueError, ImportError)


@dataclass(frozen=True)
class Results:
    """A run with its data, and its scores on a split.

    Attributes
    ----------
    run : Run or None
        None if the model or the data cannot be opened, or the data lack the split.
    split : str
        Empty if ``run`` is None.
    evaluation : Evaluation or None
        None if nothing could be scored.
    notes : list of str
        Omissions with their reasons, and the notes of the evaluation.
    lacks_split : bool
        Whether the data were opened and lack the split.
    """

    run: Run | None
    split: str
    evaluation: Any | None
    notes: list[str] = field(default_factory=list)
    lacks_split: bool = False


def results_of(
    record: Record,
    split: str | None = None,
    *,
    metrics: Sequence[str] | None = None,
    first: int | None = None,
    tokenizer: TokenizerName | None = None,
    device: str = "cpu",
) -> Results:
    """Open a run and score it.

    Parameters
    ----------
    record : Record
    split : str, optional
        By default ``val``, which is for the choice between runs, or the recipe's split if the data have no
        ``val``.
    metrics : sequence of str, optional
        The metrics instead of those of the recipe. Metrics of other tasks are left out.
    first : int, optional
        Score only the first images or sentences.
    tokenizer : "simple" or "ptb", optional
        The tokenizer of the scores of captions instead of that of the recipe.
    device : str

    Returns
    -------
    Results
        If the recipe's tokenizer needs Java and Java is missing, captions are scored with the simple one.
    """
    try:
        run = runs.load_run(record.directory, device=device)
    except _LEFT_OUT as error:
        return Results(None, "", None, [f"neither scores nor examples: {error}"])
    recipe: Any = run.recipe
    split = split or ("val" if "val" in run.data.splits else recipe.evaluation.split)
    if split not in run.data.splits:
        splits = ", ".join(run.data.splits)
        note = f"neither scores nor examples: no split {split!r}, only {splits}"
        return Results(None, "", None, [note], lacks_split=True)
    evaluation, options = recipe.evaluation, {}
    if first is not None:
        evaluation = evaluation.of_first(first)
    if tokenizer is not None and isinstance(recipe, CaptioningRecipe):
        evaluation = replace(evaluation, tokenizer=tokenizer)
    wanted = [metric for metric in metrics or () if metric in task_of(recipe).metrics]
    if wanted:
        evaluation = replace(evaluation, metrics=wanted)
    elif metrics and task_of(recipe).metrics:
        return Results(run, split, None, [f"no scores: {', '.join(metrics)} cannot score {record.task}"])
    if task_of(recipe).scores_sentences:
        options["decoding"] = best_only(recipe.decoding)
    notes = []
    try:
        try:
            found = runs.evaluate(run, split, evaluation=evaluation, **options)
        except JavaError as error:
            if not isinstance(recipe, CaptioningRecipe):
                raise
            notes.append(f"the simple tokenizer instead of the recipe's: {error}")
            evaluation = replace(evaluation, tokenizer="simple")
            found = runs.evaluate(run, split, evaluation=evaluation, **options)
    except _LEFT_OUT as error:
        return Results(run, split, None, [f"no scores: {error}"])
    return Results(run, split, found, [*notes, *found.notes()])


def best_only(decoding: DecodingTable) -> DecodingTable:
    """The search for only the best sentence of each source."""
    return replace(decoding, n_best=1)


def score_rows(results: Sequence[Results]) -> list[tuple[str, list[str]]]:
    """The scores side by side: a name, and a value for each run, empty if the run has none."""
    tables = [dict(each.evaluation.rows()) if each.evaluation else {} for each in results]
    names = dict.fromkeys(name for table in tables for name in table)
    return [(name, [table.get(name, "") for table in tables]) for name in names]


def notes_of(names: Sequence[str], results: Sequence[Results]) -> list[str]:
    """The notes on the scores of all runs. A note that not all runs have begins with the name of its run."""
    first = results[0].notes if results else []
    common = [note for note in first if all(note in each.notes for each in results)]
    own = [
        f"{name}: {note}"
        for name, each in zip(names, results, strict=False)
        for note in each.notes
        if note not in common
    ]
    return list(dict.fromkeys([*common, *own]))


def splits_of(results: Sequence[Results]) -> str:
    """The splits that are scored, as a text."""
    return " and ".join(dict.fromkeys(each.split for each in results if each.split))


def notes_on_runs(records: Sequence[Record], results: Sequence[Results] = ()) -> list[str]:
    """The reasons why runs are not comparable, and the missing or damaged files of each run."""
    return comparability(records, results) + [
        f"{record.name}: {note}" for record in records for note in dict.fromkeys(record.notes)
    ]


def _scored_data(record: Record) -> dict[str, Any]:
    """The keys of [data] that determine the scored examples; the others determine the model's inputs."""
    table = (record.recipe or {}).get("data")
    return (
        {key: value for key, value in table.items() if key not in _INPUTS} if isinstance(table, dict) else {}
    )


def _different_sizes(sizes: Sequence[tuple[str, str]]) -> str:
    """A note on runs that are scored on different numbers of examples, from their units and numbers."""
    units = list(dict.fromkeys(unit for unit, _ in sizes))
    if len(units) == 1:
        scored = f"{' and '.join(count for _, count in sizes)} {units[0]}"
    else:
        scored = " and ".join(f"{count} {unit}" for unit, count in sizes)
    advice = "" if "lines" in units else f"; give --max-{units[0]}"  # a running text is scored whole
    return f"the runs are scored on {scored}, so their scores are not comparable{advice}"


def comparability(records: Sequence[Record], results: Sequence[Results] = ()) -> list[str]:
    """Remarks for a comparison of runs: different tasks, data or splits. None for a single run."""
    notes = []
    tasks = list(dict.fromkeys(record.task for record in records if record.task != UNKNOWN))
    if len(tasks) > 1:
        notes.append(
            f"the runs are of different tasks ({', '.join(tasks)}): losses and scores are not comparable"
        )
    elif len({repr(_scored_data(record)) for record in records}) > 1:
        notes.append("the tables [data] differ: losses and scores are comparable only on the same data")
    splits = list(dict.fromkeys(each.split for each in results if each.split))
    if len(splits) > 1:
        notes.append(f"the scores are of different splits: {', '.join(splits)}")
    sizes = list(dict.fromkeys(each.evaluation.rows()[0] for each in results if each.evaluation))
    if len(tasks) <= 1 and len(splits) == 1 < len(sizes):
        notes.append(_different_sizes(sizes))
    tokenizers = {getattr(each.evaluation, "tokenizer", None) for each in results}
    if len(tokenizers - {None}) > 1:
        notes.append("the scores are by different tokenizers, so they are not comparable")
    return notes
