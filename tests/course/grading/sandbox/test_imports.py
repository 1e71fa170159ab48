"""Modules that are not available are named when they are used."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from rnnlab.course.grading.process import Limits, StudentProcess
from rnnlab.course.grading.sandbox.imports import NotAtHand, StandIn

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the process needs POSIX")
FUNCTIONS = """
import matplotlib.pyplot as plt
from rnnlab.plain.rnn import rnn_step_forward
from rnnlab.layers import *
import torch.nn
import numpy.linalg as la
from math import sqrt
from scipy.special import expit
import scipy.optimize

def plots(x): return plt.plot(x)
def calls(x): return rnn_step_forward(x)
def learns(x): return torch.nn.functional.relu(x)
def adds(x): return x + plt
def optimises(x): return scipy.optimize.minimize(x)
def later(x):
    import rnnlab
    return rnnlab.plain
def named(δ):
    ε̂ = "\\N{GREEK SMALL LETTER EPSILON}"
    return eval("2 * δ", {"δ": δ}) if ε̂ else None
def works(x): return la.norm(x) + sqrt(4) + expit(0 * x)
def loads(x):
    import importlib
    return importlib.import_module("rnnlab")
"""


@pytest.fixture(scope="module")
def student() -> Iterator[StudentProcess]:
    with StudentProcess({"cell": FUNCTIONS}, Limits()) as process:
        process.start()
        assert not process.problems
        yield process


@pytest.mark.parametrize(
    ("name", "used"),
    [
        ("plots", "matplotlib.pyplot.plot"),
        ("calls", "rnnlab.plain.rnn.rnn_step_forward"),
        ("learns", "torch.nn.functional.relu"),
        ("adds", "matplotlib.pyplot"),
        ("optimises", "scipy.optimize.minimize"),
        ("loads", "importlib.import_module"),
    ],
)
def test_used(student: StudentProcess, name: str, used: str) -> None:
    answer = student.call(name, (np.ones(2),))
    assert answer["error"] == "NotAtHand"
    assert answer["message"].startswith(f"uses {used}, expected NumPy, scipy.special or one of Python's")


def test_a_stand_in_is_no_result(student: StudentProcess) -> None:
    assert student.call("later", (np.ones(2),))["results"] == ("StandIn",)


def test_names_that_are_not_ascii(student: StudentProcess) -> None:
    np.testing.assert_array_equal(student.call("named", (np.ones(2),))["results"], np.full(2, 2.0))


def test_what_is_at_hand(student: StudentProcess) -> None:
    pytest.importorskip("scipy")
    np.testing.assert_allclose(student.call("works", (np.ones(4),))["results"], np.full(4, 4.5))


@pytest.mark.parametrize(
    "use",
    [lambda name: name(), lambda name: name[0], list, len, bool, lambda name: 2 * name, np.asarray],
    ids=["call", "item", "iterate", "length", "truth", "multiply", "array"],
)
def test_uses_of_a_stand_in(use: Any) -> None:
    with pytest.raises(
        NotAtHand,
        match="^uses a.b, expected NumPy, scipy.special or",
    ):
        use(StandIn("a").b)
