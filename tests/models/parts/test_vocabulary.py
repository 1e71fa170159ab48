import numpy as np
import pytest

from rnnlab.data import Vocabulary
from rnnlab.models import CaptioningRNN, Seq2Seq
from rnnlab.models.parts.vocabulary import check_vocabulary

GOOD = {"<NULL>": 0, "<START>": 1, "<END>": 2, "a": 3}


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"<END>": 4}, ValueError, "has the token 4 for <END>, expected one from 0 to 3"),
        ({"<START>": -1}, ValueError, "has the token -1 for <START>"),
        ({"<END>": 1}, ValueError, "has the token 1 for both <START> and <END>, expected two"),
        ({"<END>": 2.5}, TypeError, "has 2.5 for <END>, expected an integer"),
        ({"a": 2}, ValueError, "has the token 2 for both <END> and a, expected two"),
        ({"a": None}, TypeError, "has None for a, expected an integer"),
    ],
)
def test_words_that_a_model_cannot_use(changes, error, message):
    with pytest.raises(error, match=f"CaptioningRNN: word_to_idx {message}"):
        CaptioningRNN(GOOD | changes, 3, 2, 4)
    with pytest.raises(error, match=f"Seq2Seq: source_word_to_idx {message}"):
        Seq2Seq(GOOD | changes, GOOD, wordvec_dim=2, hidden_dim=3)


@pytest.mark.parametrize("words", [Vocabulary(["a"]), ["<NULL>", "a"]])
def test_a_vocabulary_is_a_mapping(words):
    with pytest.raises(
        TypeError, match="CaptioningRNN: word_to_idx is a .*, expected a mapping from words to"
    ):
        CaptioningRNN(words, 3, 2, 4)


def test_vocabularies_that_fit():
    check_vocabulary("f", "words", GOOD)
    check_vocabulary("f", "words", {"<NULL>": np.int64(0), "cat": 2, "dog": 3})  # the course's, with a gap
    with pytest.raises(ValueError, match="f: words has no <NULL>, the token of padding"):
        check_vocabulary("f", "words", {"a": 0})
