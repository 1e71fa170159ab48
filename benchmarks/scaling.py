"""The growth of the time with the batch, steps and hidden units of an LSTM, and words of a captioning step.

The slope is that of a line through the upper half of the points on logarithmic axes. The figure is
``benchmarks/scaling.png``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from benchmarks import captioning, lstm
from benchmarks.table import OURS, AtMost, Row
from benchmarks.turns import Result

AXES = {
    "N": (8, 16, 32, 64, 128, 256),
    "T": (8, 16, 32, 64, 128, 256),
    "H": (32, 64, 128, 256, 512, 1024),
    "V": (512, 1024, 2048, 4096, 8192, 16384),
}
NAMES = {"N": "sequences", "T": "steps", "H": "hidden units", "V": "words"}
LAYER = lstm.Sizes(N=32, T=32, D=256, H=256)
CAPTIONER = captioning.Sizes(N=32, T=16, D=512, W=256, H=256, V=1024)
CASES = {
    f"{axis}={size}": (CAPTIONER if axis == "V" else LAYER)._replace(**{axis: size})
    for axis, sizes in AXES.items()
    for size in sizes
}
SIDES = ("rnnlab", "torch")
TARGETS: dict[str, dict[str, float | None]] = {case: {"torch": None} for case in CASES}
ROUNDS = 5
MARGIN = 0.05
PICTURE = Path(__file__).with_name("scaling.png")


def prepare(side: str, sizes: lstm.Sizes | captioning.Sizes) -> Callable[[], object]:
    """An LSTM forward and backward, or a training step."""
    suite = lstm if isinstance(sizes, lstm.Sizes) else captioning
    return suite.prepare(side, sizes)  # type: ignore[arg-type]


def conclude(results: Sequence[Result]) -> list[Row]:
    """The rows of the slopes; draw the figure."""
    times = {
        axis: {
            side: [result.measured[side] for result in results if result.case.startswith(f"{axis}=")]
            for side in SIDES
        }
        for axis in AXES
    }
    slopes = {
        axis: {side: slope(AXES[axis], values) for side, values in times[axis].items()} for axis in AXES
    }
    _draw(times, slopes)
    return [
        Row(
            "scaling",
            f"slope over {axis}",
            "",
            found[OURS],
            "torch",
            found["torch"],
            found["torch"] / found[OURS],
            AtMost(found["torch"] + MARGIN),
        )
        for axis, found in slopes.items()
    ]


def slope(sizes: Sequence[int], times: Sequence[float]) -> float:
    """The slope of a line through the logarithms of the upper half."""
    upper = slice(len(sizes) // 2, None)
    return float(np.polyfit(np.log(sizes[upper]), np.log(times[upper]), 1)[0])


def _draw(times: dict[str, dict[str, list[float]]], slopes: dict[str, dict[str, float]]) -> None:
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator, NullLocator

    figure = Figure(figsize=(9, 7), layout="constrained")
    for axes, (axis, sides) in zip(figure.subplots(2, 2).flat, times.items(), strict=True):
        for (side, values), marker in zip(sides.items(), "os", strict=True):
            name = "PyTorch" if side == "torch" else side
            axes.loglog(AXES[axis], values, marker=marker, label=f"{name}, slope {slopes[axis][side]:.2f}")
        axes.set_xticks(AXES[axis], [f"{size:,}" for size in AXES[axis]])
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter("{x:g}")
        for ticks in (axes.xaxis, axes.yaxis):
            ticks.set_minor_locator(NullLocator())
        axes.set_xlabel(f"{axis}, {NAMES[axis]}")
        axes.set_ylabel("ms, forward and backward" if axis != "V" else "ms, training step")
        axes.set_title(_fixed(CAPTIONER if axis == "V" else LAYER, axis), fontsize="medium")
        axes.grid(which="major", alpha=0.3)
        axes.legend(frameon=False)
    figure.savefig(PICTURE, dpi=120)


def _fixed(sizes: lstm.Sizes | captioning.Sizes, axis: str) -> str:
    what = "captioning" if axis == "V" else "LSTM"
    others = [f"{name}={getattr(sizes, name)}" for name in "NTDWHV" if hasattr(sizes, name) and name != axis]
    return f"{what}, {', '.join(others)}"
