"""Notebooks as those of the course: exercises with their tests, and a question; and a wheel."""

import json
import zipfile
import zlib

import rnnlab

GIVEN = """import numpy as np

from rnnlab.course import check
from rnnlab.gradcheck import relative_distance


def report(errors, limit):
    assert max(errors.values()) < limit
"""

SOLUTIONS = {
    "rnn_step_forward": '''
def rnn_step_forward(x, prev_h, Wx, Wh, b):
    """One step; x is (N, D)."""
    ### BEGIN SOLUTION
    next_h = np.tanh(x @ Wx + prev_h @ Wh + b)
    return next_h, (x, prev_h, Wx, Wh, next_h)
    ### END SOLUTION
''',
    "rnn_step_backward": '''
def rnn_step_backward(dnext_h, cache):
    """The gradients of dx, dprev_h, dWx, dWh, db."""
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
check("rnn_step", rnn_step_forward, seed=0)""",
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

QUESTION = "**Question 1.** Why?"
ANSWER = "<details><summary>An answer</summary>\n\nBecause of the chain rule.\n\n</details>"
SECRETS = ("np.tanh", "da.sum", "chain rule", "<details>", "SOLUTION", "HIDDEN TESTS", "hidden_seed")


def cell(kind, source, tag=None):
    if tag is not None:
        tag = {"grade": False, "locked": False, "schema_version": 3, "solution": False, "task": False, **tag}
    made = {
        "cell_type": kind,
        "id": f"cell-{zlib.crc32(f'{tag}{source}'.encode())}",
        "metadata": {} if tag is None else {"nbgrader": tag},
        "source": source.strip("\n"),
    }
    if kind == "code":
        output = {"name": "stdout", "output_type": "stream", "text": ["an output\n"]}
        made |= {"execution_count": 1, "outputs": [output]}
    return made


def exercise(name, source):
    return cell("code", source, {"grade_id": name, "solution": True})


def graded(name, points, source):
    return cell("code", source, {"grade_id": f"test_{name}", "grade": True, "locked": True, "points": points})


def cells(functions=None, *, setup=GIVEN, answer=ANSWER):
    """A notebook with these functions in the exercises; without them, with the two of one step."""
    if functions is None:
        functions = {name: SOLUTIONS[name] for name in ("rnn_step_forward", "rnn_step_backward")}
    title = "# RNN\n[`rnn.py`](../rnnlab/plain/rnn.py), [next](2_b.ipynb), [web](https://a.org/b)"
    made = [cell("markdown", title), cell("code", setup)]
    for name, source in functions.items():
        made += [exercise(name, source), graded(name, POINTS[name], TESTS[name])]
    tag = {"grade_id": "answer_1", "grade": True, "solution": True, "points": 2}
    return [*made, cell("markdown", QUESTION), cell("markdown", answer, tag)]


def write(path, made=None):
    """Write a notebook with these cells, or the text of a file that is none."""
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    content = {
        "cells": cells() if made is None else made,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(made if isinstance(made, str) else json.dumps(content, indent=1) + "\n", "utf8")
    return path


def write_wheel(folder):
    """Write what passes for a wheel of rnnlab."""
    path = folder / f"rnnlab-{rnnlab.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("rnnlab/__init__.py", "")
    return path
