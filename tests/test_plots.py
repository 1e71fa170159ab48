from __future__ import annotations

import itertools
import time

import matplotlib.image
import numpy as np
import pytest
from matplotlib.figure import Figure

from rnnlab import plots


@pytest.fixture
def losses(rng):
    return 3 * np.exp(-np.arange(400) / 80) + 0.2 * rng.random(400)


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


@pytest.fixture
def history():
    """Three epochs of 100 iterations with 10, 10 and 8 tokens in an example."""
    return [
        {"epoch": epoch, "iteration": 100 * epoch, "train_loss": 3.0, "train_loss_per_token": 3.0 / tokens}
        for epoch, tokens in ((1, 10), (2, 10), (3, 8))
    ]


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
    plots.save(figure, tmp_path / "loss.png")


def test_without_validation_there_are_training_losses(losses, history):
    (axes,) = plots.loss_curve(losses, history).axes
    assert len(axes.lines) == 2
    assert axes.get_ylabel() == "loss (nats per token)"
    assert axes.get_legend() is None


def test_caption_grid(rng):
    images = [rng.integers(0, 256, shape, np.uint8) for shape in ((20, 30, 3), (30, 20, 3), (8, 8, 3))]
    captions = ["a small red square", "word " * 30, "one\ntwo"]
    figure = plots.caption_grid(images, captions, columns=2, colors=["green", "red", "black"])
    shown = [axes for axes in figure.axes if axes.images]
    assert len(shown) == 3
    assert len(figure.axes) == 4
    for axes, image in zip(shown, images, strict=True):
        np.testing.assert_array_equal(axes.images[0].get_array(), image)
    labels = [axes.xaxis.label for axes in shown]
    assert labels[0].get_text() == captions[0]
    assert labels[1].get_text().replace("\n", " ") == captions[1].strip()
    assert labels[1].get_text().count("\n") > 2
    assert labels[2].get_text() == captions[2]
    assert [label.get_color() for label in labels] == ["green", "red", "black"]


def test_caption_grid_of_one(rng):
    image = rng.integers(0, 256, (5, 5, 3), np.uint8)
    (axes,) = plots.caption_grid([image], [""], colors="blue").axes
    assert axes.xaxis.label.get_color() == "blue"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], []), "images is empty, expected at least one"),
        ((["cat.jpg"], ["a"]), r"images\[0\] is 'cat.jpg', expected an array \(h, w, 3\)"),
        ((np.zeros((4, 4, 3)), ["a"]), r"images\[0\] has shape \(4, 3\), expected an array \(h, w, 3\)"),
        (([np.zeros((2, 2, 3), np.uint8)], ["a", "b"]), "got 1 images and 2 captions"),
    ],
)
def test_caption_grid_needs_a_caption_for_every_image(arguments, message):
    with pytest.raises(ValueError, match=message):
        plots.caption_grid(*arguments)


def test_caption_grid_needs_a_color_for_every_image():
    with pytest.raises(ValueError, match="got 2 colors for 1 images"):
        plots.caption_grid([np.zeros((2, 2, 3), np.uint8)], ["a"], colors=["red", "red"])


