"""``python -m benchmarks grading``: the time of ``rnnlab course grade`` for a class.

Each student hands in one notebook. A third of the notebooks are correct, a third have a wrong transpose in
each backward, and a third have the backward functions as they were handed out. Marks, feedback pages and
gradebook are written, as ``rnnlab course grade SUBMITTED --csv --feedback`` does.
"""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.commands import parser_of
from rnnlab.cli.arguments import positive_integer
from rnnlab.course.release import release


def _cells(path: Path) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """A notebook and its cells by their nbgrader identifiers."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    tagged = (cell for cell in notebook["cells"] if "nbgrader" in cell["metadata"])
    return notebook, {cell["metadata"]["nbgrader"]["grade_id"]: cell for cell in tagged}


def hand_in(course: Path, name: str, students: int) -> None:
    """Write the submissions of a class into ``course/submitted``."""
    released, _ = _cells(course / "release" / name / f"{name}.ipynb")
    _, solved = _cells(course / "source" / name / f"{name}.ipynb")
    for student in range(students):
        submitted = copy.deepcopy(released)
        for cell in submitted["cells"]:
            tags = cell["metadata"].get("nbgrader", {})
            if tags.get("solution") and cell["cell_type"] == "code":
                _write(cell, "".join(solved[tags["grade_id"]]["source"]), student % 3)
        path = course / "submitted" / f"student{student:03d}" / name / f"{name}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(submitted), encoding="utf-8")


def _write(cell: dict[str, Any], solution: str, kind: int) -> None:
    """Fill in an exercise: correctly (kind 0), with wrong transposes (1), or a backward not at all (2)."""
    if "_backward(" in solution and kind == 2:
        return
    lines = [line for line in solution.split("\n") if "### " not in line]
    text = "\n".join(lines)
    cell["source"] = text.replace("Wh.T", "Wh").replace("w.T", "w") if kind == 1 else text


def main(arguments: list[str] | None = None) -> int:
    """Release a notebook, hand it in, mark it, and print the times."""
    parser = parser_of("grading", __doc__)
    parser.add_argument("--students", type=positive_integer, default=200, help="submissions (200)")
    parser.add_argument("--notebook", default="1", help="the number of the notebook")
    parser.add_argument(
        "--jobs", type=positive_integer, default=os.cpu_count(), help="number of processes (one per core)"
    )
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        course = Path(folder) / "course"
        try:
            (assignment,) = release(course, only=[options.notebook])
        except ValueError as error:
            parser.error(f"--notebook: {error}")
        hand_in(course, assignment.name, options.students)
        command = [sys.executable, "-m", "rnnlab", "course", "grade", str(course / "submitted"), "--feedback"]
        command += ["--csv", str(Path(folder) / "marks.csv"), "--jobs", str(options.jobs)]
        start = time.perf_counter()
        done = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE)
        seconds = time.perf_counter() - start
    print(done.stdout.splitlines()[-1])
    print(f"{options.students} submissions of {assignment.name}, {options.jobs} processes: {seconds:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
