import numpy as np

from rnnlab.decoding.back_pointers import BackPointers
from rnnlab.decoding.beam_step import BeamStep

NONE = -np.inf


def step(words, parents, totals, ended=(NONE, NONE), ended_parents=(0, 0)):
    return BeamStep(*(np.array([row]) for row in (ended, ended_parents, totals, parents, words)))


def test_sentences_are_read_along_their_pointers():
    """a b and c d cross: after the second step the slots hold the continuations of each other's sentence."""
    pointers, beam = BackPointers(1, 2, np.ones(4)), np.array([0])
    pointers.extend(beam, 0, step([5, 6], [0, 0], [-1.0, -2.0]), np.array([True]))
    pointers.extend(beam, 1, step([8, 7], [1, 0], [-3.0, -4.0]), np.array([True]))
    np.testing.assert_array_equal(pointers.history(beam, 2, 2), [[6, 8], [5, 7]])
    pointers.end(beam, 2, step([0, 0], [0, 0], [NONE, NONE], [-3.5, -3.25], [1, 0]))
    pointers.extend(beam, 2, step([0, 0], [0, 0], [NONE, NONE]), np.array([False]))
    ((first, second),) = pointers.hypotheses(1, 2)
    assert (first.tokens, first.log_prob, first.finished) == ((6, 8), -3.25, True)
    assert (second.tokens, second.log_prob) == ((5, 7), -3.5)


def test_unfinished_sentences_follow_the_finished_ones():
    pointers, beam = BackPointers(1, 2, np.ones(3)), np.array([0])
    pointers.end(beam, 0, step([5, 6], [0, 0], [-1.0, -2.0], [-9.0, NONE]))
    pointers.extend(beam, 0, step([5, 6], [0, 0], [-1.0, -2.0]), np.array([True]))
    pointers.extend(beam, 1, step([7, 7], [0, 1], [-3.0, -4.0]), np.array([False]))
    found = pointers.hypotheses(1, 2)[0]
    assert [(one.tokens, one.finished) for one in found] == [((), True), ((5,), False)]
