from functools import partial

import numpy as np
import pytest

from rnnlab.decoding import Hypothesis, beam_search, greedy, sample

from .toys import TableModel


@pytest.mark.parametrize("search", [greedy, beam_search, partial(sample, rng=np.random.default_rng(0))])
def test_scores_are_no_log_probabilities(search, rng):
    model = TableModel.random(rng)
    model.table += 9
    with pytest.raises(ValueError, match=r"log-probabilities hold \d.*, expected at most 0: the log_softmax"):
        search(model, [0, 1], max_length=3)


@pytest.mark.parametrize("search", [beam_search, greedy, partial(sample, rng=0)])
def test_what_is_no_model(search, rng):
    model, source = TableModel.random(rng), np.zeros((1, 1))
    lacks = "without start, advance, start_token, end_token, expected a model that writes sentences"
    with pytest.raises(TypeError, match=f"model is a ndarray {lacks}$"):
        search(source, model)
    with pytest.raises(
        TypeError, match=f"model is a list {lacks}; for several models make an Ensemble of them"
    ):
        search([model, model], source)


def test_equal_hypotheses():
    """The comparison of two arrays is an array, which has no truth value."""

    def found(alignment=None, tokens=(4, 5)):
        return Hypothesis(tokens, -1.5, -0.5, True, alignment)

    one, other = np.array([[0.25, 0.75]]), np.array([[0.5, 0.5]])
    equal = found(one), found(one.copy())
    assert equal[0] == equal[1]
    assert (equal[0] != equal[1]) is False
    assert hash(equal[0]) == hash(equal[1])
    assert equal[0] == tuple(equal[1])
    assert found() == tuple(found())
    assert hash(found()) == hash(tuple(found()))
    assert found() == found()
    for different in (found(), found(other), found(one[:, :1]), found(one, (4,)), (), tuple(equal[0])[:4], 3):
        assert equal[0] != different
        assert (equal[0] == different) is False
