import numpy as np
import pytest

from rnnlab.decoding.beam_step import beam_step

END = 0


def test_by_hand():
    """Two sentences of one beam: the second has the best continuation, the first the best end."""
    log_probs = np.log([[[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]]])
    step = beam_step(np.log([[0.5, 0.5]]), log_probs, 2, END)
    np.testing.assert_allclose(np.exp(step.totals), [[0.35, 0.15]])
    np.testing.assert_array_equal(step.words, [[2, 1]])
    np.testing.assert_array_equal(step.parents, [[1, 0]])
    np.testing.assert_allclose(np.exp(step.ended), [[0, 0.25]])
    assert step.ended_parents[0, 1] == 0


def test_a_penalty_changes_the_choice_alone():
    log_probs = np.log([[[0.1, 0.5, 0.4]]])
    penalty = np.array([[0.0, 1.0, 0.0]])
    step = beam_step(np.zeros((1, 1)), log_probs, 1, END, penalty)
    assert step.words[0, 0] == 2
    assert np.exp(step.totals[0, 0]) == pytest.approx(0.4)


def test_of_equals_the_first_word_of_the_first_sentence():
    step = beam_step(np.zeros((1, 2)), np.full((1, 2, 4), np.log(0.25)), 2, END)
    np.testing.assert_array_equal(step.words, [[1, 2]])
    np.testing.assert_array_equal(step.parents, [[0, 0]])


def test_nan_is_refused():
    with pytest.raises(ValueError, match="beam_search: the model's log-probabilities hold NaN"):
        beam_step(np.zeros((1, 1)), np.full((1, 1, 3), np.nan), 1, END)
