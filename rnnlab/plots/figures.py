"""What the figures share: size and layout, colours, labels, legends, and files."""

from __future__ import annotations

import os
import warnings
from typing import Literal

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.legend import Legend
from matplotlib.text import Text
from matplotlib.ticker import MaxNLocator

from rnnlab.errors import InputTypeError
from rnnlab.files import atomic_write

BLUE, ORANGE, GREY, INK = "#2a6f97", "#d1603d", "#9aa5ad", "#2b2d33"
COLORS = (BLUE, ORANGE, "#5b8c5a", "#8a5a9e", "#b08d3c")  # for several models


def save(figure: Figure, path: str | os.PathLike[str], dpi: int = 120) -> None:
    """Write a figure as PNG. Characters that the font lacks are drawn as boxes, without a warning.

    TeX does not set the text, whatever matplotlib's settings are: words are not written for it.

    Raises
    ------
    WriteError
        As :func:`rnnlab.files.atomic_write`, by which the file is written.
    TypeError
        If ``figure`` is not a figure.
    """
    if not isinstance(figure, Figure):
        raise InputTypeError(f"plots.save: figure is a {type(figure).__name__}, expected a matplotlib Figure")
    for text in figure.findobj(Text):
        text.set_usetex(False)
    with atomic_write(path) as temporary, warnings.catch_warnings(), rc_context({"text.usetex": False}):
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
        figure.savefig(temporary, format="png", dpi=dpi)


def new_figure(width: float, height: float, *, w_pad: float = 0.1) -> Figure:
    """An empty white figure of this size in inches, on the Agg canvas; w_pad is the space beside axes."""
    layout = ConstrainedLayoutEngine(w_pad=w_pad, h_pad=0.08)
    figure = Figure(figsize=(width, height), layout=layout, facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def label_axes(axes: Axes, x: str, y: str) -> None:
    """Label the axes, with whole numbers on the x axis, and draw a grid."""
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6, min_n_ticks=1))
    axes.grid(color=GREY, alpha=0.3, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(GREY)
    axes.tick_params(color=GREY, labelcolor=INK, labelsize=9)


def add_legend(axes: Axes, place: Literal["best", "upper right", "lower right"] = "best") -> Legend:
    """Add a legend without a frame."""
    # for large data matplotlib warns about its default place, but not about an explicit "best"
    return axes.legend(loc=place, frameon=False, labelcolor=INK, fontsize=9)
