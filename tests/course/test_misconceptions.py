"""Mistakes that are no single edit: each changes a result, and the right function is used as it is."""

import inspect

import numpy as np
import pytest

from rnnlab.course.check import examine
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


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gru_step", "gru", "simplified_gru_step", "simplified_gru"])
def test_z_and_1_minus_z_of_the_papers(name):
    """Other papers and libraries compute z * g + (1 - z) * prev_h."""
    exercise = EXERCISES[name]
    source = inspect.getsource(exercise.plain)
    for old, new in {
        "(1 - z) * g + z * prev_h": "z * g + (1 - z) * prev_h",
        "(prev_h - g)": "(g - prev_h)",
        "dnext_h * (1 - z) * (1 - g**2)": "dnext_h * z * (1 - g**2)",
        "dnext_h * z +": "dnext_h * (1 - z) +",
    }.items():
        assert old in source
        source = source.replace(old, new)
    space = {}
    exec(source, space)
    forward, backward = map(space.get, exercise.functions)
    for functions in ((forward,), (None, backward)):
        report = examine(name, *functions, seed=1)
        (named,) = [each.mistakes[0][0] for each in report.diagnoses]
        assert named == "z and 1 - z are exchanged, expected next_h = (1 - z) * g + z * prev_h"
