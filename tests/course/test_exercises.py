"""The list of exercises."""

import pytest

from rnnlab.course.exercises import EXERCISES, exercise


@pytest.mark.parametrize("name", ["lstm_step", "lstm_step_forward", "lstm_step_backward"])
def test_an_exercise_by_the_name_of_a_function(name):
    assert exercise(name) is EXERCISES["lstm_step"]


def test_an_unknown_exercise():
    with pytest.raises(ValueError, match="exercise is 'lstn', expected one of affine, .*lstm_step, lstm"):
        exercise("lstn")


def test_the_functions_are_those_of_the_plain_layers():
    for each in EXERCISES.values():
        assert each.forward.__module__ == f"rnnlab.plain.{each.module}"
        assert (each.backward is None) == each.is_loss
