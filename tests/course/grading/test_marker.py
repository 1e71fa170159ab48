"""The points of functions: partial credit, help where another function is wrong, numeric gradients."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ..small_notebook import SOLUTIONS, cell, cells, write
from .submissions import ALL, PARTLY, graded, kinds, points, submission, text_of

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="students' processes need POSIX")


def test_partial_credit_and_names(source: Path, tmp_path: Path) -> None:
    """A wrong step costs its own points, and not those of the sequence that calls it."""
    mark = graded(source, submission(rnn_step_backward=PARTLY), tmp_path)
    assert points(mark) == {"rnn_step_backward": 3}
    text = text_of(mark, "rnn_step_backward")
    assert "dprev_h has Wh where Wh.T belongs" in text
    assert "db is divided by N" in text
    assert "With the correct rnn_step_backward instead of yours" in text_of(mark, "rnn_backward")


def test_wrong_sequence_with_wrong_step(source: Path, tmp_path: Path) -> None:
    backward = SOLUTIONS["rnn_backward"].replace("dh[:, t] + dh_t", "dh[:, t]")
    mark = graded(source, submission(rnn_step_backward=PARTLY, rnn_backward=backward), tmp_path)
    assert set(points(mark)) == {"rnn_step_backward", "rnn_backward"}
    assert points(mark)["rnn_backward"] == 0  # each gradient depends on the step after it
    assert "With the correct rnn_step_backward instead of yours" in text_of(mark, "rnn_backward")
    assert "dh_t" in text_of(mark, "rnn_backward")


def test_write_into_the_callers_array_costs_a_result(source: Path, tmp_path: Path) -> None:
    writing = SOLUTIONS["rnn_step_backward"].replace("    da = dnext_h * ", "    dnext_h *= ")
    writing = writing.replace("da = dnext_h", "dnext_h").replace(
        "(1 - next_h**2)", "1 - next_h**2\n    da = dnext_h"
    )
    mark = graded(source, submission(rnn_step_backward=writing), tmp_path)
    assert points(mark) == {"rnn_step_backward": 4}
    assert "writes into its argument dnext_h" in text_of(mark, "rnn_step_backward")


@pytest.mark.slow
def test_write_into_the_cache(source: Path, tmp_path: Path) -> None:
    writing = SOLUTIONS["rnn_step_backward"].replace(
        "    da =", "    next_h[...] = next_h\n    x += 1\n    x -= 1.5\n    da ="
    )
    mark = graded(source, submission(rnn_step_backward=writing), tmp_path)
    assert "writes into cache" in text_of(mark, "rnn_step_backward")


def test_a_softmax_that_overflows(source: Path, tmp_path: Path) -> None:
    loss = SOLUTIONS["temporal_softmax_loss"].replace("x - x.max(axis=2, keepdims=True)", "x")
    mark = graded(source, submission(temporal_softmax_loss=loss), tmp_path)
    assert points(mark) == {"temporal_softmax_loss": 0}
    assert "where a large number is added to all scores" in text_of(mark, "temporal_softmax_loss")


NUMERIC = """
def rnn_step_backward(dnext_h, cache):
    x, prev_h, Wx, Wh, next_h = cache
    x, prev_h, Wx, Wh = x.copy(), prev_h.copy(), Wx.copy(), Wh.copy()
    b = (np.arctanh(next_h) - x @ Wx - prev_h @ Wh)[0]
    gradients = []
    for array in (x, prev_h, Wx, Wh, b):
        gradient = np.zeros(array.shape)
        for place in np.ndindex(array.shape):
            old = array[place]
            array[place] = old + 1e-5
            up = {}
            array[place] = old - 1e-5
            down = {}
            array[place] = old
            gradient[place] = ((up - down) * dnext_h).sum() / 2e-5
        gradients.append(gradient)
    return tuple(gradients)
