import numpy as np
import pytest

from rnnlab.data import ParallelData
from rnnlab.data.subwords import Subwords
from rnnlab.data.translation_inputs import TranslationInputs

PAIRS = {"train": [(["ein", "hund"], ["a", "dog"])]}


@pytest.mark.parametrize(
    ("tokenizer", "words"), [("text", ["ein", "hund", "!"]), ("spaces", ["Ein", "Hund!"])]
)
def test_sentences_are_split_as_those_of_the_data(tokenizer, words):
    data = ParallelData(PAIRS, tokenizer=tokenizer)
    inputs = TranslationInputs.from_saved(data.vocabulary.idx_to_word, data.preprocessing())
    assert inputs.source_vocabulary == data.source_vocabulary
    assert inputs.vocabulary == data.vocabulary
    assert inputs.tokenize("Ein Hund!") == words


def test_unknown_words_come_once_and_in_order():
    data = ParallelData(PAIRS)
    inputs = TranslationInputs.from_saved(data.vocabulary.idx_to_word, data.preprocessing())
    assert inputs.unknown_words(["zwei", "hund", "rote", "zwei"]) == ["zwei", "rote"]
    assert inputs.unknown_words([]) == []


def test_sentences_are_encoded_as_the_data_are():
    data = ParallelData({"train": [(["ein", "hund"], ["a", "dog"]), (["hund"], ["dog"])]})
    inputs = TranslationInputs.from_saved(data.vocabulary.idx_to_word, data.preprocessing())
    source, _ = data.batch("train", np.arange(2))
    np.testing.assert_array_equal(inputs.encode(["ein hund", "hund"]), source)
    assert inputs.encode(["Zwei"]).tolist() == [[3, 2]]
    assert inputs.encode([]).shape == (0, 0)


def test_a_repr_is_one_line():
    data = ParallelData(PAIRS)
    assert repr(data.split("train")) == "ParallelSplit(1 pairs)"
    assert repr(Subwords(b"123")) == "Subwords(a model of 3 bytes)"


def test_sentences_and_words_are_lists():
    data = ParallelData(PAIRS)
    inputs = TranslationInputs.from_saved(data.vocabulary.idx_to_word, data.preprocessing())
    with pytest.raises(TypeError, match="encode: sentences is the string 'ein hund', expected a list"):
        inputs.encode("ein hund")
    with pytest.raises(TypeError, match="detokenize: words is the string 'a dog', expected a list of words"):
        inputs.detokenize("a dog")
    assert inputs.detokenize(["a", "dog"]) == "a dog"
