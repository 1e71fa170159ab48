import sys
import tracemalloc

import numpy as np
import pytest

from rnnlab.data.padding import pad
from rnnlab.data.sentences import SentenceWriter, TokenRows, WordNumbers
from rnnlab.data.vocabulary import END, START, UNK

LISTS = [["a", "b"], [], ["c", "a", "a"], ["b"]]
TOKENS = np.array([4, UNK, 5], np.int32)  # of a, b, c


def written(sentences, numbers=None):
    numbers = WordNumbers() if numbers is None else numbers
    writer = SentenceWriter(numbers)
    for words in sentences:
        writer.add(words)
    return writer.sentences(list(numbers))


def test_sentences_are_the_lists_that_were_added():
    sentences = written(LISTS)
    assert len(sentences) == 4
    assert list(sentences) == LISTS
    assert (sentences[-1], sentences[np.int64(2)]) == (["b"], ["c", "a", "a"])
    assert (sentences[1:3], sentences[::-2]) == (LISTS[1:3], LISTS[::-2])
    with pytest.raises(IndexError):
        sentences[4]
    assert repr(sentences) == "Sentences(4 of 6 words)"


def test_sentences_are_compared_as_lists():
    sentences = written(LISTS)
    assert sentences == LISTS
    assert sentences == written(LISTS)
    assert sentences == written(LISTS, WordNumbers(b=0, a=1, c=2))  # other numbers, the same words
    assert sentences != LISTS[:3]
    assert sentences != [*LISTS[:3], ["a"]]
    assert sentences != 4


def test_writers_share_numbers():
    numbers = WordNumbers()
    first, second = SentenceWriter(numbers), SentenceWriter(numbers)
    first.add(["x", "y"])
    second.add(["z", "x"])
    first.add(["z"])
    words = list(numbers)
    assert (first.sentences(words), second.sentences(words)) == ([["x", "y"], ["z"]], [["z", "x"]])
    assert numbers == {"x": 0, "y": 1, "z": 2}
    assert len(first) == 2


def test_no_sentences():
    sentences = written([])
    assert (len(sentences), list(sentences)) == (0, [])
    rows = TokenRows(sentences, TOKENS, starts=True)
    assert rows.padded(np.array([], np.intp)).shape == (0, 0)
    assert list(rows.joined()) == []


def test_a_sentence_is_a_list():
    with pytest.raises(TypeError, match="a sentence is the string 'a b', expected a list of words"):
        SentenceWriter(WordNumbers()).add("a b")


def test_occurrences(monkeypatch):
    numbers = WordNumbers(elsewhere=0)
    assert written(LISTS, numbers).counts() == {"elsewhere": 0, "a": 3, "b": 2, "c": 1}
    monkeypatch.setattr("rnnlab.data.sentences._COUNTED_AT_ONCE", 4)
    assert written(LISTS, numbers).counts() == {"elsewhere": 0, "a": 3, "b": 2, "c": 1}
    assert written([]).counts() == {}


def test_some_are_kept():
    sentences = written(LISTS).where(np.array([True, False, True, False]))
    assert sentences == [["a", "b"], ["c", "a", "a"]]
    assert sentences.ids.size == 5
    assert written(LISTS).where(np.zeros(4, bool)) == []


@pytest.mark.parametrize("starts", [False, True])
def test_rows_have_their_ends_and_starts(starts):
    before = [START] * starts
    expected = [[*before, 4, UNK, END], [*before, END], [*before, 5, 4, 4, END], [*before, UNK, END]]
    rows = TokenRows(written(LISTS), TOKENS, starts=starts)
    (tokens,) = rows.joined()
    assert tokens.tolist() == [token for row in expected for token in row]
    assert tokens.dtype == np.int32
    np.testing.assert_array_equal(rows.lengths(), [len(row) for row in expected])
    np.testing.assert_array_equal(rows.lengths(np.array([2, 0])), [len(expected[2]), len(expected[0])])
    assert rows.count(UNK) == 2
    for chosen in (np.array([2, 0, 2]), np.array([1]), slice(1, 4), slice(None)):
        some = [np.array(expected[k]) for k in np.arange(4)[chosen]]
        found = rows.padded(chosen)
        assert found.dtype == np.int32
        np.testing.assert_array_equal(found, pad(some))


def test_rows_joined_in_parts(monkeypatch):
    monkeypatch.setattr("rnnlab.data.sentences._AT_ONCE", 3)
    rows = TokenRows(written(LISTS), TOKENS, starts=True)
    parts = list(rows.joined())
    assert len(parts) == 2
    monkeypatch.undo()
    np.testing.assert_array_equal(np.concatenate(parts), *rows.joined())


def test_many_sentences_take_four_bytes_a_word_and_eight_a_sentence():
    words = [sys.intern(f"w{k}") for k in range(100)]
    tracemalloc.start()
    try:
        sentences = written(words[k % 90 : k % 90 + 10] for k in range(20_000))
        size = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert len(sentences) == 20_000
    assert size < 1.15 * 20_000 * (10 * 4 + 8)
