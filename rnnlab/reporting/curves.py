"""The curves of runs: a chart of losses in a common unit, and one for each other column of the histories.

The loss that a run trains on is a mean over captions, sentences or tokens; the validation loss is a mean over
tokens. Both are drawn in nats per token: see :func:`rnnlab.plots.losses_per_token`. A classifier predicts one
label for each sequence, so its losses are in nats per sequence.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rnnlab.reporting.record import Record, StageRecord
from rnnlab.training.epoch_totals import FORMER

_DRAWN = 60  # points of a curve of many iterations

_PER_TOKEN = "nats per token"
_UNITS = {"SequenceClassifier": "nats per sequence"}  # other models: per token

_NAMES = {
    "val_perplexity": "Validation perplexity",
    "val_accuracy": "Validation accuracy",
    "gradient_norm": "Norm of the gradient before clipping",
    "learning_rate": "Learning rate",
    "tokens_per_second": "Speed of training (tokens per second)",
    "sampling": "Probability of scheduled sampling",
    "reward": "Reward of sampled captions",
    "baseline_reward": "Reward of the baseline",
    "sampled_length": "Words of sampled captions",
}
_OF_THE_LOSS_CHART = ("train_loss", "train_loss_per_token", "val_loss")
_NOT_DRAWN = ("epoch", "iteration", "seconds", *FORMER, *_OF_THE_LOSS_CHART)


@dataclass(frozen=True)
class Curve:
    """One line of a chart.

    Attributes
    ----------
    run : int
        The number of its run.
    label : str
        The meaning of the curve, without the run.
    values : dict of int to float
        The values by epoch.
    points : list of (float, float)
        The points to draw: the values, or a finer curve.
    best : int or None
        The epoch to mark.
    """

    run: int
    label: str
    values: dict[int, float]
    points: list[tuple[float, float]]
    best: int | None = None


@dataclass(frozen=True)
class Chart:
    """Curves over epochs on one pair of axes.

    Attributes
    ----------
    heading : str
        The measured quantity, with its unit.
    curves : list of Curve
    is_validation : bool
        Whether it was measured in validation rather than in training.
    notes : list of str
        Remarks for the reader.
    """

    heading: str
    curves: list[Curve]
    is_validation: bool = True
    notes: list[str] = field(default_factory=list)


def charts(records: Sequence[Record]) -> list[Chart]:
    """The charts of runs: losses first, then the other validation metrics, then measurements of the training.

    The epochs of a run with stages are numbered consecutively.
    """
    units = dict.fromkeys(_unit(record) for record in records)
    losses = [_loss_chart(records, unit) for unit in units]
    of_training: dict[str, None] = {}
    of_validation: dict[str, None] = {}
    for _, stage, _ in _stages(records):
        for row in stage.history:
            before, after = _columns(row)
            of_training.update(dict.fromkeys(before))
            of_validation.update(dict.fromkeys(after))
    found = [_chart(records, column, True) for column in of_validation if column not in of_training]
    found += [_chart(records, column, False) for column in of_training]
    return [chart for chart in (*losses, *found) if chart.curves]


def _columns(row: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The columns of a row of the history that are measured in training, and those of the validation."""
    names = list(row)
    last = max((names.index(name) for name in ("learning_rate", "sampling") if name in row), default=-1)
    drawn = [name for name in names if name not in _NOT_DRAWN]
    return [n for n in drawn if names.index(n) <= last], [n for n in drawn if names.index(n) > last]


def _stages(records: Sequence[Record]) -> Iterator[tuple[int, StageRecord, int]]:
    """Each stage with the number of its run, and the number of epochs before it."""
    for run, record in enumerate(records):
        before = 0
        for stage in record.stages:
            yield run, stage, before
            before += stage.epochs


def _unit(record: Record) -> str:
    return _UNITS.get(record.model, _PER_TOKEN)


def _loss_chart(records: Sequence[Record], unit: str) -> Chart:
    chart = Chart(f"Loss ({unit})", [])
    training: dict[int, Curve] = {}
    validation: dict[int, Curve] = {}
    for run, stage, before in _stages(records):
        if _unit(records[run]) != unit or not stage.history:
            continue
        if stage.objective is not None:
            chart.notes.append(
                f"{records[run].name}, epochs {before + 1} to {before + len(stage.history)}: trained for a "
                "reward, so its training loss is not a likelihood and is left out"
            )
        else:
            curve = training.setdefault(run, Curve(run, "training", {}, []))
            curve.values.update(_values(stage, "train_loss_per_token", before))
            curve.points.extend(_training_points(stage, before))
        _extend(validation, run, "validation", stage, "val_loss", before)
    for run in range(len(records)):
        chart.curves.extend(curves[run] for curves in (training, validation) if run in curves)
    chart.curves[:] = [curve for curve in chart.curves if curve.points]
    if training:
        chart.notes.append(_about_losses(unit))
    return chart


def _about_losses(unit: str) -> str:
    tokens = "words, or characters, and the ends of sentences or lines are tokens"
    counted = tokens if unit == _PER_TOKEN else "a sequence has one label"
    return (
        f"Both losses are in {unit} ({counted}). The training loss is measured while the parameters change, "
        "with dropout, and includes the terms that a recipe adds; the validation loss has none of this."
    )


def _chart(records: Sequence[Record], column: str, is_validation: bool) -> Chart:
    curves: dict[int, Curve] = {}
    for run, stage, before in _stages(records):
        _extend(curves, run, "", stage, column, before)
    heading = _NAMES.get(column, f"Validation {column}" if is_validation else column)
    return Chart(heading, [curve for curve in curves.values() if curve.points], is_validation)


def _extend(
    curves: dict[int, Curve], run: int, label: str, stage: StageRecord, column: str, before: int
) -> None:
    """Add the epochs of a stage to the curve of its run."""
    values = _values(stage, column, before)
    best = stage.best_epoch if column == stage.monitor else None
    former = curves.get(run, Curve(run, label, {}, []))
    curves[run] = Curve(
        run,
        label,
        former.values | values,
        [*former.points, *((float(epoch), value) for epoch, value in values.items())],
        former.best if best is None else before + best,
    )


def _values(stage: StageRecord, column: str, before: int) -> dict[int, float]:
    return {before + row["epoch"]: row[column] for row in stage.history if _finite(row.get(column))}


def _training_points(stage: StageRecord, before: int) -> list[tuple[float, float]]:
    """The training loss: means over consecutive iterations, or over epochs if only these are known."""
    rows, losses = stage.history, stage.losses
    known = all(_finite(row.get(key)) for row in rows for key in ("train_loss", "train_loss_per_token"))
    if not known or len(losses) < rows[-1]["iteration"] or not np.isfinite(losses).all():
        means = _values(stage, "train_loss_per_token", before)
        return [(epoch - 0.5, value) for epoch, value in means.items()]  # a mean over the epoch
    from rnnlab.plots import losses_per_token  # importing matplotlib takes half a second

    places, losses = losses_per_token(losses, rows)
    parts = np.array_split(np.arange(len(losses)), min(_DRAWN, len(losses)))
    return [(before + float(places[part].mean()), float(losses[part].mean())) for part in parts]


def _finite(value: Any) -> bool:
    """Whether a value of a history can be drawn."""
    return isinstance(value, int | float) and math.isfinite(value)