"""


def test_numeric_gradient(source: Path, tmp_path: Path) -> None:
    value = "rnn_step_forward(x, prev_h, Wx, Wh, b)[0]"
    mark = graded(source, submission(rnn_step_backward=NUMERIC.format(value, value)), tmp_path)
    assert points(mark) == {"rnn_step_backward": 0}
    assert kinds(mark) == {"numeric gradient"}


# Differences of a copy of the formula: with a step of its own for each array, and of the sum over the batch.
OF_ARRAY = ("    for place", "    step = 1e-5 * np.abs(array).max()\n        for place"), ("1e-5\n", "step\n")
OF_SUM = ("((up - down) * dnext_h).sum()", "((up * dnext_h).sum() - (down * dnext_h).sum())")


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "changes",
    [[], [*OF_ARRAY, ("/ 2e-5", "/ (2 * step)")], [*OF_ARRAY, OF_SUM, ("/ 2e-5", "/ (2 * step)")]],
    ids=["fixed step", "relative step", "sum"],
)
def test_differences_are_shown_and_cost_nothing(source: Path, tmp_path: Path, changes: list) -> None:
    value, text = "np.tanh(x @ Wx + prev_h @ Wh + b)", NUMERIC
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    mark = graded(source, submission(rnn_step_backward=text.format(value, value)), tmp_path)
    assert (points(mark), [each.kind for each in mark.suspicions]) == ({}, ["lost digits"])


@pytest.mark.slow
def test_gradients_that_are_clipped(source: Path, tmp_path: Path) -> None:
    clipped = "tuple(np.clip(each, -50, 50) for each in ("
    backward = SOLUTIONS["rnn_step_backward"].replace("    return ", f"    return {clipped}")
    backward = backward.replace("da.sum(axis=0)", "da.sum(axis=0)))")
    mark = graded(source, submission(rnn_step_backward=backward), tmp_path)
    assert (points(mark), mark.suspicions) == ({}, ())


@pytest.mark.slow
def test_a_numeric_gradient_with_another_mistake(source: Path, tmp_path: Path) -> None:
    text = NUMERIC.replace("return tuple(gradients)", "gradients[-1] *= 1.001\n    return tuple(gradients)")
    value = "rnn_step_forward(x, prev_h, Wx, Wh, b)[0]"
    mark = graded(source, submission(rnn_step_backward=text.format(value, value)), tmp_path)
    assert points(mark) == {"rnn_step_backward": 0}
    assert kinds(mark) == {"numeric gradient"}


@pytest.mark.slow
def test_helpers_of_a_backward_are_no_forwards(source: Path, tmp_path: Path) -> None:
    text = """
def square_forward(x):
    return x**2

def rnn_step_backward(dnext_h, cache):
    x, prev_h, Wx, Wh, next_h = cache
    for _ in range(100):
        square = square_forward(next_h)
    da = dnext_h * (1 - square)
    return da @ Wx.T, da @ Wh.T, x.T @ da, prev_h.T @ da, da.sum(axis=0)
"""
    mark = graded(source, submission(rnn_step_backward=text), tmp_path)
    assert mark.points == ALL
    assert not mark.suspicions


def test_helpers_of_one_name(source: Path, tmp_path: Path) -> None:
    """Each cell's tests run before the next cell defines the name anew."""
    own = submission()
    for each in own:
        if "def rnn_step_forward" in each["source"]:
            each["source"] = "def act(a):\n    return np.tanh(a)\n\n" + each["source"].replace(
                "np.tanh", "act"
            )
        elif "def rnn_step_backward" in each["source"]:
            each["source"] = "def act(h):\n    return 1 - h**2\n\n" + each["source"].replace(
                "(1 - next_h**2)", "act(next_h)"
            )
    assert graded(source, own, tmp_path).points == ALL


@pytest.mark.slow
def test_constants_and_strings_of_one_name(source: Path, tmp_path: Path) -> None:
    forward = (
        SOLUTIONS["rnn_step_forward"]
        .replace("np.tanh(", "np.tanh(SIGN * ")
        .replace("(SIGN * x @", "(SIGN * (x @")
    )
    forward = "SIGN = 1\nkey = 'SIGN'\n" + forward.replace("+ b)", "+ b))")
    backward = "SIGN = -1\n" + SOLUTIONS["rnn_step_backward"].replace(
        "(1 - next_h**2)", "(1 + SIGN * next_h**2)"
    )
    own = submission("SIGN = None", rnn_step_forward=forward, rnn_step_backward=backward)
    mark = graded(source, own, tmp_path)
    assert mark.points == ALL


@pytest.mark.slow
@pytest.mark.parametrize("end", ["raise RuntimeError", "print('x' * 10_000_000)"])
def test_a_wrong_forward_that_fails_later(source: Path, tmp_path: Path, end: str) -> None:
    """It has no numeric gradient; the backward is marked with the right forward."""
    text = f"""
calls = []

def rnn_step_forward(x, prev_h, Wx, Wh, b):
    calls.append(1)
    if len(calls) > 60:
        {end}
    next_h = 1.01 * np.tanh(x @ Wx + prev_h @ Wh + b)
    return next_h, (x, prev_h, Wx, Wh, next_h)
"""
    mark = graded(source, submission(rnn_step_forward=text), tmp_path)
    assert mark.problem == ""
    assert points(mark)["rnn_step_forward"] == 0
    assert "rnn_step_backward" not in points(mark)


