"""A course for nbgrader, whose folder has nbgrader's layout.

nbgrader_config.py, gradebook.db   settings, and nbgrader's database with the assignments
source/STEM/                       the instructor's notebook: solutions and hidden tests, no outputs
release/STEM/, release/STEM.zip    what students get: signatures, docstrings and visible tests
solutions/STEM.ipynb               the notebook with solutions, answers and outputs
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from rnnlab.course.notebook_cells import CourseNotebook, read_content
from rnnlab.course.release_files import archive, config, licences, readme, requirements
from rnnlab.course.source_notebook import source_notebook
from rnnlab.environment import environment
from rnnlab.errors import InputError
from rnnlab.extras import Library

__all__ = ["NBGRADER", "generate", "write_nbgrader_course"]

NBGRADER = Library("nbgrader", "course", "releasing assignments")


def write_nbgrader_course(
    folder: Path,
    notebooks: Sequence[CourseNotebook],
    course_id: str,
    wheel: Path | None,
    rng: np.random.Generator,
) -> None:
    """Write the assignments to an empty folder.

    Parameters
    ----------
    folder : path
    notebooks : sequence of CourseNotebook
    course_id : str
    wheel : path, optional
        A wheel of rnnlab. By default the version on the package index is used.
    rng : numpy.random.Generator
        Draws the seeds of the hidden tests.

    Raises
    ------
    ImportError, ValueError
        As :func:`generate`; ValueError also if a test cell has no call of ``check``, or a package that a
        notebook imports is not installed.
    """
    (folder / "nbgrader_config.py").write_text(config(course_id), "utf8")
    (folder / "solutions").mkdir()
    texts = licences()
    for notebook in notebooks:
        stem = notebook.path.stem
        content = read_content(notebook.path)
        source = folder / "source" / stem
        source.mkdir(parents=True)
        made = json.dumps(source_notebook(content, notebook, rng), indent=1, ensure_ascii=False)
        files = texts | {
            f"{stem}.ipynb": made + "\n",
            "README.md": readme(stem),
            "requirements.txt": requirements(content, wheel),
        }
        for name, text in files.items():
            (source / name).write_text(text, "utf8")
        if wheel is not None:
            shutil.copyfile(wheel, source / wheel.name)
        generate(folder, course_id, stem)
        archive(folder / "release" / stem, folder / "release" / f"{stem}.zip")
        shutil.copyfile(notebook.path, folder / "solutions" / notebook.path.name)


def generate(course: Path, course_id: str, assignment: str) -> None:
    """Make ``release/ASSIGNMENT`` from ``source/ASSIGNMENT``, and add it to nbgrader's database.

    Parameters
    ----------
    course : path
        The folder of the course, with nbgrader's layout.
    course_id, assignment : str

    Raises
    ------
    ImportError
        If nbgrader is not installed.
    ValueError
        If nbgrader refuses the notebook. The message ends with nbgrader's reason.
    """
    NBGRADER.require()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nbgrader's dependencies emit warnings
        from nbgrader.converters import GenerateAssignment
        from nbgrader.converters.base import NbGraderException
        from nbgrader.coursedir import CourseDirectory

        reasons = _Reasons()
        log = logging.Logger("nbgrader", logging.ERROR)
        log.addHandler(reasons)
        where = CourseDirectory(
            root=str(course.resolve()), course_id=course_id, assignment_id=assignment, log=log
        )
        try:
            with environment(PATH=_path_of_this_environment()):  # of alembic, which it runs
                GenerateAssignment(coursedir=where, log=log).start()
        except NbGraderException as error:
            reason = reasons.first or str(error)
            raise InputError(f"nbgrader refuses the assignment {assignment}: {reason}") from None


def _path_of_this_environment() -> str:
    """PATH, after the folder of this environment's programs."""
    return os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])


class _Reasons(logging.Handler):
    """Stores the last line of the first traceback that nbgrader logs: its exceptions give no reason."""

    first = ""

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage().rstrip()
        if text.startswith("Traceback") and not self.first:
            self.first = text.rpartition("\n")[2]
