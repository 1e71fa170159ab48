from types import SimpleNamespace

import numpy as np

from rnnlab.reporting.page.words import Word, token_rows, words_of


def test_weights_are_relative_to_the_greatest():
    weights = np.array([[0.5, 0.25, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    assert words_of(["a", "b"], weights) == [Word("a", "ff8000", "0.50"), Word("b", "000000", "0.00")]
    assert words_of(["a"], None) == [Word("a")]


def test_sentences_become_rows_of_tokens():
    model = SimpleNamespace(null_token=0, start_token=1, word_to_idx={"<END>": 2})
    np.testing.assert_array_equal(token_rows(model, [(7, 8), ()]), [[1, 7, 8, 2], [1, 2, 0, 0]])
    assert token_rows(model, []).shape == (0, 2)
