"""The source of right functions without their options computes the same."""

import ast

import numpy as np
import pytest

from rnnlab.course.exercise import copied
from rnnlab.course.exercises import EXERCISES
from rnnlab.course.plain_source import definition_of
from rnnlab.plain import attention, lstm, softmax


@pytest.mark.parametrize("name", EXERCISES)
def test_same_results(name):
    exercise = EXERCISES[name]
    inputs = tuple(exercise.draw(np.random.default_rng(0)).inputs.values())
    forward = compiled(exercise.forward)
    right, found = exercise.forward(*copied(inputs)), forward(*copied(inputs))
    for one, other in zip(right[: len(exercise.outs)], found, strict=False):
        np.testing.assert_allclose(other, one, rtol=1e-12)
    if exercise.backward is None:
        np.testing.assert_allclose(found[-1], right[-1], rtol=1e-12)
        return
    douts = exercise.draw(np.random.default_rng(0)).douts
    expected = exercise.named("backward", exercise.backward(*copied(douts), right[-1]))
    gradients = exercise.named("backward", compiled(exercise.backward)(*copied(douts), right[-1]))
    for key, array in expected.items():
        np.testing.assert_allclose(gradients[key], array, rtol=1e-12)


def compiled(function):
    space = dict(function.__globals__)
    exec(compile(ast.Module([definition_of(function)], []), "<plain>", "exec"), space)
    return space[function.__name__]


@pytest.mark.parametrize(
    ("function", "there", "gone"),
    [
        (lstm.lstm_forward, "prev_h = next_h", "m[t]"),
        (lstm.lstm_backward, "return (dx, dh_t, dWx, dWh, db)", "is None"),
        (softmax.softmax_loss, "q = np.arange(V) == y[:, None]", "max(M, 1)"),
        (
            attention.attention_step_forward,
            "weights = exp_e / exp_e.sum(axis=1, keepdims=True)",
            "where=mask",
        ),
        (attention.attention_keys_backward, "dkeys.sum(axis=(0, 1))", "bilinear"),
        (attention.doubly_stochastic_loss, "missing = 1 - weights.sum(axis=1)", "m.any"),
    ],
)
def test_options_are_gone(function, there, gone):
    text = ast.unparse(definition_of(function))
    assert there in text
    assert gone not in text
