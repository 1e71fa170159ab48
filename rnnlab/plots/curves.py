"""Curves of losses, rewards and metrics over a training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rnnlab.errors import InputTypeError
from rnnlab.plots.figures import BLUE, GREY, INK, ORANGE, add_legend, label_axes, new_figure
from rnnlab.types import Array

_LABELS = {
    "val_perplexity": "validation perplexity",
    "val_accuracy": "validation accuracy",
}
_BINS = 1000  # bins of a long line, more than a picture has columns of pixels


def loss_curve(
    losses: Sequence[float],
    history: Sequence[Mapping[str, float]] = (),
    *,
    metric: str = "val_loss",
    best: int | None = None,
    title: str | None = None,
) -> Figure:
    """The training loss of every iteration and the validation loss of every epoch, on one pair of axes.

    For self-critical training, the mean rewards of each epoch are drawn instead of the loss.

    Parameters
    ----------
    losses : sequence of float
        The training loss of each iteration, drawn as it is (light) and smoothed.
    history : sequence of mappings, optional
        One row for each finished epoch, as :attr:`rnnlab.training.Solver.history` has them. With it both
        losses are in nats per token: the loss of an iteration, which may be a mean over examples, is divided
        by the tokens that an example has on average in that epoch. Without it the x axis counts iterations.
    metric : str
        The name of the monitored metric. One other than "val_loss" is drawn in a second panel.
    best : int, optional
        The epoch to mark.
    title : str, optional
    """
    if any(isinstance(each, Mapping) for each in losses):
        raise InputTypeError(
            "loss_curve: losses holds rows of a history, expected losses: solver.loss_history"
        )
    values = {int(row["epoch"]): row[metric] for row in history if metric in row}
    is_rewarded = bool(history) and all("reward" in row for row in history)
    panels = 2 if values and (metric != "val_loss" or is_rewarded) else 1
    figure = new_figure(5.2 * panels, 3.6)
    axes = figure.subplots(1, panels, squeeze=False)[0]
    if is_rewarded:
        _draw_rewards(axes[0], history)
    elif history:
        _draw_per_token(axes[0], np.asarray(losses, dtype=float), history)
    else:
        _draw_losses(axes[0], np.arange(1, len(losses) + 1), np.asarray(losses, dtype=float))
        label_axes(axes[0], "iteration", "training loss (nats)")
    if panels == 2:
        _draw_metric(axes[1], values)
        label_axes(axes[1], "epoch", _LABELS.get(metric, metric))
        axes[1].yaxis.label.set_parse_math(False)  # dollar signs in a name do not start mathematics
    if best in values:
        _mark(axes[-1], best, values[best])
    if title:
        figure.suptitle(title, color=INK, fontsize=11)
    return figure


def losses_per_token(losses: Array, history: Sequence[Mapping[str, float]]) -> tuple[Array, Array]:
    """The loss of each iteration in the unit of the validation loss, and its position on an axis of epochs.

    The loss of an iteration may be a mean over examples. It is divided by the number of tokens that an
    example has on average in that epoch.

    Parameters
    ----------
    losses : (iterations,)
    history : sequence of mappings
        One row for each finished epoch, at least one.

    Returns
    -------
    places, losses : (iterations,)
        The first epoch extends from 0 to 1. For the unfinished epoch, the length and the number of tokens of
        the last finished one are assumed.
    """
    ends = [0, *(int(row["iteration"]) for row in history)]
    scales = np.array([row["train_loss_per_token"] / (row["train_loss"] or 1.0) for row in history])
    epochs = np.array([int(row["epoch"]) for row in history])
    iterations = np.arange(1, len(losses) + 1)
    index = np.minimum(np.searchsorted(ends[1:], iterations), len(history) - 1)
    lengths = np.diff(ends)
    places = epochs[index] - 1 + (iterations - np.array(ends)[index]) / lengths[index]
    return places, losses * scales[index]


def _draw_per_token(axes: Axes, losses: Array, history: Sequence[Mapping[str, float]]) -> None:
    """Training and validation losses in nats per token over epochs."""
    _draw_losses(axes, *losses_per_token(losses, history), label="training")
    validation = {int(row["epoch"]): row["val_loss"] for row in history if "val_loss" in row}
    if validation:
        _draw_metric(axes, validation, label="validation")
        add_legend(axes, "upper right")
    label_axes(axes, "epoch", "loss (nats per token)")


def _draw_rewards(axes: Axes, history: Sequence[Mapping[str, float]]) -> None:
    """The mean rewards of samples and of their baseline, if that is different."""
    for column, label, color in (("reward", "samples", BLUE), ("baseline_reward", "baseline", GREY)):
        if not all(column in row for row in history):
            continue
        rewards = {int(row["epoch"]): row[column] for row in history}
        if column == "reward" or not np.allclose(list(rewards.values()), [row["reward"] for row in history]):
            axes.plot(
                list(rewards), list(rewards.values()), color=color, linewidth=1.8, marker=".", label=label
            )
    add_legend(axes, "lower right")
    label_axes(axes, "epoch", "reward of sampled sentences")


def _draw_losses(axes: Axes, places: Array, losses: Array, label: str | None = None) -> None:
    few = losses.size <= 30
    if few:
        axes.plot(places, losses, color=BLUE, linewidth=0.8, marker=".", label=label)
    else:
        some = np.linspace(0, losses.size - 1, min(losses.size, 2 * _BINS)).round().astype(int)
        axes.plot(*_extremes(places, losses), color=BLUE, linewidth=0.8, alpha=0.3)
        axes.plot(places[some], _smooth(losses, some), color=BLUE, linewidth=1.8, label=label)


def _extremes(places: Array, values: Array) -> tuple[Array, Array]:
    """The minimum and the maximum of every few neighbours, which draw the same line with fewer points."""
    if values.size <= 2 * _BINS:
        return places, values
    first = np.arange(_BINS) * values.size // _BINS
    least, largest = np.minimum.reduceat(values, first), np.maximum.reduceat(values, first)
    return np.repeat(places[first], 2), np.stack([least, largest], axis=1).ravel()


def _draw_metric(axes: Axes, values: Mapping[int, float], label: str | None = None) -> None:
    axes.plot(
        list(values),
        list(values.values()),
        color=ORANGE,
        linewidth=1.8,
        marker="o",
        markersize=4,
        label=label,
    )


def _mark(axes: Axes, epoch: int, value: float) -> None:
    """Mark the best epoch."""
    axes.plot([epoch], [value], "o", color=ORANGE, markersize=10, fillstyle="none")
    axes.annotate(
        f"best {value:.4g}",
        (epoch, value),
        xytext=(0, 11),
        textcoords="offset points",
        ha="center",
        color=INK,
        fontsize=9,
    )
    axes.margins(y=0.15)


def _smooth(values: Array, indices: Array) -> Array:
    """Moving averages at indices, over up to 1/40 of all values on both sides, fewer towards the ends."""
    to_end = np.minimum(indices, values.size - 1 - indices)
    reach = np.minimum(to_end, max(2, values.size // 40))
    # differences of cumulative sums would lose all values after a very large one
    return np.array([values[k - r : k + r + 1].mean() for k, r in zip(indices, reach, strict=True)])
