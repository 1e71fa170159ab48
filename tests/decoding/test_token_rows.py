from types import SimpleNamespace

import numpy as np

from rnnlab.decoding import Hypothesis
from rnnlab.decoding.token_rows import token_rows

MODEL = SimpleNamespace(start_token=7, end_token=8, null_token=9)
FOUND = [
    Hypothesis(tokens=(1, 2), log_prob=-1.0, score=-1.0, finished=True),
    Hypothesis(tokens=(3, 1, 2), log_prob=-1.0, score=-1.0, finished=True),
    Hypothesis(tokens=(4,), log_prob=-1.0, score=-1.0, finished=False),
]


def test_finished_sentences_end_and_shorter_rows_are_padded():
    tokens, lengths = token_rows(MODEL, FOUND)
    np.testing.assert_array_equal(tokens, [[1, 2, 8, 9], [3, 1, 2, 8], [4, 9, 9, 9]])
    np.testing.assert_array_equal(lengths, [3, 4, 1])


def test_with_the_first_token():
    tokens, lengths = token_rows(MODEL, FOUND, start=True)
    np.testing.assert_array_equal(tokens, [[7, 1, 2, 8, 9], [7, 3, 1, 2, 8], [7, 4, 9, 9, 9]])
    np.testing.assert_array_equal(lengths, [4, 5, 2])


def test_the_longest_sentences_count_as_cut():
    tokens, lengths = token_rows(MODEL, FOUND, max_length=3)
    np.testing.assert_array_equal(tokens, [[1, 2, 8], [3, 1, 2], [4, 9, 9]])
    np.testing.assert_array_equal(lengths, [3, 3, 1])


def test_empty_sentences():
    empty = Hypothesis(tokens=(), log_prob=0.0, score=0.0, finished=False)
    tokens, lengths = token_rows(MODEL, [empty, empty])
    np.testing.assert_array_equal(tokens, [[9], [9]])
    assert lengths.tolist() == [0, 0]
    assert token_rows(MODEL, [])[0].shape == (0, 1)
