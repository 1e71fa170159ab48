"""Functions of the library, and functions that call them, are not a student's own."""

import cProfile
import functools
import sys

import pytest

import rnnlab.layers
from rnnlab.course import WrongFunction, check, examine
from rnnlab.course.ownership import Watched
from rnnlab.plain.lstm import lstm_step_backward, lstm_step_forward
from rnnlab.plain.rnn import rnn_forward, rnn_step_backward, rnn_step_forward

from .small_notebook import GIVEN, SOLUTIONS

OWN: dict = {}
exec(GIVEN + SOLUTIONS["rnn_step_forward"] + SOLUTIONS["rnn_step_backward"], OWN)


def wrapper(*arguments):
    return rnn_step_forward(*arguments)


def through_layers(x, prev_h, Wx, Wh, b):
    next_h, _ = rnnlab.layers.rnn_step_forward(x, prev_h, Wx, Wh, b)
    return next_h, (x, prev_h, Wx, Wh, next_h)


def test_own_functions_pass():
    report = check("rnn_step", OWN["rnn_step_forward"], OWN["rnn_step_backward"], seed=1, own=True)
    assert report.passed
    assert {*report.errors} == {"next_h", "dx", "dprev_h", "dWx", "dWh", "db"}


@pytest.mark.parametrize(
    ("function", "how"),
    [
        (rnn_step_forward, "is rnnlab.plain.rnn.rnn_step_forward"),
        (rnnlab.layers.rnn_step_forward, "is rnnlab.layers.recurrent.rnn.rnn_step_forward"),
        (wrapper, "calls rnnlab.plain.rnn.rnn_step_forward"),
        (lambda *arguments: rnn_step_forward(*arguments), "calls rnnlab.plain.rnn.rnn_step_forward"),
        (functools.partial(rnn_step_forward), "calls rnnlab.plain.rnn.rnn_step_forward"),
        (through_layers, "calls rnnlab.layers.recurrent.rnn.rnn_step_forward"),
    ],
)
def test_the_librarys_functions_are_refused(function, how):
    expected = f"rnn_step_forward {how}, the library's own: expected a function that you have written"
    report = examine("rnn_step", function, seed=1, own=True)
    assert report.problems == [expected]
    assert not report.wrong
    with pytest.raises(WrongFunction, match=expected):
        check("rnn_step", function, seed=1, own=True)
    assert examine("rnn_step", function, seed=1).passed


def test_the_backward_is_named_as_the_backward():
    report = examine("rnn_step", None, rnn_step_backward, seed=1, own=True)
    assert [each.partition(",")[0] for each in report.problems] == [
        "rnn_step_backward is rnnlab.plain.rnn.rnn_step_backward"
    ]
    report = examine("lstm_step", lstm_step_forward, lambda *given: lstm_step_backward(*given), own=True)
    assert [each.partition(",")[0] for each in report.problems] == [
        "lstm_step_forward is rnnlab.plain.lstm.lstm_step_forward",
        "lstm_step_backward calls rnnlab.plain.lstm.lstm_step_backward",
    ]


def test_a_sequence_may_call_the_librarys_step():
    def forward(x, h0, Wx, Wh, b):
        rnn_step_forward(x[:, 0], h0, Wx, Wh, b)
        return before(x, h0, Wx, Wh, b)

    before = OWN_SEQUENCE["rnn_forward"]
    assert examine("rnn", forward, seed=1, own=True).passed
    assert not examine("rnn", rnn_forward, seed=1, own=True).passed


OWN_SEQUENCE: dict = {}
exec(
    """
import numpy as np
def rnn_forward(x, h0, Wx, Wh, b):
    hidden, last = [], h0
    for t in range(x.shape[1]):
        last = np.tanh(x[:, t] @ Wx + last @ Wh + b)
        hidden.append(last)
    return np.stack(hidden, axis=1), None
""",
    OWN_SEQUENCE,
)


def test_other_problems_are_reported_as_well():
    def rnn_step_backward(dnext_h, cache):
        raise NotImplementedError

    report = examine("rnn_step", wrapper, rnn_step_backward, seed=1, own=True)
    assert [each.partition(",")[0] for each in report.problems] == [
        "rnn_step_backward is not implemented yet",
        "rnn_step_forward calls rnnlab.plain.rnn.rnn_step_forward",
    ]


def test_the_profiler_of_before_comes_back_also_after_an_error():
    def profiler(frame, event, argument):
        pass

    before = sys.getprofile()
    sys.setprofile(profiler)
    try:
        with pytest.raises(ZeroDivisionError):
            Watched(lambda: 1 / 0, "f", ["f"])()
        assert sys.getprofile() is profiler
    finally:
        sys.setprofile(before)


def test_a_profiler_in_c_of_the_caller_comes_back():
    profile = cProfile.Profile()
    profile.enable()
    before = sys.getprofile()  # the profiler, but None from Python 3.12 on, where it does not need a function
    try:
        assert Watched(lambda: 1, "f", ["f"])() == 1
        assert sys.getprofile() is before
    finally:
        profile.disable()
