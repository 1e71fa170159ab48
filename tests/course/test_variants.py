"""Versions of a function with one mistake."""

import cProfile
import sys

import numpy as np
import pytest

from rnnlab.course.exercise import copied
from rnnlab.course.exercises import EXERCISES
from rnnlab.course.variants import variants


def of(name, kind):
    exercise = EXERCISES[name]
    draw = exercise.draw(np.random.default_rng(3))
    function = exercise.forward if kind == "forward" else exercise.backward
    return exercise, draw, variants(exercise, function, draw)


def test_a_mistake_of_a_step_inside_a_sequence():
    exercise, draw, found = of("lstm", "backward")
    message = "da_f lacks the factor prev_c, in lstm_step_backward"
    variant = next(each for each in found if each.message == message)
    x, h0, *weights = copied(draw.inputs).values()
    cache = exercise.forward(x, h0, *weights)[-1]
    wrong, right = variant.function(draw.sizes, *draw.douts, cache), exercise.backward(*draw.douts, cache)
    blocks = (wrong[-1] != right[-1]).reshape(4, h0.shape[1]).any(axis=1)
    assert blocks[1]
    again = exercise.backward(*draw.douts, cache)
    for one, other in zip(right, again, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("rnn_step", "backward", "da has the wrong sign"),
        ("rnn_step", "backward", "da is divided by N: it is averaged where a sum belongs"),
        ("rnn", "backward", "dWx is overwritten at each step, where it should be added to"),
        (
            "rnn",
            "backward",
            "the loop goes forward in time where it should go from the last step to the first",
        ),
        (
            "lstm_step",
            "forward",
            "the blocks are split in the order a_i, a_f, a_g, a_o, expected a_i, a_f, a_o, a_g",
        ),
        ("lstm_step", "forward", "next_h lacks the tanh of next_c"),
        ("word_embedding", "backward", "dW is overwritten where it should be added to"),
        ("attention_keys", "backward", "dWm is zero"),
    ],
)
def test_what_versions_there_are(name, kind, message):
    assert any(each.message == message for each in of(name, kind)[2])


def test_a_profiler_of_the_caller_is_restored():
    def look(*_):
        return None

    sys.setprofile(look)
    try:
        list(of("rnn_step", "forward")[2])
        assert sys.getprofile() is look
    finally:
        sys.setprofile(None)


def test_a_profiler_in_c_of_the_caller_is_restored():
    profile = cProfile.Profile()
    profile.enable()
    before = sys.getprofile()  # the profiler, but None from Python 3.12 on, where it does not need a function
    try:
        list(of("rnn_step", "forward")[2])
        assert sys.getprofile() is before
    finally:
        profile.disable()


def test_inputs_without_a_gradient_have_no_result():
    targets = {each.message.split()[0] for each in of("word_embedding", "backward")[2]}
    assert "dW" in targets
    assert "dx" not in targets
