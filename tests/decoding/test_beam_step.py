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


@pytest.mark.parametrize("slots", [1, 2, 9])
def test_a_beam_that_is_wider_than_the_vocabulary(slots, rng):
    """All continuations, best first, then empty entries."""
    V, K = 4, 9
    log_probs = np.log(rng.dirichlet(np.ones(V), size=(1, slots)))
    step = beam_step(np.zeros((1, slots)), log_probs, K, END)
    assert all(each.shape == (1, K) for each in step)
    expected = np.sort(log_probs[0, :, 1:].ravel())[::-1][:K]
    np.testing.assert_array_equal(step.totals[0, : len(expected)], expected)
    assert np.isneginf(step.totals[0, len(expected) :]).all()
