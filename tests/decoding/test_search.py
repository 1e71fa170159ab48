from functools import partial

import numpy as np
import pytest

from rnnlab.decoding import beam_search, greedy, sample

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
