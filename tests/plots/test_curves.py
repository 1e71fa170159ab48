from __future__ import annotations

import numpy as np
import pytest

from rnnlab import plots


def test_losses_raw_and_smoothed(losses):
    figure = plots.loss_curve(losses)
    (axes,) = figure.axes
    raw, smooth = axes.lines
    np.testing.assert_array_equal(raw.get_ydata(), losses)
    np.testing.assert_array_equal(raw.get_xdata(), np.arange(1, 401))
    assert raw.get_alpha() < 0.5
    assert np.abs(np.diff(smooth.get_ydata())).max() < 0.3 * np.abs(np.diff(losses)).max()
    assert smooth.get_ydata()[200] == pytest.approx(losses[190:211].mean())
    assert smooth.get_ydata()[0] == pytest.approx(losses[0])
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("iteration", "training loss (nats)")


@pytest.mark.parametrize("count", [0, 1, 2, 30])
def test_few_losses_are_not_smoothed(count):
    (axes,) = plots.loss_curve(list(range(count))).axes
    (line,) = axes.lines
    assert len(line.get_ydata()) == count


@pytest.mark.parametrize("rewards", [["reward"], ["reward", "baseline_reward"]])
def test_a_baseline_that_the_history_does_not_have(rewards):
    rows = [dict.fromkeys(rewards, 0.5), {"reward": 0.75, "baseline_reward": 1.0}]
    figure = plots.loss_curve([2.0, 1.0], [{"epoch": k + 1, **row} for k, row in enumerate(rows)])
    labels = [line.get_label() for axes in figure.axes for line in axes.get_lines()]
    assert ("baseline" in labels) == ("baseline_reward" in rewards)
    assert "samples" in labels


def test_iterations_are_whole_numbers():
    (axes,) = plots.loss_curve([2.0, 1.0]).axes
    assert (axes.get_xticks() % 1 == 0).all()


def test_a_long_line_has_fewer_points_and_the_same_extremes():
    losses = np.random.default_rng(0).standard_normal(100_003)
    losses[[0, 70_000, -1]] = -9.0, 12.0, 11.0
    (axes,) = plots.loss_curve(losses).axes
    raw, smooth = axes.lines
    assert len(raw.get_ydata()) == len(smooth.get_ydata()) == 2000
    assert (raw.get_ydata().min(), raw.get_ydata().max()) == (-9.0, 12.0)
    peak = raw.get_xdata()[raw.get_ydata().argmax()]
    assert abs(peak - 70_001) <= 101
    assert raw.get_ydata()[-1] == 11.0
    assert (smooth.get_xdata()[0], smooth.get_xdata()[-1]) == (1, 100_003)
    assert (np.diff(raw.get_xdata()) >= 0).all()


def test_training_and_validation_losses_share_axes_and_unit(losses, history):
    for row, loss in zip(history, (3.0, 2.5, 2.75), strict=True):
        row["val_loss"] = loss
    figure = plots.loss_curve(losses, history, metric="val_loss", best=2, title="run 1")
    (axes,) = figure.axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("epoch", "loss (nats per token)")
    raw, _, validation, _ = axes.lines
    np.testing.assert_allclose(raw.get_xdata(), np.arange(1, 401) / 100)  # the fourth epoch is under way
    np.testing.assert_allclose(raw.get_ydata()[:200], losses[:200] / 10)
    np.testing.assert_allclose(raw.get_ydata()[200:], losses[200:] / 8)
    assert list(validation.get_xdata()) == [1, 2, 3]
    assert list(validation.get_ydata()) == [3.0, 2.5, 2.75]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["training", "validation"]
    assert [text.get_text() for text in axes.texts] == ["best 2.5"]
    assert figure.get_suptitle() == "run 1"


def test_few_losses_have_a_legend_too(history):
    rows = [row | {"iteration": row["epoch"], "val_loss": 1.0} for row in history]
    (axes,) = plots.loss_curve([3.0, 2.0, 1.0], rows).axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["training", "validation"]


def test_other_metrics_have_a_panel(losses, history):
    history[0] |= {"CIDEr": 0.4, "val_loss": 2.0}
    first, second = plots.loss_curve(losses, history, metric="CIDEr", best=1).axes
    assert len(first.lines) == 3
    assert not first.texts
    assert (second.get_xlabel(), second.get_ylabel()) == ("epoch", "CIDEr")
    assert [text.get_text() for text in second.texts] == ["best 0.4"]
    _, second = plots.loss_curve(losses, history, metric="CIDEr", best=7).axes
    assert not second.texts


def test_dollar_signs_in_a_metric_are_drawn(losses, tmp_path):
    rows = [{"epoch": 1, "iteration": 1, "train_loss": 1.0, "train_loss_per_token": 1.0, "$x_{1$": 3.0}]
    plots.save(plots.loss_curve(losses, rows, metric="$x_{1$"), tmp_path / "loss.png")


@pytest.mark.one_in(2)
@pytest.mark.parametrize("metric", ["val_loss", "CIDEr"])
@pytest.mark.parametrize("baseline", [0.5, 0.3])
def test_rewards_are_drawn_instead_of_their_loss(history, metric, baseline, tmp_path):
    rows = [row | {"reward": 0.5, "baseline_reward": baseline, metric: 3.0} for row in history]
    figure = plots.loss_curve([-1.0] * 300, rows, metric=metric, best=2)
    rewards, scores = figure.axes
    assert [list(line.get_ydata()) for line in rewards.lines] == [[0.5] * 3, [0.3] * 3][
        : 1 + (baseline == 0.3)
    ]
    assert (rewards.get_xlabel(), rewards.get_ylabel()) == ("epoch", "reward of sampled sentences")
    assert list(scores.lines[0].get_ydata()) == [3.0] * 3
    assert [text.get_text() for text in scores.texts] == ["best 3"]
    plots.save(figure, tmp_path / "loss.png", dpi=30)


def test_without_validation_there_are_training_losses(losses, history):
    (axes,) = plots.loss_curve(losses, history).axes
    assert len(axes.lines) == 2
    assert axes.get_ylabel() == "loss (nats per token)"
    assert axes.get_legend() is None


def test_a_history_is_no_losses():
    with pytest.raises(TypeError, match=r"losses holds rows of a history, expected .*solver\.loss_history"):
        plots.loss_curve([{"epoch": 1, "train_loss": 2.0}])


def test_a_very_large_loss_does_not_hide_the_ones_after_it():
    losses = [1e20, *[2.0] * 999]
    smooth = plots.loss_curve(losses).axes[0].lines[1].get_ydata()
    assert smooth[100] == pytest.approx(2.0)
