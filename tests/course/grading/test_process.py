"""A student's process computes, and can do nothing else."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from rnnlab.course.grading import process
from rnnlab.course.grading.process import Limits, Stopped, StudentProcess
from rnnlab.course.grading.sandbox import wire

LIMITS = Limits(seconds=3, megabytes=1500, output_bytes=100_000)

FUNCTIONS = """

def double(x):
    return 2 * x, {"kept": x}

def halve(x, cache):
    return x / 2, cache["kept"]

def write(x, cache):
    x += 1
    cache["kept"][...] = 0
    return x

def helped(x):
    return give(x)[0] + 1

def give(x):
    raise ValueError("replaced by the caller")

def give_forward(x):
    return x

def many(x):
    return [give_forward(x) for _ in range(50)][0]

def fails(x):
    y = 1
    return x @ np.ones(100)

def todo(x):
    raise NotImplementedError("TODO")

def leaves(x):
    raise SystemExit

def recurses(x):
    return recurses(x)

def large(x):
    return np.broadcast_to(np.ones(1), (10**6, 10**6))

def memory(x):
    return np.ones(10**9)

def text(x):
    return "text"
"""
STOPPING = """
import random

def loops(x):
    while True:
        pass

def sleeps(x):
    import time
    time.sleep(1000)

def floods(x):
    while True:
        print("x" * 1000)

def ends(x):
    random._os._exit(3)

def lies(x):
    for number in range(3, 1024):
        try:
            random._os.write(number, b"x" * 100)
        except OSError:
            pass

def fine(x):
    return x
"""
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the process needs POSIX")


@pytest.fixture(scope="module")
def student() -> Iterator[StudentProcess]:
    with StudentProcess({"cell": FUNCTIONS}, LIMITS, counted=["give_forward"]) as process:
        process.start()
        yield process


def call(process: StudentProcess, name: str, *arguments: Any, **options: Any) -> Any:
    answer = process.call(name, arguments or (np.ones(2),), **options)
    assert "error" not in answer, answer
    return answer["results"]


def test_results_and_cache(student: StudentProcess) -> None:
    doubled, cache = call(student, "double", np.arange(3.0), keep_cache=True)
    np.testing.assert_array_equal(doubled, [0, 2, 4])
    halved, kept = call(student, "halve", doubled, cache)
    np.testing.assert_array_equal(halved, [0, 1, 2])
    np.testing.assert_array_equal(kept, [0, 1, 2])


def test_an_exercise_is_the_function_of_its_own_cell() -> None:
    """Whatever a later cell defines under its name, and whichever function is called first."""
    cells = {
        "double": "def double(x):\n    return 2 * x",
        "triple": "def triple(x):\n    return 3 * x",
        "scratch": "def double(x):\n    return 0 * x\n\ndef triple(x):\n    return 0 * x",
    }
    for names in (("double", "triple"), ("triple", "double")):
        with StudentProcess(cells, LIMITS) as process:
            process.start()
            for name in names:
                factor = 2 if name == "double" else 3
                np.testing.assert_array_equal(call(process, name, np.ones(2)), [factor, factor])


def test_writes_are_reported(student: StudentProcess) -> None:
    _, cache = call(student, "double", np.ones(2), keep_cache=True)
    answer = student.call("write", (np.ones(2), cache))
    np.testing.assert_array_equal(answer["arguments"][0], [2, 2])
    assert answer["changed"] == (True, True)
    assert student.call("halve", (np.ones(2), cache))["changed"] == (False, False)


def test_functions_of_the_caller(student: StudentProcess) -> None:
    given = {"give": lambda x: (10 * x, "cache")}
    np.testing.assert_array_equal(call(student, "helped", np.ones(2), given=given), [11, 11])
    answer = student.call("helped", (np.ones(2),), given={"give": lambda x: x @ np.ones(9)})
    assert answer["message"].startswith("give: ")
    assert student.call("helped", (np.ones(2),))["message"] == "replaced by the caller"


def test_calls_of_forwards_are_counted(student: StudentProcess) -> None:
    assert student.call("many", (np.ones(2),))["forwards"] == 50
    assert student.call("double", (np.ones(2),))["forwards"] == 0


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("fails", "ValueError", "matmul"),
        ("todo", "NotImplementedError", "TODO"),
        ("leaves", "SystemExit", ""),
        ("recurses", "RecursionError", "maximum recursion depth"),
        ("memory", "MemoryError", "out of memory"),
        ("nothing", "NameError", "nothing is not defined"),
    ],
)
def test_errors(student: StudentProcess, name: str, error: str, message: str) -> None:
    answer = student.call(name, (np.ones(2),))
    assert answer["error"] == error
    assert message in answer["message"]


def test_error_names_the_line(student: StudentProcess) -> None:
    place = student.call("fails", (np.ones(2),))["place"]
    assert place.startswith("cell, line ")
    assert place.endswith(": return x @ np.ones(100)")


def test_results_that_are_too_large_or_no_arrays(student: StudentProcess) -> None:
    assert student.call("large", (np.ones(2),))["error"] == "MemoryError"
    assert call(student, "text") == "text"


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("loops", "has no result after 0.5 s"),
        ("sleeps", "has no result after 0.5 s"),
        ("floods", "prints more than 100,000 bytes"),
        ("ends", "ends the process"),
        ("lies", "channel of the results"),
    ],
)
def test_stopped_and_started_again(name: str, reason: str) -> None:
    limits = Limits(seconds=0.5, output_bytes=100_000)
    with StudentProcess({"cell": STOPPING}, limits) as process:
        started = time.monotonic()
        with pytest.raises(Stopped, match=reason):
            process.call(name, (np.ones(2),))
        assert time.monotonic() - started < 60
        np.testing.assert_array_equal(call(process, "fine"), np.ones(2))


def test_a_time_limit_of_its_own_is_named() -> None:
    """The start has one that is not that of a call."""
    request = {
        "function": "wait",
        "arguments": (),
        "options": {},
        "keep_cache": False,
        "asked": (),
        "counted": (),
    }
    with StudentProcess({"cell": "def wait():\n    while True: pass"}, Limits(seconds=30)) as process:
        process.start()
        with pytest.raises(Stopped, match="has no result after 0.5 s: there may be a loop without end"):
            process._ask(request, seconds=0.5)


def test_a_process_that_does_not_read_is_stopped() -> None:
    """The request is larger than the buffer of a pipe."""
    frame = io.BytesIO()
    wire.send(frame, {"problems": (), "functions": ()})
    forging = f"""
import random, time

def forge():
    for number in range(3, 1024):
        try:
            random._os.write(number, {frame.getvalue()!r})
        except OSError:
            pass
    time.sleep(60)

forged = forge()
"""
    cells = {"forging": forging, "large": f"def fine(x):\n    return x\n# {'x' * 300_000}"}
    with StudentProcess(cells, Limits(seconds=3)) as process:
        started = time.monotonic()
        process.start()
        assert time.monotonic() - started < 30
        assert process.problems["large"].startswith("large has no result after 3 s")


@pytest.mark.parametrize(
    ("option", "value"), [("seconds", 0), ("seconds", "1"), ("megabytes", 10), ("output_bytes", -1)]
)
def test_bad_limits(option: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{option} is {value!r}"):
        Limits(**{option: value})


def test_a_process_that_does_not_start_says_why(monkeypatch):
    monkeypatch.setattr(process, "_START", "import nothing_of_this_name")
    with (
        StudentProcess({}, LIMITS) as student,
        pytest.raises(OSError, match=r"does not start: it ends the process \(exit status 1\): ModuleNotF"),
    ):
        student.start()
