"""The marks of submissions, and the files that they are written to."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rnnlab import files
from rnnlab.course.grading.suspicions import Suspicion
from rnnlab.files import atomic_text

__all__ = ["FunctionMark", "SubmissionMark", "write_csv", "write_json"]


@dataclass(frozen=True)
class FunctionMark:
    """The mark of one function.

    Attributes
    ----------
    name : str
    max_points : float
        The points of a correct function.
    points : float
    results : mapping of str to bool
        Whether each result, or gradient, is right; empty if none could be compared.
    text : str
        The report for the student.
    suspicions : tuple of Suspicion
        Suspicions from running the function.
    """

    name: str
    max_points: float
    points: float = 0.0
    results: Mapping[str, bool] = field(default_factory=dict)
    text: str = ""
    suspicions: tuple[Suspicion, ...] = ()


@dataclass(frozen=True)
class SubmissionMark:
    """The marks of a student's notebook.

    Attributes
    ----------
    student, assignment : str
    functions : sequence of FunctionMark
    answers : mapping of str to bool
        Whether each question has an answer. Answers are marked by hand.
    suspicions : sequence of Suspicion
        Signs that the teacher should look at.
    problem : str
        The reason why nothing could be marked and all points are 0; "" if there is none.
    """

    student: str
    assignment: str
    functions: Sequence[FunctionMark]
    answers: Mapping[str, bool] = field(default_factory=dict)
    suspicions: Sequence[Suspicion] = ()
    problem: str = ""

    @property
    def points(self) -> float:
        """The points of all functions."""
        return sum(each.points for each in self.functions)

    @property
    def max_points(self) -> float:
        """The points of a submission without mistakes."""
        return sum(each.max_points for each in self.functions)

    def __str__(self) -> str:
        kinds = ", ".join(dict.fromkeys(each.kind for each in self.suspicions))
        notes = [f"   cannot be marked: {self.problem}"] if self.problem else []
        notes += [f"   look at: {kinds}"] if kinds else []
        return "".join([f"{self.student}  {self.assignment}  {self.points:g} of {self.max_points:g}", *notes])


def write_csv(path: str | os.PathLike[str], marks: Sequence[SubmissionMark]) -> None:
    """Write a row for each submission: student, assignment, points, and the points of each function."""
    names = list(dict.fromkeys(each.name for mark in marks for each in mark.functions))
    with atomic_text(path) as file:
        rows = csv.writer(file)
        rows.writerow(
            ["student", "assignment", "points", "max_points", *names, "answers", "look_at", "problem"]
        )
        for mark in marks:
            points = {each.name: f"{each.points:g}" for each in mark.functions}
            look_at = "; ".join(map(str, mark.suspicions))
            answered = f"{sum(mark.answers.values())} of {len(mark.answers)}"
            cells = [mark.student, mark.assignment, f"{mark.points:g}", f"{mark.max_points:g}"]
            cells += [*(points.get(name, "") for name in names), answered, look_at, mark.problem]
            rows.writerow(map(_harmless, cells))


def write_json(path: str | os.PathLike[str], marks: Sequence[SubmissionMark]) -> None:
    """Write all information about each submission."""
    files.write_json(path, [_plain(mark) for mark in marks], indent=1)


def _plain(mark: SubmissionMark) -> dict[str, Any]:
    return {
        "student": mark.student,
        "assignment": mark.assignment,
        "points": mark.points,
        "max_points": mark.max_points,
        "problem": mark.problem,
        "functions": [_plain_function(each) for each in mark.functions],
        "answers": dict(mark.answers),
        "suspicions": [each._asdict() for each in mark.suspicions],
    }


def _plain_function(mark: FunctionMark) -> dict[str, Any]:
    return {
        "name": mark.name,
        "points": mark.points,
        "max_points": mark.max_points,
        "results": dict(mark.results),
        "text": mark.text,
    }


def _harmless(cell: str) -> str:
    """A cell that no spreadsheet interprets as a formula."""
    return f"'{cell}" if cell[:1] in ("=", "+", "-", "@", "\t", "\r") else cell
