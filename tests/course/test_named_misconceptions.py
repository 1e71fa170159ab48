"""The mistakes of single exercises are named where a student makes them."""

from __future__ import annotations

import numpy as np
import pytest

from rnnlab.course.check import examine
from rnnlab.course.exercises import EXERCISES
from rnnlab.course.named_misconceptions import BY_NAME
from rnnlab.plain import arnet, discriminative, target_attention
from rnnlab.plain.attention import attend_forward


def test_they_are_of_exercises():
    for name, kind in BY_NAME:
        assert name in EXERCISES
        assert kind in ("forward", "backward")


def reads_itself(h, h0, params):
    """Student code: the memory of step t ends with the state of step t."""
    *_, cache = target_attention.target_attention_forward(h, h0, params)
    (N, T, _), contexts = h.shape, np.zeros(h.shape)
    weights = np.zeros((N, T, T))
    for t in range(T):
        query = h[:, t - 1] if t else h0
        contexts[:, t], weights[:, t, : t + 1], _ = attend_forward(query, h[:, : t + 1], params)
    return contexts, weights, cache


def mean_of_errors(h, h0, params):
    _, cache = arnet.arnet_forward(h, h0, params)
    return (cache[2] ** 2).mean(), cache


def mean_over_steps(h, h0, params):
    _, cache = arnet.arnet_forward(h, h0, params)
    return (cache[2] ** 2).sum(axis=2).mean(), cache


def pairs_of_all_words(thoughts, words, params):
    _, cache = discriminative.discriminative_forward(thoughts, words, params)
    s, loss = (thoughts @ params["W"]).max(axis=1), 0.0
    for n in range(len(s)):
        for j in set(words[n]) - {-1}:
            for i in range(s.shape[1]):
                loss += max(0.0, 1 - (s[n, j] - s[n, i]))
    return loss / len(s), cache


@pytest.mark.parametrize(
    ("name", "forward", "backward", "message"),
    [
        (
            "target_attention",
            reads_itself,
            target_attention.target_attention_backward,
            "a state reads itself",
        ),
        ("arnet", mean_of_errors, arnet.arnet_backward, "loss is the mean of all squared errors"),
        ("arnet", mean_over_steps, arnet.arnet_backward, "loss is divided by N T"),
        (
            "discriminative",
            pairs_of_all_words,
            discriminative.discriminative_backward,
            "loss has pairs of two words of the caption",
        ),
    ],
)
def test_a_student_s_mistake_is_named(name, forward, backward, message):
    forward.__name__ = f"{name}_forward"
    assert message in str(examine(name, forward, backward))
