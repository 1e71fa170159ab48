"""Mark submissions: run their functions elsewhere, and compare the results here."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rnnlab.course.grading.marker import Marker, max_points_of
from rnnlab.course.grading.marks import FunctionMark, SubmissionMark
from rnnlab.course.grading.process import Limits, StudentProcess
from rnnlab.course.grading.submission import BadSubmission, helpers, printable, read_submission
from rnnlab.course.grading.suspicions import suspicions_of_code
from rnnlab.course.notebook_cells import CourseNotebook, read_notebook
from rnnlab.errors import InputError
from rnnlab.pools import map_in_processes

__all__ = ["SubmittedFile", "find_submissions", "grade_submission", "grade_submissions"]


@dataclass(frozen=True)
class SubmittedFile:
    """A submission to mark.

    Attributes
    ----------
    student, assignment : str
    path : path
        The student's notebook, which need not exist.
    source : path
        The notebook with the solutions.
    strays : tuple of str
        Names in the student's folder that are not assignments.
    """

    student: str
    assignment: str
    path: Path
    source: Path
    strays: tuple[str, ...] = ()


def find_submissions(submitted: Path, sources: Path) -> tuple[list[SubmittedFile], list[str]]:
    """The submissions in a folder of nbgrader's layout, ``STUDENT/ASSIGNMENT/NOTEBOOK.ipynb``.

    Names that begin with a dot are left out.

    Returns
    -------
    list of SubmittedFile
        For each student, every assignment that any student has handed in, sorted by student and assignment.
    list of str
        Names in the folder that are not submissions.

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no such folder, or it holds no submission of an assignment in ``sources``.
    """
    if not submitted.is_dir():
        raise FileNotFoundError(f"{submitted} is not a folder, expected the folder `submitted` of a course")
    if (submitted / "submitted").is_dir():
        raise InputError(f"{submitted} is a course, expected its folder {submitted / 'submitted'}")
    notebooks = {
        folder.name: path for folder in sorted(sources.glob("[!.]*")) if (path := _source_in(folder))
    }
    if not notebooks:
        raise InputError(
            f"{sources} has no ASSIGNMENT/NOTEBOOK.ipynb, expected what `rnnlab course release` writes; "
            "SUBMITTED is the folder `submitted` next to it"
        )
    students = [path for path in _listed(submitted) if path.is_dir()]
    handed_in = [name for name in notebooks if any((student / name).is_dir() for student in students)]
    if not handed_in:
        raise InputError(
            f"{submitted} has no STUDENT/ASSIGNMENT folder, expected assignments among {', '.join(notebooks)}"
        )
    found, others = [], [path for path in _listed(submitted) if path not in students]
    for student in students:
        strays = [each for each in _listed(student) if each.name not in notebooks or not each.is_dir()]
        others += strays
        for name in handed_in:
            source = notebooks[name]
            path = student / name / source.name
            names = tuple(printable(each.name) for each in strays)
            found.append(SubmittedFile(student.name, name, path, source, names))
    expected = f"STUDENT/ASSIGNMENT of {', '.join(notebooks)}"
    return found, [f"{printable(str(path.relative_to(submitted)))} is not {expected}" for path in others]


def _source_in(folder: Path) -> Path | None:
    """The notebook with the solutions of an assignment: the one with its name, or the only one."""
    paths = sorted(folder.glob("[!.]*.ipynb"))
    named = [path for path in paths if path.stem == folder.name] or paths
    if len(named) > 1:
        names = ", ".join(path.name for path in paths)
        raise InputError(
            f"{folder} has {names}, expected one notebook, or one with the name {folder.name}.ipynb"
        )
    return named[0] if named else None


def _listed(folder: Path) -> list[Path]:
    """The entries of a folder of submissions, without hidden ones."""
    paths = sorted(folder.glob("*"))
    return [path for path in paths if path.name != "timestamp.txt" and not path.name.startswith(".")]


def grade_submissions(
    files: Sequence[SubmittedFile], *, limits: Limits, secret: str, jobs: int = 1
) -> Iterator[SubmissionMark]:
    """Mark submissions, several at a time, and give the marks in the order of the files.

    Parameters
    ----------
    files : sequence of SubmittedFile
    limits : Limits
        The limits of each call of a function.
    secret : str
        The seed of the random inputs is computed from it and from the student's name.
    jobs : int
        The number of processes.
    """
    grade = functools.partial(grade_submission, limits=limits, secret=secret)
    if jobs == 1:
        return map(grade, files)
    return map_in_processes(grade, files, jobs=jobs, method="forkserver", killed=_killed)


def _killed(file: SubmittedFile) -> SubmissionMark:
    """The mark of a submission that takes so much memory that the marking process is killed."""
    problem = "its marking was killed twice, perhaps for lack of memory: mark it again"
    return _without_marks(file, read_notebook(file.source), problem)


def filters_system_calls() -> bool:
    """Whether the kernel filters the system calls of students' code on this machine."""
    with StudentProcess({}, Limits()) as process:
        process.start()
        return process.filtered


def grade_submission(file: SubmittedFile, *, limits: Limits, secret: str) -> SubmissionMark:
    """Mark one submission. There is a mark for any content.

    Raises
    ------
    OSError
        If no process can be started.
    """
    source = read_notebook(file.source)
    try:
        return _graded(file, source, limits, secret)
    except BadSubmission as error:
        problem = str(error)
    except OSError:
        raise
    except Exception as error:  # an unforeseen error must not end the marking of other submissions
        problem = f"it could not be marked, {type(error).__name__}: {error}"
    return _without_marks(file, source, problem)


def _without_marks(file: SubmittedFile, source: CourseNotebook, problem: str) -> SubmissionMark:
    names = [cell.subject for cell in source.exercises]
    unmarked = [FunctionMark(name, max_points_of(source, name)) for name in names]
    unanswered = {cell.grade_id: False for cell in source.answers}
    return SubmissionMark(file.student, file.assignment, unmarked, unanswered, problem=problem)


def _graded(file: SubmittedFile, source: CourseNotebook, limits: Limits, secret: str) -> SubmissionMark:
    if not file.path.parent.is_dir():
        instead = f", but {', '.join(file.strays)}" if file.strays else ""
        raise BadSubmission(f"the folder {file.assignment} is not handed in{instead}")
    submission = read_submission(file.path, source)
    given, names = helpers(source), [cell.subject for cell in source.exercises]
    cells = given | dict(submission.cells)
    forwards = [name for name in names if name.endswith(("_forward", "_loss"))]
    with StudentProcess(cells, limits, constants_only=given, counted=forwards) as process:
        process.start()
        marker = Marker(process, submission, source, _seed(secret, file))
        marks = [marker.mark(name) for name in names]
    found = [*suspicions_of_code(submission, source), *(one for each in marks for one in each.suspicions)]
    suspicions = tuple(dict.fromkeys(found))
    return SubmissionMark(file.student, file.assignment, marks, submission.answers, suspicions)


def _seed(secret: str, file: SubmittedFile) -> int:
    text = f"{secret}/{file.student}/{file.assignment}"
    digest = hashlib.sha256(text.encode("utf8", "surrogateescape")).digest()  # names of files may be no UTF-8
    return int.from_bytes(digest[:8], "little")
