"""Definitions are run, and nothing else of a cell is."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from rnnlab.course.grading.process import Limits, StudentProcess

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the process needs POSIX")


@pytest.mark.slow
def test_definitions_alone_are_run() -> None:
    cells = {
        "first": "def one(x):\n    return x\nprint(undefined)\nprint(1 / 0)\nfor _ in iter(int, 1): pass",
        "broken": "def two(x)\n    return x",
        "late": "three = lambda x: 3 * x\nclass Cache(tuple): pass\nW = np.ones(3)\nfour = one",
        "endless": "def five(x, y=[0 for _ in iter(int, 1)]):\n    return x",
        "last": "def six(x): return one(x)",
        "failing": "@undefined\ndef seven(x): return x",
    }
    with StudentProcess(cells, Limits(seconds=1)) as process:
        process.start()
        assert {"one", "three", "four", "six"} <= process.functions
        assert not {"two", "five", "seven"} & process.functions
        assert process.problems["broken"].startswith(
            "broken: SyntaxError: expected ':', in line 1: def two(x)"
        )
        assert "has no result after 1 s" in process.problems["endless"]
        assert process.problems["failing"].startswith("failing: NameError: name 'undefined' is not defined")
        assert "first" not in process.problems
        np.testing.assert_array_equal(process.call("six", (np.ones(2),))["results"], np.ones(2))


def test_functions_do_not_see_those_that_the_caller_computes_for_another_call() -> None:
    with StudentProcess(
        {"cell": "def one(x):\n    return two(x)\ndef two(x):\n    return x"}, Limits()
    ) as process:
        given = {"two": lambda x: 5 * x, "three": lambda x: x}
        np.testing.assert_array_equal(process.call("one", (np.ones(1),), given=given)["results"], [5])
        np.testing.assert_array_equal(process.call("one", (np.ones(1),))["results"], [1])
        assert process.call("three", (np.ones(1),))["message"] == "three is not defined"


def test_keyword_arguments_reach_functions_that_the_caller_computes() -> None:
    with StudentProcess({"cell": "def one(x):\n    return two(x, scale=x)"}, Limits()) as process:
        given = {"two": lambda x, *, scale=1: 5 * x * scale}
        np.testing.assert_array_equal(process.call("one", (np.full(1, 2.0),), given=given)["results"], [20])
        answer = process.call("one", (np.ones(1),), given={"two": lambda x: x})
        assert answer["message"].startswith("two: ")


def test_functions_see_the_names_of_their_own_cell() -> None:
    cells = {
        "one": "AXIS = 1\ndef one(x):\n    return x + AXIS + LATE",
        "more": "AXIS = 2\nLATE = 10\nkept = lambda x: x\ndef one(x):\n    return 0 * x",
        "two": "AXIS = 3\ndef two(x):\n    return one(kept(x)) + AXIS",
        "end": "AXIS = kept = None",
    }
    with StudentProcess(cells, Limits()) as process:
        for name, expected in (("two", 14), ("one", 11), ("two", 14)):
            np.testing.assert_array_equal(process.call(name, (np.zeros(1),))["results"], [expected])


RESULTS = """
class Cache(tuple):
    def __iter__(self):
        raise SystemExit("none")

class Broken(type):
    def __getattribute__(cls, name):
        raise ValueError("none")

class Failure(Exception, metaclass=Broken):
    pass

def nothing(x):
    return ()

def cyclic(x):
    found = [x]
    found.append(found)
    return found

def own_tuple(x):
    return Cache((x, x))

def fails(x):
    raise Failure

def fine(x):
    return x
"""


def test_results_and_exceptions_of_any_kind() -> None:
    """The process goes on."""
    with StudentProcess({"cell": RESULTS}, Limits()) as process:
        assert process.call("nothing", (np.ones(1),), keep_cache=True)["results"] == ()
        for name, error in (
            ("cyclic", "RecursionError"),
            ("own_tuple", "SystemExit"),
            ("fails", "Exception"),
        ):
            assert process.call(name, (np.ones(1),))["error"] == error
        np.testing.assert_array_equal(process.call("fine", (np.ones(1),))["results"], [1])


COUNTED = """
import collections

def one_forward(x):
    return x

def many(x):
    return [one_forward(x) for _ in range(50)][0]

def hidden(x):
    try:
        collections._sys.setprofile(None)
    except PermissionError:
        pass
    return many(x)

def endless(x):
    return endless(x)

def deep(x):
    try:
        endless(x)
    except RecursionError:
        pass
    return many(x)
"""


def test_calls_are_counted_whatever_a_function_does() -> None:
    with StudentProcess({"cell": COUNTED}, Limits(), counted=["one_forward"]) as process:
        for name in ("many", "hidden", "deep", "many"):
            assert process.call(name, (np.ones(1),))["forwards"] == 50
        assert process.call("endless", (np.ones(1),))["error"] == "RecursionError"


def test_caches_that_are_gone() -> None:
    cell = "def one(x):\n    return x, x\ndef two(x, cache):\n    return cache"
    with StudentProcess({"cell": cell}, Limits()) as process:
        kept = [process.call("one", (np.ones(1),), keep_cache=True)["results"][1] for _ in range(300)]
        np.testing.assert_array_equal(process.call("two", (np.ones(1), kept[-1]))["results"], [1])
        assert process.call("two", (np.ones(1), kept[0]))["message"] == "the cache is gone"


@pytest.mark.one_in(2)
@pytest.mark.parametrize("before", ["", "from IPython.display import Image, display\n"])
def test_display_has_no_effect(before: str) -> None:
    cell = f"{before}def one(x):\n    display(x.shape)\n    return x"
    with StudentProcess({"cell": cell}, Limits()) as process:
        np.testing.assert_array_equal(process.call("one", (np.ones(1),))["results"], [1])