@pytest.mark.slow
def test_complex_steps_are_numeric(source: Path, tmp_path: Path) -> None:
    """They are exact, and call the forward for each number."""
    text = """
def rnn_step_backward(dnext_h, cache):
    inputs = [array.astype(complex) for array in cache[:4]]
    b = (np.arctanh(cache[4]) - cache[0] @ cache[2] - cache[1] @ cache[3])[0].astype(complex)
    gradients = []
    for array in (*inputs, b):
        gradient = np.zeros(array.shape)
        for place in np.ndindex(array.shape):
            array[place] += 1e-30j
            gradient[place] = (rnn_step_forward(*inputs, b)[0].imag * dnext_h).sum() / 1e-30
            array[place] -= 1e-30j
        gradients.append(gradient)
    return tuple(gradients)
"""
    mark = graded(source, submission(rnn_step_backward=text), tmp_path)
    assert points(mark) == {"rnn_step_backward": 0}
    assert kinds(mark) == {"numeric gradient"}


def test_given_helpers_are_defined(tmp_path: Path) -> None:
    """A function of the notebook's own cells, such as sigmoid, is there for the student's functions."""
    notebook, own = cells(SOLUTIONS), submission()
    given = cell("code", "def slope(h):\n    return 1 - h**2")
    notebook.insert(2, given)
    own.insert(2, given)
    for each in own:
        each["source"] = each["source"].replace("(1 - next_h**2)", "slope(next_h)")
    path = write(tmp_path / "source.ipynb", notebook)
    assert graded(path, own, tmp_path).points == ALL


FORWARD_WITHOUT_RESULT = """
def rnn_step_forward(x, prev_h, Wx, Wh, b):
    return no_such_name
"""


@pytest.mark.slow
def test_a_right_backward_of_a_forward_without_result(source: Path, tmp_path: Path) -> None:
    """It is marked with the cache of the solution's forward, if its own has the same form."""
    mark = graded(source, submission(rnn_step_forward=FORWARD_WITHOUT_RESULT), tmp_path)
    assert points(mark)["rnn_step_forward"] == 0
    assert "rnn_step_backward" not in points(mark)
    other = "def rnn_step_backward(dnext_h, cache):\n    return cache['x'], 1, 2, 3, 4"
    mark = graded(
        source, submission(rnn_step_forward=FORWARD_WITHOUT_RESULT, rnn_step_backward=other), tmp_path
    )
    assert "cannot be checked until rnn_step_forward works" in text_of(mark, "rnn_step_backward")


@pytest.mark.slow
def test_a_cache_that_is_a_list(tmp_path: Path) -> None:
    """The form of the cache is that of the notebook's solution, which may be another one than rnnlab's."""
    caches = {"h, (x, h0, Wx, Wh, caches)": "h, caches", "x, h0, Wx, Wh, caches = cache": ""}
    caches |= {"dx, dh_t =": "caches = cache.copy()\n    x, h0, Wx, Wh, _ = caches[0]\n    dx, dh_t ="}
    caches |= {"np.zeros(x.shape)": "np.zeros((len(x), len(caches), x.shape[1]))"}
    of_list = dict(SOLUTIONS)
    for name in ("rnn_forward", "rnn_backward"):
        for old, new in caches.items():
            of_list[name] = of_list[name].replace(old, new)
    path = write(tmp_path / "source.ipynb", cells(of_list))
    own = submission(
        rnn_forward="def rnn_forward(x, h0, Wx, Wh, b):\n    while True: pass",
        **{"rnn_backward": of_list["rnn_backward"]},
    )
    mark = graded(path, own, tmp_path)
    assert points(mark) == {"rnn_forward": 0}
    assert "With the cache of the right rnn_forward" in text_of(mark, "rnn_backward")


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    da = ", "    Wx = Wx.astype(np.float32)\n    da = "),
        ("(1 - next_h**2)", "(1 - next_h**2 + 1e-9)"),
    ],
    ids=["float32", "epsilon"],
)
def test_rounded_formulas_are_no_numeric_gradients(source: Path, tmp_path: Path, old: str, new: str) -> None:
    backward = SOLUTIONS["rnn_step_backward"].replace(old, new)
    assert backward != SOLUTIONS["rnn_step_backward"]
    mark = graded(source, submission(rnn_step_backward=backward), tmp_path)
    assert (points(mark), mark.suspicions) == ({}, ())


