"""Submissions of every kind, and their marks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rnnlab.course.grading import Limits, SubmissionMark, SubmittedFile, grade_submission
from rnnlab.course.grading.submission import read_submission
from rnnlab.course.grading.suspicions import Suspicion, suspicions_of_code
from rnnlab.course.notebook_cells import read_notebook

from ..small_notebook import GIVEN, POINTS, SOLUTIONS, cell, cells, write

# Two of five gradients are wrong.
PARTLY = """
def rnn_step_backward(dnext_h, cache):
    x, prev_h, Wx, Wh, next_h = cache
    da = dnext_h * (1 - next_h**2)
    return da @ Wx.T, da @ Wh, x.T @ da, prev_h.T @ da, da.mean(axis=0)
"""


def submission(
    *more: str, answer: str = "Since it is so.", setup: str = GIVEN, **functions: str
) -> list[dict[str, Any]]:
    """The cells of a student: right but for the functions that are given, with further cells at the end."""
    solved = {name: text.replace("    ### BEGIN SOLUTION\n", "") for name, text in SOLUTIONS.items()}
    solved = {name: text.replace("    ### END SOLUTION\n", "") for name, text in solved.items()}
    made = cells({**solved, **functions}, setup=setup, answer=answer)
    return made + [cell("code", text) for text in more]


def stub(name: str) -> str:
    """A function as it was handed out."""
    head, _, _ = SOLUTIONS[name].partition("    ### BEGIN SOLUTION")
    return f"{head}    # YOUR CODE HERE\n    raise NotImplementedError()\n"


# ---------------------------------------------------------------- marks of them

LIMITS = Limits(seconds=2)
ALL = sum(POINTS.values())


def graded(source: Path, content: Any, tmp_path: Path, secret: str = "s") -> SubmissionMark:
    path = write(tmp_path / "rnn.ipynb", content)
    return grade_submission(SubmittedFile("ada", "rnn", path, source), limits=LIMITS, secret=secret)


def suspected(source: Path, content: Any, tmp_path: Path) -> list[Suspicion]:
    """What is found in the code alone, which needs no process."""
    notebook = read_notebook(source)
    return suspicions_of_code(read_submission(write(tmp_path / "rnn.ipynb", content), notebook), notebook)


def points(mark: SubmissionMark) -> dict[str, float]:
    return {each.name: each.points for each in mark.functions if each.points != each.max_points}


def kinds(found: SubmissionMark | list[Suspicion]) -> set[str]:
    return {each.kind for each in (found if isinstance(found, list) else found.suspicions)}


def text_of(mark: SubmissionMark, function: str) -> str:
    return next(each.text for each in mark.functions if each.name == function)
