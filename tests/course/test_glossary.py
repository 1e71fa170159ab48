"""Messages speak of what a student knows: arguments, results, and the symbols of the notebooks' equations."""

import itertools
import re

import numpy as np
import pytest

from rnnlab.course.diagnosis import _known
from rnnlab.course.exercises import EXERCISES
from rnnlab.course.glossary import title_of, worded
from rnnlab.course.variants import _reached

KINDS = [
    (name, kind)
    for name, each in EXERCISES.items()
    for kind in (("forward",) if each.is_loss else ("forward", "backward"))
]

# The equations of the notebooks: states, gates, pre-activations, scores, and their gradients.
SYMBOLS = {
    *("h", "c", "prev_h", "prev_c", "next_h", "next_c", "tanh_c", "x", "t", "beta", "e", "u", "s", "query"),
    *("da", "dc", "dh_t", "dc_t", "dq", "de", "ds", "dalpha", "errors", "keys", "memory", "context"),
    *("dkeys", "dmemory", "dquery", "dcontext", "weights", "dweights", "mask", "dprev_h", "dprev_c"),
    *("dnext_h", "dnext_c", "dWx_t", "dWh_t", "db_t", "dWx", "dWh", "db", "dx", "dh", "dWm", "dW", "dparams"),
    *(f"{name}{gate}" for name in ("", "a_", "da_", "Wh_") for gate in "ifogzr"),
}
WORDS = {  # of English sentences
    *("caches", "gradient", "largest", "name", "place", "read", "real", "rows", "score", "slots", "step"),
}
SYNTAX = re.compile(r"einsum|keepdims|None|np\.zeros|params\[|len\(")


def known(exercise):
    """The arguments and results of an exercise, the parameters in dicts, and the sizes."""
    names = {*exercise.letters}
    for kind in ("forward", "backward"):
        names |= {*exercise.arguments(kind), *exercise.results(kind)}
    return names | {name.removeprefix("d") for name in names}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kind"), KINDS)
def test_no_message_has_a_name_that_students_do_not_know(name, kind):
    exercise = EXERCISES[name]
    function = exercise.forward if kind == "forward" else exercise.backward
    locals_of_plain = {local for each in _reached(function) for local in each.__code__.co_varnames}
    unknown = locals_of_plain - known(exercise) - SYMBOLS - WORDS
    with np.errstate(over="ignore"):
        messages = itertools.chain(*_known(name, kind, False).messages)
    for message in messages:
        assert not unknown & {*re.findall(r"\w+", message)}, message
        assert not SYNTAX.search(message), message


@pytest.mark.parametrize(
    ("message", "module", "expected"),
    [
        ("loss lacks the factor real.sum()", "softmax", "the number of real tokens"),
        ("dx has dx where q belongs", "softmax", "dx has dx where the one-hot label belongs"),
        ("e is not divided by exp_e.sum(axis=1, keepdims=True)", "attention", "divided by the sum of exp(e)"),
        ("de lacks weights[:, :, None] in len(errors)", "arnet", "de lacks weights in N"),
        ("a has h where np.zeros(h.shape) belongs", "lstm", "a has h where zeros belong"),
        ("the call of attend_forward has q", "target_attention", "the call of the attention has q"),
        ("the call of lstm_step_forward has q", "lstm", "the call of lstm_step_forward has q"),
    ],
)
def test_words(message, module, expected):
    assert expected in worded(message, module)


def test_names_within_names_stay():
    assert worded("de is not e, label_q, q", "attention") == "de is not the score e, label_q, q"


def test_titles():
    assert title_of("lstm_step_backward") == "lstm_step_backward"
    assert title_of("softmax_loss") == "the softmax"
    assert title_of("attend_backward") == "the backward of the attention"
