"""A small course, and submissions of every kind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rnnlab.course.grading import Limits, SubmissionMark, SubmittedFile, grade_submission

SOLUTIONS = {
    "rnn_step_forward": '''
def rnn_step_forward(x, prev_h, Wx, Wh, b):
    """One step."""
    ### BEGIN SOLUTION
    next_h = np.tanh(x @ Wx + prev_h @ Wh + b)
    return next_h, (x, prev_h, Wx, Wh, next_h)
    ### END SOLUTION
''',
    "rnn_step_backward": '''
def rnn_step_backward(dnext_h, cache):
    """Backward of one step."""
    ### BEGIN SOLUTION
    x, prev_h, Wx, Wh, next_h = cache
    da = dnext_h * (1 - next_h**2)
    return da @ Wx.T, da @ Wh.T, x.T @ da, prev_h.T @ da, da.sum(axis=0)
    ### END SOLUTION
''',
    "rnn_forward": '''
def rnn_forward(x, h0, Wx, Wh, b):
    """All steps."""
    ### BEGIN SOLUTION
    h, caches, prev_h = np.zeros((*x.shape[:2], h0.shape[1])), [], h0
    for t in range(x.shape[1]):
        prev_h, cache = rnn_step_forward(x[:, t], prev_h, Wx, Wh, b)
        h[:, t] = prev_h
        caches.append(cache)
    return h, (x, h0, Wx, Wh, caches)
    ### END SOLUTION
''',
    "rnn_backward": '''
def rnn_backward(dh, cache):
    """Backward of all steps."""
    ### BEGIN SOLUTION
    x, h0, Wx, Wh, caches = cache
    dx, dh_t = np.zeros(x.shape), np.zeros(h0.shape)
    dWx, dWh, db = np.zeros(Wx.shape), np.zeros(Wh.shape), np.zeros(Wx.shape[1])
    for t in reversed(range(len(caches))):
        dx[:, t], dh_t, *of_step = rnn_step_backward(dh[:, t] + dh_t, caches[t])
        dWx, dWh, db = dWx + of_step[0], dWh + of_step[1], db + of_step[2]
    return dx, dh_t, dWx, dWh, db
    ### END SOLUTION
''',
    "temporal_softmax_loss": '''
def temporal_softmax_loss(x, y, mask):
    """The loss."""
    ### BEGIN SOLUTION
    p = np.exp(x - x.max(axis=2, keepdims=True))
    p = p / p.sum(axis=2, keepdims=True)
    correct = y[:, :, None] == np.arange(x.shape[2])
    loss = -(mask * np.log(p[correct]).reshape(y.shape)).sum() / len(x)
    return loss, (p - correct) * mask[:, :, None] / len(x)
    ### END SOLUTION
''',
}
TESTS = {
    "rnn_step_forward": """ones, eye = np.ones((1, 2)), np.eye(2)
next_h, _ = rnn_step_forward(ones, ones, eye, eye, np.zeros(2))
expected = np.array([[0.96402758, 0.96402759], [0.41159778, 0.3455367]])[:1]
report({"next_h": relative_distance(next_h, expected)}, 1e-7)
check("rnn_step", rnn_step_forward)""",
    "rnn_step_backward": 'check("rnn_step", rnn_step_forward, rnn_step_backward)',
    "rnn_forward": 'check("rnn", rnn_forward)',
    "rnn_backward": 'check("rnn", rnn_forward, rnn_backward)',
    "temporal_softmax_loss": 'check("temporal_softmax_loss", temporal_softmax_loss)',
}
POINTS = {
    "rnn_step_forward": 1,
    "rnn_step_backward": 5,
    "rnn_forward": 1,
    "rnn_backward": 5,
    "temporal_softmax_loss": 2,
}
GIVEN = """import numpy as np

from rnnlab.course import check
from rnnlab.gradcheck import relative_distance


def report(errors, limit):
    assert max(errors.values()) < limit
"""
# Two of five gradients are wrong.
PARTLY = """
def rnn_step_backward(dnext_h, cache):
    x, prev_h, Wx, Wh, next_h = cache
    da = dnext_h * (1 - next_h**2)
    return da @ Wx.T, da @ Wh, x.T @ da, prev_h.T @ da, da.mean(axis=0)
"""
STUB = "    # YOUR CODE HERE\n    raise NotImplementedError()\n"


def cell(text: str, *, kind: str = "code", **tag: Any) -> dict[str, Any]:
    metadata = {"nbgrader": {"schema_version": 3, "task": False, **tag}} if tag else {}
    content: dict[str, Any] = {"cell_type": kind, "id": str(abs(hash((text, str(tag)))))[:8], "source": text}
    if kind == "code":
        content |= {"execution_count": None, "outputs": []}
    return content | {"metadata": metadata}


def notebook(
    functions: dict[str, str], *, answer: str, setup: str = GIVEN, more: tuple[str, ...] = ()
) -> dict[str, Any]:
    """A notebook with these functions in the exercise cells, and further cells at the end."""
    cells = [cell("# A course", kind="markdown"), cell(setup)]
    for name, text in functions.items():
        cells.append(cell(text.strip(), grade=False, grade_id=name, locked=False, solution=True))
        test = {"grade": True, "grade_id": f"test_{name}", "locked": True, "points": POINTS[name]}
        cells.append(cell(TESTS[name], solution=False, **test))
    cells.append(cell("**Question 1.** Why?", kind="markdown"))
    tag = {"grade": True, "grade_id": "answer_1", "locked": False, "points": 2, "solution": True}
    cells.append(cell(answer, kind="markdown", **tag))
    cells += [cell(text) for text in more]
    language = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return {"cells": cells, "metadata": language, "nbformat": 4, "nbformat_minor": 5}


def source_notebook() -> dict[str, Any]:
    """The notebook of the teacher."""
    return notebook(SOLUTIONS, answer="<details>Because.</details>")


def submission(*more: str, answer: str = "Since it is so.", **functions: str) -> dict[str, Any]:
    """The notebook of a student: right but for the functions that are given."""
    solved = {name: text.replace("    ### BEGIN SOLUTION\n", "") for name, text in SOLUTIONS.items()}
    solved = {name: text.replace("    ### END SOLUTION\n", "") for name, text in solved.items()}
    return notebook({**solved, **functions}, answer=answer, more=more)


def stub(name: str) -> str:
    """A function as it was handed out."""
    head, _, _ = SOLUTIONS[name].partition("    ### BEGIN SOLUTION")
    return head + STUB


def write(path: Path, content: Any) -> Path:
    """Write a notebook, or the text of a file that is none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), "utf8")
    return path


# ---------------------------------------------------------------- marks of them

LIMITS = Limits(seconds=2)
ALL = sum(POINTS.values())


def graded(source: Path, content: Any, tmp_path: Path, secret: str = "s") -> SubmissionMark:
    path = write(tmp_path / "rnn.ipynb", content)
    return grade_submission(SubmittedFile("ada", "rnn", path, source), limits=LIMITS, secret=secret)


def points(mark: SubmissionMark) -> dict[str, float]:
    return {each.name: each.points for each in mark.functions if each.points != each.most}


def kinds(mark: SubmissionMark) -> set[str]:
    return {each.kind for each in mark.suspicions}


def text_of(mark: SubmissionMark, function: str) -> str:
    return next(each.text for each in mark.functions if each.name == function)
