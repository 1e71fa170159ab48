"""Scores as a table, a confusion matrix, and JSON."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from rnnlab.metrics import LengthScore
from rnnlab.reporting.json_file import write_json
from rnnlab.runs import Run
from rnnlab.tasks import classification
from rnnlab.tasks.task import Evaluation


def scores_table(evaluation: Evaluation, run: Run | None = None) -> str:
    """The scores of a split, one per line, with notes; for classes also the confusion matrix.

    If ``run`` is an ensemble, a note says so.
    """
    lines = [f"{name:<12}{value:>10}" for name, value in evaluation.rows()]
    lines += [f"note: {note}" for note in evaluation.notes()]
    if run is not None and run.members:
        averaged = run.model.average.replace("_", "-")
        lines.append(f"note: an ensemble of {len(run.members)} runs, the mean of their {averaged}")
    if isinstance(evaluation, classification.ClassificationEvaluation):
        lines += ["", confusion_text(evaluation.confusion)]
    return "\n".join(lines)


def confusion_text(confusion: np.ndarray) -> str:
    """One line for each true class: the counts of the predicted classes, and the recall."""
    width = max(6, len(f"{confusion.max():,}") + 1)
    columns = "".join(f"{predicted:>{width}}" for predicted in range(len(confusion)))
    lines = [f"{'true':<6}{columns}{'recall':>9}  (columns: predicted)"]
    for true, counts in enumerate(confusion):
        columns = "".join(f"{f'{count:,}' if count else '.':>{width}}" for count in counts)
        recall = f"{counts[true] / counts.sum():.1%}" if counts.any() else "-"
        lines.append(f"{true:<6}{columns}{recall:>9}")
    return "\n".join(lines)


def lengths_text(scores: Sequence[LengthScore]) -> str:
    """One line for each range of source lengths: the number of sentences, and BLEU."""
    lines = [f"{'source words':<14}{'sentences':>10}{'BLEU':>8}"]
    for each in scores:
        bleu = "-" if each.bleu is None else f"{each.bleu:.2f}"
        lines.append(f"{each.range():<14}{each.sentences:>10,}{bleu:>8}")
    return "\n".join(lines)


def write_scores(
    path: str | os.PathLike[str],
    evaluation: Evaluation,
    run: Run,
    split: str,
    by_length: Sequence[LengthScore] = (),
) -> None:
    """Write the scores and all captions, translations or classes; see :func:`write_json`."""
    found: dict[str, Any] = {"by_length": [each._asdict() for each in by_length]} if by_length else {}
    write_json(path, run, {"split": split, **evaluation.report(), **found})
