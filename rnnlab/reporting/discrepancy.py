"""The discrepancy of teacher-forced and free-running states: a table, JSON, and a map of the states."""

from __future__ import annotations

import os

from rnnlab.reporting.json_file import write_json
from rnnlab.runs import Run
from rnnlab.tasks.discrepancy import Discrepancy


def discrepancy_table(found: Discrepancy) -> str:
    """The distances between teacher-forced and free-running states, one per line."""
    rows = [("sentences", f"{len(found.teacher_forced):,}")]
    rows += [("d_mc", f"{found.mean_centroid:.4f}"), ("d_pw", f"{found.pointwise:.4f}")]
    return "\n".join(f"{name:<12}{value:>10}" for name, value in rows)


def write_discrepancy(path: str | os.PathLike[str], run: Run, split: str, found: Discrepancy) -> None:
    """Write the number of sentences, d_mc and d_pw; see :func:`write_json`."""
    distances = {"d_mc": found.mean_centroid, "d_pw": found.pointwise}
    write_json(path, run, {"split": split, "sentences": len(found.teacher_forced), **distances})


def states_picture(path: str | os.PathLike[str], found: Discrepancy) -> None:
    """Write a PNG of the teacher-forced and the free-running states.

    Raises
    ------
    ImportError
        If the extra ``sklearn`` is not installed.
    """
    from rnnlab import plots  # importing matplotlib takes half a second

    plots.save(plots.state_map(found.teacher_forced, found.free_running), path)
