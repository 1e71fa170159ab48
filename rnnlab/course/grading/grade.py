"""Mark submissions: run their functions elsewhere, and compare the results here."""

from __future__ import annotations

import hashlib
import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from rnnlab.course.check import Report, examine
from rnnlab.course.exercise import Exercise
from rnnlab.course.exercises import exercise as exercise_of
from rnnlab.course.grading.functions import RemoteFunction
from rnnlab.course.grading.marks import FunctionMark, SubmissionMark
from rnnlab.course.grading.process import Limits, StudentProcess
from rnnlab.course.grading.submission import BadSubmission, helpers, read_submission
from rnnlab.course.grading.suspicions import Suspicion, is_numeric, suspicions_of_code
from rnnlab.course.notebook_cells import CourseNotebook, read_notebook

__all__ = ["SubmittedFile", "find_submissions", "grade_submission", "grade_submissions"]


@dataclass(frozen=True)
class SubmittedFile:
    """A submission to mark: whose it is, the file, and the notebook with the solutions."""

    student: str
    assignment: str
    path: Path
    source: Path


def find_submissions(submitted: Path, sources: Path) -> list[SubmittedFile]:
    """The submissions in a folder of nbgrader's layout, ``STUDENT/ASSIGNMENT/NOTEBOOK.ipynb``.

    Raises
    ------
    ValueError
        If the folder holds no submission of an assignment in ``sources``.
    """
    notebooks = {path.parent.name: path for path in sorted(sources.glob("*/*.ipynb"))}
    if not notebooks:
        raise ValueError(
            f"{sources} has no ASSIGNMENT/NOTEBOOK.ipynb, expected what `rnnlab course release` writes"
        )
    found = []
    for folder in sorted(path for path in submitted.glob("*/*") if path.is_dir()):
        source = notebooks.get(folder.name)
        if source is not None:
            found.append(SubmittedFile(folder.parent.name, folder.name, folder / source.name, source))
    if not found:
        raise ValueError(
            f"{submitted} has no STUDENT/ASSIGNMENT folder, expected assignments among {', '.join(notebooks)}"
        )
    return found


def grade_submissions(
    files: Sequence[SubmittedFile], *, limits: Limits, secret: str, jobs: int = 1
) -> Iterator[SubmissionMark]:
    """Mark submissions, several at a time, and give the marks in the order of the files.

    Parameters
    ----------
    files : sequence of SubmittedFile
    limits : Limits
        Of each call of a function.
    secret : str
        The random inputs are made of it and of the student's name.
    jobs : int
        The number of processes.
    """
    if jobs == 1:
        yield from (grade_submission(each, limits=limits, secret=secret) for each in files)
        return
    context = multiprocessing.get_context("forkserver")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        waiting = [pool.submit(grade_submission, each, limits=limits, secret=secret) for each in files]
        try:
            yield from (each.result() for each in waiting)
        finally:
            pool.shutdown(cancel_futures=True)


def grade_submission(file: SubmittedFile, *, limits: Limits, secret: str) -> SubmissionMark:
    """Mark one submission. Whatever it does, there is a mark."""
    source = read_notebook(file.source)
    try:
        submission = read_submission(file.path, source)
    except BadSubmission as error:
        unmarked = [FunctionMark(cell.subject, _most(source, cell.subject)) for cell in source.exercises]
        return SubmissionMark(file.student, file.assignment, unmarked, problem=str(error))
    cells = helpers(source) | dict(submission.others) | dict(submission.exercises)
    suspicions = suspicions_of_code(submission, source)
    with StudentProcess(cells, limits) as process:
        process.start()
        marker = _Marker(source, process, _seed(secret, file), suspicions)
        marks = [
            marker.mark(cell.subject, cell.grade_id in submission.exercises) for cell in source.exercises
        ]
    return SubmissionMark(
        file.student, file.assignment, marks, submission.answers, tuple(dict.fromkeys(suspicions))
    )


class _Marker:
    """Marks the functions of one submission."""

    def __init__(
        self, source: CourseNotebook, process: StudentProcess, seed: int, suspicions: list[Suspicion]
    ) -> None:
        self._source, self._process, self._seed, self._suspicions = source, process, seed, suspicions
        self._given = {cell.subject for cell in source.exercises}

    def mark(self, name: str, is_handed_in: bool) -> FunctionMark:
        exercise = exercise_of(name)
        mark = FunctionMark(name, _most(self._source, name))
        if not is_handed_in:
            return replace(mark, text=f"{name} is not handed in.")
        if name in self._process.problems:
            return replace(mark, text=f"{self._process.problems[name]}.")
        forward = RemoteFunction(self._process, exercise.functions[0], keep_cache=not exercise.is_loss)
        if name == exercise.functions[0]:
            report = examine(exercise.name, forward, seed=self._seed)
            self._note_refused(name, forward)
            return _marked(mark, exercise, "forward", report)
        if exercise.functions[0] not in self._given:
            raise ValueError(f"{self._source.path} has an exercise {name} without {exercise.functions[0]}")
        return self._mark_backward(mark, exercise, forward)

    def _mark_backward(self, mark: FunctionMark, exercise: Exercise, forward: RemoteFunction) -> FunctionMark:
        backward = RemoteFunction(self._process, mark.name)
        of_forward = examine(exercise.name, forward, seed=self._seed)
        report = examine(exercise.name, forward, backward, seed=self._seed)
        self._note_refused(mark.name, backward)
        report.problems = [each for each in report.problems if each not in of_forward.problems]
        report.diagnoses = report.diagnoses[len(of_forward.diagnoses) :]
        report.errors = {name: error for name, error in report.errors.items() if name in exercise.gradients}
        if not report.errors and not report.problems:
            return replace(mark, text=f"{mark.name} cannot be checked without {exercise.functions[0]}.")
        marked = _marked(mark, exercise, "backward", report)
        if of_forward.passed and report.passed and is_numeric(exercise, forward, backward, self._seed):
            text = f"{mark.name} computes numeric gradients, expected the formulas"
            self._suspicions.append(Suspicion("numeric gradient", text))
            return replace(marked, points=0.0, text=f"{text}.")
        return marked

    def _note_refused(self, name: str, function: RemoteFunction) -> None:
        if function.refused:
            self._suspicions.append(Suspicion("refused", f"{name} {function.refused}"))


def _marked(mark: FunctionMark, exercise: Exercise, kind: str, report: Report) -> FunctionMark:
    """The points of a report, the same for each result. A write into the caller's arrays costs one result."""
    expected = exercise.results(kind)
    results = {name: name in report.errors and name not in report.wrong for name in expected}
    writes = any("writes into" in problem for problem in report.problems)
    right = max(sum(results.values()) - writes, 0)
    report.functions = (mark.name,)
    return replace(mark, points=mark.most * right / len(expected), results=results, text=str(report))


def _most(source: CourseNotebook, function: str) -> float:
    return next((cell.points for cell in source.tests if cell.subject == function), 0.0)


def _seed(secret: str, file: SubmittedFile) -> int:
    digest = hashlib.sha256(f"{secret}/{file.student}/{file.assignment}".encode()).digest()
    return int.from_bytes(digest[:8], "little")
