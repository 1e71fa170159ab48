"""The papers' tables, by name: a file for each paper."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.tables import arnet, beyond, code, course, lrcn, pmnist, precision, review, target
from benchmarks.trainings import Table

TABLES: dict[str, Table] = (
    review.TABLES
    | lrcn.TABLES
    | target.TABLES
    | arnet.TABLES
    | code.TABLES
    | pmnist.TABLES
    | course.TABLES
    | beyond.TABLES
    | precision.TABLES
)

# Functions that draw a figure of results into a file. They return False if there are too few results.
FIGURES: dict[str, Callable[[Path, Path], bool]] = {
    "depth": review.draw_depth,
    "precision": precision.draw_losses,
}
