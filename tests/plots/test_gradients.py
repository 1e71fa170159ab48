from __future__ import annotations

import numpy as np
import pytest

from rnnlab import plots


def test_gradient_statistics_have_a_panel_for_each_parameter():
    edges = np.linspace(-4, 0, 5)
    histograms = {"W": [[1, 0, 3, 0], [0, 0, 0, 4]], "b": [[2, 0, 0, 0], [0, 1, 1, 0]]}
    figure = plots.gradient_statistics([1, 11], {"W": [0.01, 0.1], "b": [0.0, 1.0]}, histograms, edges)
    assert [axes.get_title() for axes in figure.axes] == ["W", "b"]
    first, second = figure.axes
    shares = np.asarray(first.collections[0].get_array()).reshape(4, 2)
    np.testing.assert_allclose(shares.T, [[0.25, 0, 0.75, 0], [0, 0, 0, 1]])
    np.testing.assert_allclose(first.lines[0].get_xydata(), [[1, -2], [11, -1]])
    np.testing.assert_allclose(second.lines[0].get_xydata(), [[1, np.nan], [11, 0]])


@pytest.mark.parametrize(("count", "shown"), [(1, [True]), (4, [True] * 4 + [False] * 2)])
def test_gradient_statistics_have_rows_of_three_panels(count, shown):
    norms = {f"p{k}": [1.0] for k in range(count)}
    figure = plots.gradient_statistics([1], norms, {name: [[1]] for name in norms}, np.array([0.0, 1.0]))
    assert [axes.get_visible() for axes in figure.axes] == shown


@pytest.mark.parametrize(
    ("iterations", "norms", "histograms"),
    [([], {}, {}), ([1], {"W": [1.0]}, {"b": [[1]]}), ([1, 2], {"W": [1.0, 2.0]}, {"W": [[1]]})],
)
def test_gradient_statistics_need_a_record_for_each_iteration(iterations, norms, histograms):
    with pytest.raises(ValueError, match="gradient_statistics: got .* expected one of each parameter"):
        plots.gradient_statistics(iterations, norms, histograms, np.array([0.0, 1.0]))


def test_gradient_flow_is_the_median_and_the_range(rng, tmp_path):
    hidden = rng.standard_normal((5, 40, 3))
    hidden[0, 30:] = hidden[1, 10:] = hidden[:, 38:] = 0  # padding
    scaled = (1e-30 * rng.standard_normal((2, 7, 4))).astype(np.float32)  # their squares are zero in float32
    figure = plots.gradient_flow({"RNN": hidden, "$LSTM$": scaled}, title="flow")
    (axes,) = figure.axes
    first, second = axes.lines
    np.testing.assert_array_equal(first.get_xdata(), np.arange(1, 41))
    norms = np.linalg.norm(hidden, axis=2)
    assert first.get_ydata()[3] == pytest.approx(np.median(norms[:, 3]))
    assert first.get_ydata()[35] == pytest.approx(np.median(norms[2:, 35]))
    assert np.isnan(first.get_ydata()[38:]).all()
    lowest, highest = axes.collections[0].get_paths()[0].get_extents().get_points()[:, 1]
    assert (lowest, highest) == (pytest.approx(norms[norms > 0].min()), pytest.approx(norms.max()))
    expected = np.median(np.linalg.norm(scaled.astype(float), axis=2), axis=0)
    np.testing.assert_allclose(second.get_ydata(), expected)
    assert (axes.get_yscale(), axes.get_xlabel(), figure.get_suptitle()) == ("log", "time step $t$", "flow")
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["RNN", "$LSTM$"]
    assert first.get_color() != second.get_color()
    plots.save(figure, tmp_path / "flow.png")


@pytest.mark.parametrize("shape", [(1, 1, 2), (3, 5, 2)])
def test_gradient_flow_of_one_model(shape, tmp_path):
    figure = plots.gradient_flow(np.ones(shape))
    (axes,) = figure.axes
    assert axes.get_legend() is None
    (line,) = axes.lines
    assert line.get_marker() == "."  # one step is a point
    np.testing.assert_allclose(line.get_ydata(), np.full(shape[1], np.sqrt(2)))
    plots.save(figure, tmp_path / "flow.png")


@pytest.mark.parametrize(
    ("gradients", "message"),
    [
        ({}, "gradients is empty, expected at least one model"),
        (np.ones((2, 3)), r"gradients has shape \(2, 3\), expected \(N, T, H\)"),
        ({"a": np.zeros((2, 3, 4))}, r"gradients\['a'\] has no numbers but zero"),
        (
            {"a": np.ones((1, 1, 1)), "b": np.full((1, 1, 1), np.inf)},
            r"\['b'\] has numbers that are not finite",
        ),
        (np.ones((0, 3, 4)), "gradients has no numbers but zero"),
    ],
)
def test_gradient_flow_needs_gradients(gradients, message):
    with pytest.raises(ValueError, match=f"gradient_flow: .*{message}"):
        plots.gradient_flow(gradients)
