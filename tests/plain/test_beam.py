"""Beam search of rnnlab.decoding is compared with the plain one."""

import numpy as np
import pytest

from rnnlab.decoding import beam_search

from ..decoding.toys import END, START, TableModel
from .cases import PLAIN


def plain_search(model, source, beam_size, max_length):
    def step(position, word):
        return model.table[source, position, word], position + 1

    return PLAIN.beam_search(step, 0, start=START, end=END, beam_size=beam_size, max_length=max_length)


@pytest.mark.parametrize("beam_size", [1, 2, 3, 5])
@pytest.mark.parametrize("seed", range(5))
def test_the_same_sentences(beam_size, seed):
    model = TableModel.random(np.random.default_rng(seed), sources=4, words=3, positions=6)
    model.table[..., START] = -50.0  # <START> is a word that may be chosen
    found = beam_search(model, np.arange(4), beam_size=beam_size, max_length=5, n_best=1)
    for source, (best,) in enumerate(found):
        (log_prob, words), *_ = plain_search(model, source, beam_size, 5)
        assert best.finished
        assert best.tokens == tuple(words)
        assert best.log_prob == pytest.approx(log_prob, rel=1e-12)


def test_a_beam_of_one_is_greedy():
    table = np.log(np.array([[0.1, 0.2, 0.7], [0.1, 0.6, 0.3], [0.1, 0.3, 0.6]]))

    def step(state, word):
        return table[min(state, 2)], state + 1

    (found,) = PLAIN.beam_search(step, 0, start=0, end=1, beam_size=1, max_length=4)
    assert found == (pytest.approx(np.log(0.7 * 0.6)), [2])


def test_a_wide_beam_finds_the_best_of_all_sentences(rng):
    model = TableModel.random(rng, sources=1, words=2, positions=4)
    best = model.sentences(0, 3)[0]
    log_prob, words = plain_search(model, 0, 200, 3)[0]
    assert log_prob == pytest.approx(best.log_prob, rel=1e-12)
    assert tuple(words) == best.tokens
