"""A course for nbgrader or Otter: assignments, the instructor's notebooks, and the solutions.

:mod:`rnnlab.course.nbgrader_release` describes the folder for nbgrader, which is the default format, and
:mod:`rnnlab.course.otter_release` that for Otter.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import rnnlab
from rnnlab.course.exercises import exercise
from rnnlab.course.nbgrader_release import NBGRADER, write_nbgrader_course
from rnnlab.course.notebook_cells import CourseNotebook, cleared, read_notebook
from rnnlab.course.otter_release import OTTER, write_otter_assignment
from rnnlab.course.release_files import check_wheel
from rnnlab.errors import InputError
from rnnlab.files import atomic_folder
from rnnlab.layers.checks import as_generator
from rnnlab.reading import PathLike

__all__ = ["FORMATS", "Assignment", "find_notebooks", "release"]

FORMATS = ("nbgrader", "otter")


@dataclass(frozen=True)
class Assignment:
    """A released notebook.

    Attributes
    ----------
    name : str
        The notebook's name without its suffix, which is nbgrader's name of the assignment.
    exercises, answers : int
        The numbers of functions and answers to be written.
    points : float
    """

    name: str
    exercises: int
    answers: int
    points: float


def release(
    directory: PathLike,
    *,
    notebooks: PathLike | None = None,
    only: Sequence[str] = (),
    course_id: str = "rnnlab",
    wheel: PathLike | None = None,
    rng: np.random.Generator | int | None = None,
    format: str = "nbgrader",
) -> list[Assignment]:
    """Write a course for nbgrader or Otter, with one assignment for each notebook.

    Parameters
    ----------
    directory : path
        The folder of the course. It is complete or absent: an empty folder is removed, then everything is
        written to a temporary folder next to it, which is renamed.
    notebooks : path, optional
        The folder of the notebooks. By default ``notebooks`` in the clone from which rnnlab is installed, or
        in the current folder.
    only : sequence of str
        Numbers or names of notebooks, such as "1" or "1_rnn_captioning". By default all that have exercises.
    course_id : str
        nbgrader's name of the course; Otter has none.
    wheel : path, optional
        A wheel of this version of rnnlab for students to install. By default they install it from the package
        index.
    rng : numpy Generator or seed, optional
        Draws the seeds of the hidden tests. By default each release has new seeds.
    format : "nbgrader" or "otter"

    Returns
    -------
    list of Assignment

    Raises
    ------
    FileExistsError
        If ``directory`` is a file, a link, the current folder, or a folder that is not empty. Nothing is
        written then.
    ImportError
        If nbgrader, or otter-grader for the format "otter", is not installed.
    ValueError
        If there are no notebooks, one has no exercises, a function could not be marked, nbgrader or Otter
        refuses a notebook, or ``format`` is unknown.
    """
    if format not in FORMATS:
        raise InputError(f"release: format is {format!r}, expected one of: {', '.join(FORMATS)}")
    (OTTER if format == "otter" else NBGRADER).require()
    target = Path(directory)
    is_empty_folder = target.is_dir() and not target.is_symlink() and not any(target.iterdir())
    if is_empty_folder and target.samefile(os.curdir):
        raise FileExistsError(
            "release: directory is the current folder, expected another: nothing is written"
        )
    if os.path.lexists(target) and not is_empty_folder:
        raise FileExistsError(
            f"release: {target} exists, expected no such path or an empty folder: nothing is written"
        )
    chosen = _chosen(find_notebooks(notebooks), only)
    for notebook in chosen:
        _check_exercises(notebook)
    built = Path(wheel) if wheel is not None else None
    if built is not None:
        check_wheel(built)
    rng = np.random.default_rng() if rng is None else as_generator("release", rng)
    if is_empty_folder:
        target.rmdir()
    with atomic_folder("release: directory", target) as folder:
        if format == "otter":
            for notebook in chosen:
                write_otter_assignment(folder, notebook, built, rng)
        else:
            write_nbgrader_course(folder, chosen, course_id, built, rng)
    return [
        Assignment(each.path.stem, len(each.exercises), len(each.answers), each.points) for each in chosen
    ]


def find_notebooks(folder: PathLike | None = None) -> list[CourseNotebook]:
    """The notebooks of a folder that are not hidden, in the order of their names.

    Parameters
    ----------
    folder : path, optional
        By default ``notebooks`` in the clone from which rnnlab is installed, or in the current folder.

    Raises
    ------
    FileNotFoundError
        If there are none.
    """
    clone = Path(rnnlab.__file__).parents[1] / "notebooks"
    places = [Path(folder)] if folder is not None else [clone, Path("notebooks")]
    for place in places:
        found = sorted(place.glob("[!.]*.ipynb"))  # without hidden files of macOS or of Jupyter as it saves
        if found:
            return [read_notebook(path) for path in found]
    looked = " or ".join(str(place) for place in places)
    raise FileNotFoundError(
        f"release: no notebooks (*.ipynb) in {looked}: --notebooks names another folder, such as that of "
        "rnnlab's repository"
    )


def _chosen(found: Sequence[CourseNotebook], only: Sequence[str]) -> list[CourseNotebook]:
    """The notebooks to release."""
    tagged = [each for each in found if each.exercises]
    known = ", ".join(each.path.stem for each in tagged) or "no notebook"
    if not only:
        if not tagged:
            raise InputError(
                f"release: no notebook in {found[0].path.parent} has exercises, expected cells with the "
                "metadata of nbgrader, as in the notebooks of rnnlab's repository"
            )
        return tagged
    for name in only:
        if not any(name in _names(each) for each in tagged):
            raise InputError(f"release: only names {name!r}, expected numbers or names of: {known}")
    return [each for each in tagged if _names(each) & {*only}]


def _check_exercises(notebook: CourseNotebook) -> None:
    """Check that each function can be marked: its exercise is known, it has a test and a marked solution."""
    tested = {cell.subject for cell in notebook.tests}
    for cell in notebook.exercises:
        where = f"release: {notebook.path.name}, cell {cell.grade_id}"
        try:
            exercise(cell.subject)
            cleared(cell.source)
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
        if cell.subject not in tested:
            raise InputError(f"{where}: found no test_{cell.subject}, expected one after the function")


def _names(notebook: CourseNotebook) -> set[str]:
    stem = notebook.path.stem
    return {stem, stem.partition("_")[0]}
