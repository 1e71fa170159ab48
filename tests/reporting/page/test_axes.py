import re

import pytest

from rnnlab.reporting.curves import Chart, Curve
from rnnlab.reporting.page.axes import NUM_COLORS, plot_of


def chart(*curves, heading="Loss (nats per token)"):
    return Chart(heading, list(curves))


def curve(values, run=0, label="validation", points=None, best=None):
    drawn = [(float(epoch), value) for epoch, value in values.items()] if points is None else points
    return Curve(run, label, values, drawn, best)


def places(path):
    return [tuple(map(float, pair)) for pair in re.findall(r"[ML]([\d.]+) ([\d.]+)", path)]


def test_points_are_in_percent_of_the_axes():
    plot = plot_of(chart(curve({1: 4.0, 2: 2.0, 3: 0.0}, best=3)), ["run"])
    (line,) = plot.lines
    assert places(line.path) == [(0, 0), (50, 50), (100, 100)]
    assert line.dots == "M0 0h0 M50 50h0 M100 100h0"
    assert line.best == "M100 100h0"
    assert [(tick.place, tick.text) for tick in plot.x_ticks] == [(0, "1"), (50, "2"), (100, "3")]
    assert [(tick.place, tick.text) for tick in plot.y_ticks][::4] == [(100, "0"), (0, "4")]
    assert plot.rows == [(1, ["4"]), (2, ["2"]), (3, ["0"])]
    assert plot.summary == "Loss (nats per token) over epochs: validation from 4 to 0, best in epoch 3."


def test_training_begins_at_epoch_0_and_has_its_own_color():
    training = curve({1: 3.0}, label="training", points=[(0.1, 3.5), (0.9, 2.5)])
    plot = plot_of(chart(training, curve({1: 2.0})), ["run"])
    assert [(line.name, line.color, line.is_training) for line in plot.lines] == [
        ("training", 1, True),
        ("validation", 0, False),
    ]
    assert plot.lines[0].dots == ""
    assert plot.x_ticks[0].text == "0"
    assert plot.x_ticks[-1].text == "1"


def test_the_first_losses_are_cut_off_where_they_would_squeeze_the_rest():
    training = curve({1: 3.0}, label="training", points=[(0.1, 90.0), (0.4, 2.0), (0.8, 50.0)])
    plot = plot_of(chart(training, curve({1: 2.0})), ["run"])
    assert len(places(plot.lines[0].path)) == 2
    assert all(0 <= y <= 100 for _, y in places(plot.lines[0].path))
    assert plot.notes == ["The first losses of training are above the axis."]


def test_a_curve_of_one_epoch_and_one_value():
    plot = plot_of(chart(curve({1: 0.0})), ["run"])
    (place,) = places(plot.lines[0].path)
    assert place[0] == 50
    assert [tick.text for tick in plot.x_ticks] == ["1"]


def test_runs_have_colors_and_names():
    names = [f"run {k}" for k in range(NUM_COLORS + 1)]
    plot = plot_of(chart(*(curve({1: 1.0, 2: float(k)}, k, "") for k in range(len(names)))), names)
    assert [line.name for line in plot.lines] == names
    assert [line.color for line in plot.lines] == [*range(NUM_COLORS), 0]


def test_epochs_that_a_run_lacks_are_empty_in_the_table():
    plot = plot_of(chart(curve({1: 1.0, 2: 2.0}), curve({2: 0.5}, 1)), ["a", "b"])
    assert plot.rows == [(1, ["1", ""]), (2, ["2", "0.5"])]
    assert [line.name for line in plot.lines] == ["a, validation", "b, validation"]


@pytest.mark.parametrize("count", [60, 61])
def test_long_curves_have_no_dots(count):
    plot = plot_of(chart(curve({k: 1.0 / k for k in range(1, count + 1)})), ["run"])
    assert bool(plot.lines[0].dots) == (count == 60)
