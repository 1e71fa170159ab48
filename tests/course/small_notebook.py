"""A notebook as those of the course, with one exercise of two functions and one question."""

import json
import zlib

CODE = """
import numpy as np
from scipy.special import expit
from rnnlab.course import check
"""

FORWARD = '''
def rnn_step_forward(x, prev_h, Wx, Wh, b):
    """One step; x is (N, D)."""
    ### BEGIN SOLUTION
    next_h = np.tanh(x @ Wx + prev_h @ Wh + b)
    return next_h, (x, prev_h, Wx, Wh, next_h)
    ### END SOLUTION
'''

BACKWARD = '''
def rnn_step_backward(dnext_h, cache):
    """The gradients of dx, dprev_h, dWx, dWh, db."""
    ### BEGIN SOLUTION
    x, prev_h, Wx, Wh, next_h = cache
    da = dnext_h * (1 - next_h**2)
    return da @ Wx.T, da @ Wh.T, x.T @ da, prev_h.T @ da, da.sum(axis=0)
    ### END SOLUTION
'''

TEST_FORWARD = """
assert rnn_step_forward(*[np.ones((1, 1))] * 4, np.ones(1))[0].shape == (1, 1)
check("rnn_step", rnn_step_forward, seed=0)
"""

QUESTION = "Why?"
ANSWER = "<details><summary>An answer</summary>\n\nBecause of the chain rule.\n\n</details>"
SECRETS = ("np.tanh", "da.sum", "chain rule", "<details>", "SOLUTION", "HIDDEN TESTS", "hidden_seed")


def cell(kind, source, tag=None, **more):
    if tag is not None:
        tag = {"grade": False, "locked": False, "schema_version": 3, "solution": False, "task": False, **tag}
    made = {
        "cell_type": kind,
        "id": f"cell-{zlib.crc32(source.encode())}",
        "metadata": {} if tag is None else {"nbgrader": tag},
        "source": source.strip("\n").splitlines(keepends=True),
        **more,
    }
    if kind == "code":
        output = {"name": "stdout", "output_type": "stream", "text": ["an output\n"]}
        made |= {"execution_count": 1, "outputs": [output]}
    return made


def exercise(name, source):
    return cell("code", source, {"grade_id": name, "solution": True})


def graded(name, points, source):
    return cell("code", source, {"grade_id": f"test_{name}", "grade": True, "locked": True, "points": points})


def cells():
    answer = {"grade_id": "answer_1", "grade": True, "solution": True, "points": 2}
    return [
        cell(
            "markdown", "# RNN\n[`rnn.py`](../rnnlab/plain/rnn.py), [next](2_b.ipynb), [web](https://a.org/b)"
        ),
        cell("code", CODE),
        exercise("rnn_step_forward", FORWARD),
        graded("rnn_step_forward", 1, TEST_FORWARD),
        exercise("rnn_step_backward", BACKWARD),
        graded("rnn_step_backward", 5, 'check("rnn_step", rnn_step_forward, rnn_step_backward)'),
        cell("markdown", QUESTION),
        cell("markdown", ANSWER, answer),
    ]


def write(path, made=None):
    """Write a notebook with these cells."""
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    content = {
        "cells": cells() if made is None else made,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1) + "\n", "utf8")
    return path
