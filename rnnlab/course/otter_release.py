"""An assignment for Otter-Grader and Gradescope, made by Otter Assign.

source/STEM/STEM.ipynb     the notebook that Otter Assign reads: solutions, hidden tests and points
dist/STEM/student/         what students get: the notebook, requirements.txt, README.md, the licence
dist/STEM/autograder/      the notebook with solutions, and the zip file for Gradescope
solutions/STEM.ipynb       the notebook with solutions, answers and outputs
"""

from __future__ import annotations

import contextlib
import importlib.metadata as metadata
import io
import json
import shutil
import sys
import warnings
from pathlib import Path

import numpy as np

from rnnlab.course.notebook_cells import CourseNotebook, read_content
from rnnlab.course.otter_notebook import otter_notebook
from rnnlab.course.release_files import licences, requirements
from rnnlab.errors import InputError
from rnnlab.extras import Library

__all__ = ["OTTER", "assign", "write_otter_assignment"]

OTTER = Library("otter", "otter", "releasing assignments for Otter", "otter-grader")
_FILES = "/autograder/source/files"  # the location of the autograder's files on Gradescope


def write_otter_assignment(
    folder: Path, notebook: CourseNotebook, wheel: Path | None, rng: np.random.Generator
) -> None:
    """Write an assignment to the folder of a course.

    Parameters
    ----------
    folder : path
    notebook : CourseNotebook
    wheel : path, optional
        A wheel of rnnlab. By default the version on the package index is used.
    rng : numpy.random.Generator
        Draws the seeds of the hidden tests.

    Raises
    ------
    ImportError
        If otter-grader is not installed.
    ValueError
        If the tags of the notebook are not in order, or Otter refuses it.
    """
    OTTER.require()
    stem = notebook.path.stem
    content = read_content(notebook.path)
    source, dist = folder / "source" / stem, folder / "dist" / stem
    source.mkdir(parents=True)
    for_students = requirements(content, wheel)
    for_autograder = for_students.replace("./", f"{_FILES}/", 1) if wheel else for_students
    config: dict[str, object] = {
        "name": stem,
        "requirements": "requirements.txt",
        "python_version": f"{sys.version_info.major}.{sys.version_info.minor}",
        "show_question_points": True,
        "export_cell": {"pdf": False},
        "generate": {"pdf": False},
        "tests": {"ok_format": False},
    }
    if wheel is not None:
        config["autograder_files"] = [wheel.name]
        shutil.copyfile(wheel, source / wheel.name)
    made = json.dumps(otter_notebook(content, notebook, config, rng), indent=1, ensure_ascii=False)
    (source / f"{stem}.ipynb").write_text(made + "\n", "utf8")
    (source / "requirements.txt").write_text(for_autograder, "utf8")
    assign(source / f"{stem}.ipynb", dist)
    files = licences() | {
        "README.md": _readme(stem),
        "requirements.txt": f"{for_students}otter-grader=={metadata.version('otter-grader')}\n",
    }
    for name, text in files.items():
        (dist / "student" / name).write_text(text, "utf8")
    if wheel is not None:
        shutil.copyfile(wheel, dist / "student" / wheel.name)
    solutions = folder / "solutions"
    solutions.mkdir(exist_ok=True)
    shutil.copyfile(notebook.path, solutions / notebook.path.name)


def assign(source: Path, target: Path) -> None:
    """Run Otter Assign: make ``student`` and ``autograder`` in a folder. The notebook is not executed.

    Parameters
    ----------
    source : path
        The notebook in the format of Otter Assign.
    target : path

    Raises
    ------
    ValueError
        If Otter refuses the notebook. The message ends with Otter's reason.
    """
    OTTER.require()
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")  # Otter's dependencies emit warnings
        from otter.assign import main

        try:
            main(str(source), str(target), no_pdfs=True, no_run_tests=True)
        except Exception as error:  # Otter has no common base class for its exceptions
            reason = f"{type(error).__name__}: {error}"
            raise InputError(f"Otter refuses the assignment {source.stem}: {reason}") from error


def _readme(stem: str) -> str:
    """Instructions for students: how to begin, and what to hand in."""
    return f"""# {stem}

Complete `{stem}.ipynb`: replace each `raise NotImplementedError()` by your code, and each "Type your answer
here" by your answer. `grader.check` runs the tests of a function and names mistakes. The last cell writes the
zip file that you hand in on Gradescope.

In this folder, with Python 3.11 or newer:

    python -m venv .venv
    source .venv/bin/activate
    pip install -r requirements.txt jupyterlab
    jupyter lab {stem}.ipynb

On Windows the second command is `.venv\\Scripts\\activate`.

No data is downloaded. The pictures and captions are generated on first use, in about 20 seconds.
"""
