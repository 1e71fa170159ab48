"""Exercises: inputs of random sizes, and results by name."""

import numpy as np
import pytest

from rnnlab.course.exercise import WrongResults, copied, in_letters, shape_of
from rnnlab.course.exercises import EXERCISES

STEP = EXERCISES["lstm_step"]


def test_shapes_and_letters():
    assert shape_of("N T 4H", {"N": 2, "T": 3, "H": 5}) == (2, 3, 20)
    assert shape_of("", {}) == ()
    assert in_letters("N 4H") == "(N, 4H)"
    assert in_letters("4H") == "(4H,)"


@pytest.mark.parametrize("name", EXERCISES)
def test_sizes_differ_and_shapes_are_those_of_the_letters(name):
    exercise = EXERCISES[name]
    draw = exercise.draw(np.random.default_rng(0))
    drawn = [size for letter, size in draw.sizes.items() if letter not in exercise.sizes]
    assert len(set(drawn)) == len(drawn)
    results = exercise.forward(**copied(draw.inputs))
    found = exercise.named("forward", results)
    if exercise.backward is not None:
        found |= exercise.named("backward", exercise.backward(*draw.douts, results[-1]))
    shapes = exercise.results("forward") | exercise.gradients
    assert {key: array.shape for key, array in found.items()} == {
        key: shape_of(axes, draw.sizes) for key, axes in shapes.items()
    }


@pytest.mark.parametrize("name", EXERCISES)
def test_hard_draws(name):
    exercise = EXERCISES[name]
    single, *others = exercise.hard_draws(np.random.default_rng(0))
    assert {single.sizes[letter] for letter in "NT" if letter in single.sizes} == {1}
    assert [each.note for each in others] == [*exercise.hard]
    for draw in others:
        assert draw.note.startswith("where ")
        common = exercise.draw(np.random.default_rng(0))
        assert {*draw.inputs} == {*common.inputs}


def test_a_copy_shares_nothing():
    array = np.zeros(2)
    made = copied({"a": (array, 1), "b": array})
    made["a"][0][0] = made["b"][1] = 1
    assert not array.any()


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (
            None,
            "lstm_step_backward returns None, expected 6: .*; is its return missing\\?",
        ),
        ((np.ones(1),) * 5, "lstm_step_backward returns 5 results, expected 6"),
        ((None, *(np.ones(1),) * 5), "lstm_step_backward: dx is None, expected an array"),
        (([1.0], *(np.ones(1),) * 5), "lstm_step_backward: dx is a list, expected an array"),
        ((np.ones(1, complex), *(np.ones(1),) * 5), "dx has dtype complex128, expected float64"),
    ],
)
def test_wrong_results(returned, message):
    with pytest.raises(WrongResults, match=message):
        STEP.named("backward", returned)


def test_gradients_of_a_dict():
    keys = EXERCISES["attention_keys"]
    with pytest.raises(
        WrongResults, match="dparams is a dict with the keys Wm, expected a dict with the keys Wm, b"
    ):
        keys.named("backward", (np.ones(1), {"Wm": np.ones(1)}))
    with pytest.raises(
        WrongResults,
        match="dparams is an array of shape .* and dtype float64, expected a dict with the keys Wm, b",
    ):
        keys.named("backward", (np.ones(1), np.ones(1)))


def test_arguments_by_name():
    assert STEP.arguments("forward") == STEP.inputs
    assert STEP.arguments("backward") == {"dnext_h": "N H", "dnext_c": "N H", "cache": None}
    attention = EXERCISES["attention_step"]
    assert attention.arguments("forward") == {
        "query": "N H",
        "keys": "N L A",
        "memory": "N L C",
        "params": None,
    }
    assert attention.arguments("backward") == {"dcontext": "N C", "cache": None}
    assert EXERCISES["temporal_softmax_loss"].arguments("forward") == {
        "x": "N T V",
        "y": "N T",
        "mask": "N T",
    }


@pytest.mark.parametrize("name", EXERCISES)
def test_drawn_inputs_have_the_shapes_of_their_axes(name):
    exercise = EXERCISES[name]
    draw = exercise.draw(np.random.default_rng(0))
    for argument, axes in exercise.arguments("forward").items():
        if axes is not None:
            assert draw.inputs[argument].shape == shape_of(axes, draw.sizes)