@pytest.mark.slow
@pytest.mark.parametrize(
    "helper",
    [
        "ONE = float('1')",
        "ONE = np.ones(1)[0]",
        "ONE = [int(each) for each in '1'][0]",
        "from functools import partial\nONE = partial(int, '1')()",
        "if True:\n    ONE = 1",
        "try:\n    ONE = undefined\nexcept NameError:\n    ONE = 1",
        "from numpy import *\nONE = cos(0.0)",
        "from collections import namedtuple\nCache = namedtuple('Cache', 'one')\nONE = Cache(1).one",
        "from dataclasses import dataclass\n@dataclass\nclass Cache:\n    one: int = 1\nONE = Cache().one",
        "ONE = 1\n?np.tanh\nnp.tanh?\n%timeit 1\nwhile True: pass",
    ],
)
def test_values_that_functions_use(source: Path, tmp_path: Path, helper: str) -> None:
    backward = SOLUTIONS["rnn_step_backward"].replace("(1 - next_h", "(ONE - next_h")
    mark = graded(source, submission(helper, rnn_step_backward=backward), tmp_path)
    assert (points(mark), mark.suspicions) == ({}, ())


@pytest.mark.slow
def test_state_of_the_module_stays(source: Path, tmp_path: Path) -> None:
    keeping = "    global KEPT\n    KEPT = x\n    next_h ="
    forward = SOLUTIONS["rnn_step_forward"].replace("    next_h =", keeping)
    backward = SOLUTIONS["rnn_step_backward"].replace("x.T @ da", "(x + 0 * KEPT.sum()).T @ da")
    mark = graded(source, submission(rnn_step_forward=forward, rnn_step_backward=backward), tmp_path)
    assert points(mark) == {}


def test_results_in_lists(source: Path, tmp_path: Path) -> None:
    forward = SOLUTIONS["rnn_step_forward"].replace("return next_h, (", "return [next_h, (")
    backward = (
        SOLUTIONS["rnn_step_backward"].replace("return da", "return [da").replace("axis=0)", "axis=0)]")
    )
    own = submission(rnn_step_forward=forward.replace("next_h)\n", "next_h)]\n"), rnn_step_backward=backward)
    assert points(graded(source, own, tmp_path)) == {}


def test_a_backward_that_empties_its_cache(source: Path, tmp_path: Path) -> None:
    forward = SOLUTIONS["rnn_forward"].replace("(x, h0, Wx, Wh, caches)\n", "[x, h0, Wx, Wh, caches]\n")
    backward = SOLUTIONS["rnn_backward"].replace("= cache\n", "= [cache.pop(0) for _ in range(5)]\n")
    mark = graded(source, submission(rnn_forward=forward, rnn_backward=backward), tmp_path)
    assert "rnn_backward writes into cache" in text_of(mark, "rnn_backward")


@pytest.mark.slow
def test_a_slip_costs_no_more_than_nothing_written(source: Path, tmp_path: Path) -> None:
    """A right backward has all points, whatever its forward is."""
    slip = SOLUTIONS["rnn_forward"].replace("h[:, t] = prev_h", "h[:, t] = h0")
    assert slip != SOLUTIONS["rnn_forward"]
    mark = graded(source, submission(rnn_forward=slip), tmp_path)
    assert points(mark) == {"rnn_forward": 0}
    assert "With the cache of the right rnn_forward" in text_of(mark, "rnn_backward")


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("old", "new", "found", "named"),
    [
        ("da.sum", "daa.sum", "raises NameError: name 'daa' is not defined, in", set()),
        (
            "    da =",
            "    import subprocess\n    subprocess.run([])\n    da =",
            "uses subprocess",
            {"refused"},
        ),
    ],
)
def test_what_a_backward_of_no_forward_raises(
    source: Path, tmp_path: Path, old: str, new: str, found: str, named: set[str]
) -> None:
    backward = SOLUTIONS["rnn_step_backward"].replace(old, new)
    own = submission(rnn_step_forward=FORWARD_WITHOUT_RESULT, rnn_step_backward=backward)
    mark = graded(source, own, tmp_path)
    text = text_of(mark, "rnn_step_backward")
    assert "cannot be checked until rnn_step_forward works. With the cache of the right" in text
    assert found in text
    assert kinds(mark) == named
