from __future__ import annotations

import itertools
import time

import matplotlib.image
import numpy as np
import pytest
from matplotlib.figure import Figure

from rnnlab import plots


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
    plots.save(figure, tmp_path / "figure.png", dpi=30)


def test_a_path_in_the_place_of_the_figure(losses, tmp_path):
    with pytest.raises(TypeError, match=r"plots\.save: figure is a str, expected a matplotlib Figure"):
        plots.save("figure.png", plots.loss_curve(losses))


def test_characters_that_the_font_lacks(losses, tmp_path):
    figure = plots.loss_curve(losses)
    figure.axes[0].set_title("狗")
    plots.save(figure, tmp_path / "figure.png", dpi=30)
    assert (tmp_path / "figure.png").exists()


def test_a_picture_is_whole_or_as_before(losses, tmp_path, monkeypatch):
    def interrupt(self, path, **options):
        path.write_text("half")
        raise KeyboardInterrupt

    plots.save(plots.loss_curve(losses), tmp_path / "new" / "figure.png", dpi=30)
    before = (tmp_path / "new" / "figure.png").read_bytes()
    monkeypatch.setattr(Figure, "savefig", interrupt)
    with pytest.raises(KeyboardInterrupt):
        plots.save(plots.loss_curve(losses), tmp_path / "new" / "figure.png", dpi=30)
    assert [path.read_bytes() for path in (tmp_path / "new").iterdir()] == [before]


def test_saved_as_png_without_pyplot(losses, tmp_path):
    figure = plots.loss_curve(losses)
    assert type(figure) is Figure
    plots.save(figure, tmp_path / "any.name", dpi=50)
    image = matplotlib.image.imread(tmp_path / "any.name", format="png")
    height, width = image.shape[:2]
    assert width / 50 == pytest.approx(figure.get_figwidth(), abs=0.05)
    assert height / 50 == pytest.approx(figure.get_figheight(), abs=0.05)


def test_tex_sets_no_text(losses, tmp_path, monkeypatch):
    """A user's settings may ask for it, where there is no LaTeX or a word has an underscore."""
    monkeypatch.setenv("PATH", "")
    monkeypatch.setitem(matplotlib.rcParams, "text.usetex", True)
    figure = plots.loss_curve(losses)
    figure.axes[0].set_title("val_loss, 50 %")
    plots.save(figure, tmp_path / "figure.png", dpi=30)
    assert matplotlib.image.imread(tmp_path / "figure.png").any()