def test_alignments_have_a_cell_for_each_pair_of_words(tmp_path):
    weights = np.array([[0.9, 0.1, 0.0], [0.0, 0.3, 0.7]])
    figure = plots.alignment_matrix(weights, ["$a^$", "b", "<END>"], ["x", "y"])
    (axes,) = figure.axes
    np.testing.assert_array_equal(axes.images[0].get_array(), weights)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["$a^$", "b", "<END>"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["x", "y"]
    plots.save(figure, tmp_path / "alignment.png")
    with pytest.raises(ValueError, match=r"weights has shape \(2, 3\), expected \(1, 3\)"):
        plots.alignment_matrix(weights, ["a", "b", "c"], ["x"])
    with pytest.raises(ValueError, match="at least 1 of each"):
        plots.alignment_matrix(np.zeros((0, 1)), ["a"], [])


def test_a_map_of_states(rng):
    pytest.importorskip("sklearn")
    teacher_forced = np.concatenate([rng.standard_normal((8, 5)), 50 + rng.standard_normal((8, 5))])
    free_running = teacher_forced + 0.1 * rng.standard_normal(teacher_forced.shape)
    (axes,) = plots.state_map(teacher_forced, free_running).axes
    u, v = (np.asarray(marks.get_offsets()) for marks in axes.collections)
    assert u.shape == v.shape == (16, 2)
    apart = np.linalg.norm(u[:8].mean(axis=0) - u[8:].mean(axis=0))
    assert np.linalg.norm(u - v, axis=1).max() < apart  # the clusters stay what they are
    filled, opened = axes.collections
    assert filled.get_facecolor().size
    assert not opened.get_facecolor().size
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["teacher forcing", "free running"]
    again = plots.state_map(teacher_forced, free_running).axes[0].collections[0]
    np.testing.assert_array_equal(again.get_offsets(), u)


def test_a_map_of_few_states(rng):
    pytest.importorskip("sklearn")
    plots.state_map(*rng.standard_normal((2, 2, 3)))
    for shapes in (((1, 3), (1, 3)), ((4, 3), (3, 3)), ((4,), (4,))):
        with pytest.raises(ValueError, match="state_map: teacher_forced has shape .* N of at least 2"):
            plots.state_map(*(np.zeros(shape) for shape in shapes))


def test_a_map_of_states_needs_an_extra(rng, monkeypatch):
    monkeypatch.setattr(plots, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r'needs scikit-learn: pip install "rnnlab\[sklearn\]"'):
        plots.state_map(*rng.standard_normal((2, 3, 4)))


@pytest.mark.parametrize("kind", ["losses", "flow", "states"])
def test_a_slow_machine_draws_legends_without_a_warning(kind, rng, losses, history, tmp_path, monkeypatch):
    if kind == "losses":
        figure = plots.loss_curve(losses, [row | {"val_loss": 1.0} for row in history])
    elif kind == "flow":
        figure = plots.gradient_flow({"RNN": np.ones((2, 3, 4))})
    else:
        pytest.importorskip("sklearn")
        figure = plots.state_map(*rng.standard_normal((2, 2, 3)))
    monkeypatch.setattr(time, "perf_counter", itertools.count(step=2).__next__)
    plots.save(figure, tmp_path / "figure.png")


def test_saved_as_png_without_pyplot(losses, tmp_path):
    figure = plots.loss_curve(losses)
    assert type(figure) is Figure
    plots.save(figure, tmp_path / "any.name", dpi=50)
    image = matplotlib.image.imread(tmp_path / "any.name", format="png")
    height, width = image.shape[:2]
    assert width / 50 == pytest.approx(figure.get_figwidth(), abs=0.05)
    assert height / 50 == pytest.approx(figure.get_figheight(), abs=0.05)


def test_attention_grid_has_a_picture_for_each_word(rng, tmp_path):
    images = [rng.integers(0, 256, (12, 12, 3), np.uint8), rng.integers(0, 256, (8, 16, 3), np.uint8)]
    words = [["a", "star"], ["a", "red", "square"]]
    figure = plots.attention_grid(images, words, [rng.random((2, 9)), rng.random((3, 4))])
    assert [axes.get_title() for axes in figure.axes] == ["", "a", "star", "", "", "a", "red", "square"]
    assert {axes.get_subplotspec().get_gridspec().get_geometry() for axes in figure.axes} == {(2, 4)}
    plots.save(figure, tmp_path / "attention.png")
    assert matplotlib.image.imread(tmp_path / "attention.png").ndim == 3


def test_attention_grid_wraps_long_sentences(rng):
    words = [[f"word{k}" for k in range(16)], ["a", "star"], []]
    weights = [rng.random((len(sentence), 4)) for sentence in words]
    figure = plots.attention_grid([np.zeros((4, 4, 3), np.uint8)] * 3, words, weights, width=1.25)
    grid = np.array(figure.axes).reshape(5, 8)
    titles = [[axes.get_title() for axes in row if axes.get_title()] for row in grid]
    assert titles == [words[0][:7], words[0][7:14], words[0][14:], words[1], words[2]]
    assert [bool(row[0].images) for row in grid] == [True, False, False, True, True]  # the images alone
    assert figure.get_figwidth() == 8 * 1.25


@pytest.mark.parametrize(
    ("words", "weights", "message"),
    [
        ([], [], "1 images, 0 sentences and 0 weights"),
        ([["a"]], [np.ones((2, 4))], r"shape \(2, 4\), expected \(1, L\)"),
        ([["a"]], [np.ones((1, 5))], "L a square number"),
    ],
)
def test_attention_grid_needs_weights_of_a_square_grid_for_every_word(words, weights, message):
    with pytest.raises(ValueError, match=message):
        plots.attention_grid([np.zeros((4, 4, 3), np.uint8)], words, weights)


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
