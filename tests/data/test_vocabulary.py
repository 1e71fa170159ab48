import numpy as np
import pytest

from rnnlab.data.vocabulary import END, NULL, SPECIAL_WORDS, START, UNK, Vocabulary, tokenize
from rnnlab.decoding import Hypothesis


@pytest.fixture
def vocabulary():
    return Vocabulary(["a", "dog", "runs"])


@pytest.mark.parametrize(
    ("sentence", "words"),
    [
        ("A boy wearing a red t-shirt .", ["a", "boy", "wearing", "a", "red", "t", "shirt"]),
        ("It's  2 o_clock!\n", ["it", "s", "2", "o", "clock"]),
        ("Zwei Männer hören", ["zwei", "männer", "hören"]),
        (" . ", []),
        ("cafe\u0301 CAF\u00c9", ["caf\u00e9", "caf\u00e9"]),  # an accent of its own, and a letter with it
        (
            "\u0939\u093f\u0928\u094d\u0926\u0940 \u092e\u0947\u0902",
            ["\u0939\u093f\u0928\u094d\u0926\u0940", "\u092e\u0947\u0902"],
        ),  # vowel signs
        ("\u0130stanbul", ["i\u0307stanbul"]),
    ],
)
def test_tokenize(sentence, words):
    assert tokenize(sentence) == words


def test_special_words_are_the_first_four(vocabulary):
    assert vocabulary.idx_to_word == [*SPECIAL_WORDS, "a", "dog", "runs"]
    assert [vocabulary.word_to_idx[word] for word in SPECIAL_WORDS] == [NULL, START, END, UNK] == [0, 1, 2, 3]
    assert Vocabulary(vocabulary.idx_to_word) == vocabulary
    assert vocabulary != Vocabulary(["a"])
    assert vocabulary != vocabulary.idx_to_word
    assert len(vocabulary) == 7
    assert "dog" in vocabulary
    assert "cat" not in vocabulary
    assert "7 words" in repr(vocabulary)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["a", "<NULL>"], r"begin with .*expected \['<NULL>'"),
        ([*SPECIAL_WORDS, "a", "b", "a"], "'a' is in words more than once"),
        (["a", "\ud800"], r"^Vocabulary: words: found '\\ud800', expected text, without lone surrogates"),
    ],
)
def test_bad_word_lists(words, message):
    with pytest.raises(ValueError, match=message):
        Vocabulary(words)


@pytest.mark.parametrize("words", [{0: "a"}, ["a", b"b"], ["a", None]])
def test_words_are_strings(words):
    """A dictionary from tokens to words, as some data sets have it, would be a vocabulary of its tokens."""
    with pytest.raises(TypeError, match="Vocabulary: words has (0|b'b'|None), expected strings"):
        Vocabulary(words)


def test_build_orders_by_count_then_alphabet_and_drops_the_rare():
    sentences = [["b", "a", "c"], ["c", "b", "<UNK>"], ["c", "d"], ["e", "a"]]
    assert Vocabulary.build(sentences, min_count=2).idx_to_word[4:] == ["c", "a", "b"]
    assert Vocabulary.build(sentences, max_size=2).idx_to_word[4:] == ["c", "a"]
    for option in ("min_count", "max_size"):
        with pytest.raises(ValueError, match=f"{option} is 0, expected at least 1"):
            Vocabulary.build(sentences, **{option: 0})
    with pytest.raises(TypeError, match="Vocabulary.build: token_lists has the string 'a dog', expected"):
        Vocabulary.build(["a dog"])


def test_counts_give_the_same_words_as_sentences():
    counts = {"b": 1, "a": 1, "<UNK>": 9, "never": 0, "c": 3}
    assert Vocabulary.from_counts(counts).idx_to_word[4:] == ["c", "a", "b"]
    assert Vocabulary.from_counts(counts, 3, 1).idx_to_word[4:] == ["c"]


def test_encode_pads_cuts_and_keeps_the_end(vocabulary):
    np.testing.assert_array_equal(vocabulary.encode(["a", "cat"], 6), [START, 4, UNK, END, NULL, NULL])
    np.testing.assert_array_equal(vocabulary.encode(["a", "dog", "runs"], 4), [START, 4, 5, END])
    np.testing.assert_array_equal(vocabulary.encode(["a"]), [START, 4, END])
    np.testing.assert_array_equal(vocabulary.encode(["a"], 2), [START, END])
    assert vocabulary.encode([]).dtype == np.int32


def test_encode_needs_room_for_the_special_words(vocabulary):
    with pytest.raises(ValueError, match="encode: length is 1, expected at least 2"):
        vocabulary.encode(["a"], 1)


def test_a_string_is_no_list_of_words(vocabulary):
    for function, refused in {
        "encode": vocabulary.encode,
        "tokens_of": vocabulary.tokens_of,
        "Vocabulary": Vocabulary,
    }.items():
        with pytest.raises(
            TypeError, match=f"^{function}: words is the string 'a dog', expected a list of w"
        ):
            refused("a dog")


def test_decode_inverts_encode(vocabulary):
    words = ["a", "dog", "runs"]
    assert vocabulary.decode(vocabulary.encode(words, 9)) == "a dog runs"
    assert vocabulary.decode([4, NULL, END, 5]) == "a"
    with pytest.raises(IndexError, match="token 7 is outside the vocabulary of 7 words"):
        vocabulary.decode([7])


def test_decode_needs_tokens():
    words = Vocabulary(["<NULL>", "<START>", "<END>", "<UNK>", "dog"])
    hypothesis = Hypothesis((4, 2), -1.0, -1.0, True)
    assert words.decode(hypothesis.tokens) == "dog"
    with pytest.raises(
        TypeError, match="decode: ids holds a tuple, expected integers, such as the tokens of"
    ):
        words.decode(hypothesis)
