import pytest

from rnnlab.data import ParallelData
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
