"""Remote functions behave as those of this process."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator

import numpy as np
import pytest

from rnnlab.course.grading import functions
from rnnlab.course.grading.functions import RemoteCache, RemoteFunction
from rnnlab.course.grading.process import Limits, StudentProcess
from rnnlab.course.running import FunctionStopped

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the process needs POSIX")
FUNCTIONS = """
def scale_forward(x, params):
    return x * params["w"], (x, params)

def scale_backward(dout, cache):
    x, params = cache
    return dout * params["w"], {"w": (dout * x).sum()}

def shift_forward(x, *, by=0.0):
    return x + by, None

def careless_backward(dout, cache):
    dout += 1
    cache[1]["w"] *= 2
    return dout

def params_forward(x, params):
    params["w"] += 1
    params["u"] = np.array(5.0)
    params.pop("b", None)
    return x, None

def by_forward(x, *, by):
    by += 1
    return x, None

class Slots:
    __slots__ = ("x", "never")

class Plain:
    pass

def object_forward(x, *, slots):
    cache = Slots() if slots else Plain()
    cache.x = x
    if slots is None:
        cache.all = [Plain() for _ in range(12)]
        for each in cache.all:
            each.all = cache.all
    return x, cache

def object_backward(dout, cache):
    cache.x += dout
    return dout

def todo(x):
    raise NotImplementedError

def other(x):
    return {1, 2}

def endless(x):
    while True: pass

def slow(x):
    import time
    time.sleep(0.15)
    return x

def odd(x):
    raise ValueError("\\udc80")
"""


@pytest.fixture(scope="module")
def process() -> Iterator[StudentProcess]:
    with StudentProcess({"cell": FUNCTIONS}, Limits(seconds=1)) as started:
        yield started


def test_the_time_of_all_calls_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    with StudentProcess({"cell": FUNCTIONS}, Limits(seconds=0.3)) as process:
        process.start()
        slow = RemoteFunction(process, "slow")
        monkeypatch.setattr(functions, "_MOST_TIMES", 1)
        for _ in range(2):
            slow(np.ones(1))
        with pytest.raises(FunctionStopped, match=r"takes more than 0\.3 s in all calls"):
            slow(np.ones(1))
        assert RemoteFunction(process, "slow")(np.ones(1)) == 1


def test_a_message_that_is_no_text_is_escaped(process: StudentProcess) -> None:
    with pytest.raises(FunctionStopped, match=r"raises ValueError: \\udc80"):
        RemoteFunction(process, "odd")(np.ones(1))


def test_forward_and_backward(process: StudentProcess) -> None:
    forward = RemoteFunction(process, "scale_forward", keep_cache=True)
    backward = RemoteFunction(process, "scale_backward")
    out, cache = forward(np.arange(3.0), {"w": np.array(2.0)})
    np.testing.assert_array_equal(out, [0, 2, 4])
    assert isinstance(cache, RemoteCache)
    dx, dparams = backward(np.ones(3), cache)
    np.testing.assert_array_equal(dx, [2, 2, 2])
    assert dparams["w"] == 3


def test_options(process: StudentProcess) -> None:
    shift = RemoteFunction(process, "shift_forward", keep_cache=True, options=["by"])
    assert [*inspect.signature(shift).parameters] == ["by"]
    np.testing.assert_array_equal(shift(np.ones(2), by=np.array([1.0, 2.0]))[0], [2, 3])
    np.testing.assert_array_equal(shift(np.ones(2))[0], [1, 1])


def test_writes_reach_the_caller(process: StudentProcess) -> None:
    forward = RemoteFunction(process, "scale_forward", keep_cache=True)
    _, cache = forward(np.arange(3.0), {"w": np.array(2.0)})
    before, dout = cache[0].copy(), np.zeros(3)
    RemoteFunction(process, "careless_backward")(dout, cache)
    np.testing.assert_array_equal(dout, [1, 1, 1])
    assert not np.array_equal(cache[0], before)
    params = {"w": np.array(2.0), "b": np.array(1.0)}
    RemoteFunction(process, "params_forward")(np.ones(1), params)
    assert params == {"w": 3, "u": 5}
    by = np.ones(1)
    RemoteFunction(process, "by_forward")(np.ones(1), by=by)
    assert by == [2]


def test_writes_into_caches_that_are_objects(process: StudentProcess) -> None:
    backward = RemoteFunction(process, "object_backward")
    for slots in (False, True, None):
        _, cache = RemoteFunction(process, "object_forward", keep_cache=True)(np.ones(1), slots=slots)
        before = cache[0].copy()
        backward(np.zeros(1), cache)
        np.testing.assert_array_equal(cache[0], before)
        backward(np.ones(1), cache)
        assert not np.array_equal(cache[0], before)


def test_errors(process: StudentProcess) -> None:
    with pytest.raises(NotImplementedError):
        RemoteFunction(process, "todo")(np.ones(1))
    with pytest.raises(FunctionStopped, match="raises ValueError: .*, in cell, line 3: return x"):
        RemoteFunction(process, "scale_forward")(np.ones(3), {"w": np.ones(2)})
    assert type(RemoteFunction(process, "other")(np.ones(1))).__name__ == "set"


def test_an_endless_function_is_called_once(process: StudentProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    function = RemoteFunction(process, "endless")
    for _ in range(2):
        with pytest.raises(FunctionStopped, match="has no result after 1 s"):
            function(np.ones(1))
        monkeypatch.setattr(process, "call", None)
