"""Mistakes that are no single edit: each changes a result, and the right function is used as it is."""

import numpy as np
import pytest

from rnnlab.course.exercise import copied
from rnnlab.course.exercises import EXERCISES
from rnnlab.course.misconceptions import misconceptions

CASES = [
    (name, kind)
    for name, each in EXERCISES.items()
    for kind in (("forward",) if each.is_loss else ("forward", "backward"))
    if list(misconceptions(each, kind))
]


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_each_is_a_mistake(name, kind):
    exercise = EXERCISES[name]
    draw = exercise.draw(np.random.default_rng(0))
    arguments = tuple(draw.inputs.values())
    function = exercise.forward
    if kind == "backward":
        arguments, function = (*draw.douts, exercise.forward(*copied(arguments))[-1]), exercise.backward
    right = exercise.named(kind, function(*copied(arguments)))
    for message, wrong in misconceptions(exercise, kind):
        found = exercise.named(kind, wrong(function, draw.sizes, *copied(arguments)))
        assert any(not np.allclose(found[key], right[key]) for key in right), message
        assert {key: array.shape for key, array in found.items()} == {
            key: array.shape for key, array in right.items()
        }, message


def test_messages_are_unique():
    for exercise in EXERCISES.values():
        for kind in ("forward", "backward"):
            messages = [each.message for each in misconceptions(exercise, kind)]
            assert len(set(messages)) == len(messages)
