"""CS-k against a slow version: list the suggestions after each typed character."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rnnlab.metrics import PrefixIndex, keystrokes
from rnnlab.metrics.keystrokes import SPECIAL_WORDS

MOST = 4


def slowly_saved(log_probs, vocabulary, word, k):
    """The characters of one word that are saved, from the definition."""
    words = [token for token, each in enumerate(vocabulary) if each not in SPECIAL_WORDS]
    by_rank = sorted(words, key=lambda token: (-log_probs[token], token))
    for typed in range(len(word) + 1):
        suggestions = [token for token in by_rank if vocabulary[token].startswith(word[:typed])][:k]
        if word in [vocabulary[token] for token in suggestions]:
            return len(word) - typed
    return 0


def slowly(log_probs, vocabulary, sentences, places, k):
    """CS-k; the log-probabilities of word i of sentence n are ``log_probs[places[n][i]]``."""
    shares = []
    for words, rows in zip(sentences, places, strict=True):
        saved = [
            slowly_saved(log_probs[row], vocabulary, word, k) for word, row in zip(words, rows, strict=True)
        ]
        if any(words):
            shares.append(100 * sum(saved) / sum(map(len, words)))
    return sum(shares) / len(shares)


# Few letters, so that words share prefixes and are prefixes of each other; some are more than one byte long.
WORDS = st.lists(st.text("abé😀\u0301", min_size=1, max_size=5), min_size=1, max_size=12, unique=True)
ANY_WORDS = st.lists(
    st.text(st.characters(codec="utf-8"), min_size=1, max_size=4), min_size=1, max_size=8, unique=True
)
NUMBERS = st.sampled_from([-math.inf, -3.0, -2.0, -1.5, -1.0])  # with ties


@st.composite
def problems(draw):
    """A vocabulary, sentences of its words and of other ones, and log-probabilities for each word."""
    words = [word for word in draw(WORDS | ANY_WORDS) if word not in SPECIAL_WORDS]
    vocabulary = [*SPECIAL_WORDS, *words]
    word = st.sampled_from([*words, "unheard-of"])
    sentences = draw(
        st.lists(st.lists(word, max_size=3), min_size=1, max_size=3).filter(lambda some: any(some))
    )
    count = sum(map(len, sentences))
    log_probs = draw(
        st.lists(
            st.lists(NUMBERS, min_size=len(vocabulary), max_size=len(vocabulary)),
            min_size=count,
            max_size=count,
        )
    )
    return vocabulary, sentences, np.array(log_probs, np.float32)


@pytest.mark.slow
@given(problems(), st.randoms(use_true_random=False))
def test_equal_to_the_slow_version(problem, random):
    vocabulary, sentences, log_probs = problem
    flat = [(row, word) for row, words in enumerate(sentences) for word in words]
    order = list(range(len(flat)))
    random.shuffle(order)
    cut = random.randrange(len(flat) + 1)
    unknown = vocabulary.index("<UNK>")
    predictions = [
        (
            np.array([flat[k][0] for k in part], int),
            np.array(
                [vocabulary.index(w) if (w := flat[k][1]) in vocabulary else unknown for k in part], int
            ),
            log_probs[np.array(part, int)],
        )
        for part in (order[:cut], order[cut:])
    ]
    found = keystrokes(predictions, sentences, vocabulary, most=MOST)
    numbers = iter(range(len(flat)))
    places = [[next(numbers) for _ in words] for words in sentences]
    for k in range(1, MOST + 1):
        expected = slowly(log_probs, vocabulary, sentences, places, k)
        assert found.corpus[f"CS-{k}"] == pytest.approx(expected, abs=1e-9)
    assert found.characters == sum(len(word) for _, word in flat)
    assert list(found.corpus.values()) == sorted(found.corpus.values())


def test_many_words_at_once(rng):
    """More log-probabilities than are ranked together, and words that share several characters."""
    letters = "ab"
    words = [a + b + c + d for a in letters for b in letters for c in letters for d in letters]
    vocabulary = [*SPECIAL_WORDS, *rng.permutation([*words, *(word[:3] for word in words[::2])]).tolist()]
    index = PrefixIndex(vocabulary)
    log_probs = rng.standard_normal((120_000, len(vocabulary)), dtype=np.float32)
    tokens = rng.integers(4, len(vocabulary), len(log_probs))
    saved = index.saved(log_probs, tokens, 3)
    for row in range(0, len(tokens), 4001):
        word = vocabulary[tokens[row]]
        assert saved[row].tolist() == [slowly_saved(log_probs[row], vocabulary, word, k) for k in (1, 2, 3)]


def score(vocabulary, log_probs, sentences, tokens, **options):
    rows = [row for row, words in enumerate(sentences) for _ in words]
    predictions = [(np.array(rows, int), np.array(tokens, int), np.array(log_probs, float))]
    return keystrokes(predictions, sentences, vocabulary, **options)


def test_a_word_behind_its_own_continuations_saves_nothing():
    """Even the full spelling of "a" is the third of three suggestions."""
    found = score(["a", "ab", "ac"], [[-3.0, -1.0, -2.0]], [["a"]], [0], most=3)
    assert found.corpus == {"CS-1": 0.0, "CS-2": 0.0, "CS-3": 100.0}


def test_special_words_are_not_suggested():
    vocabulary = [*SPECIAL_WORDS, "a", "b"]
    found = score(vocabulary, [[0.0, 0.0, 0.0, 0.0, -9.0, -8.0]], [["b"]], [5], most=1)
    assert found.corpus == {"CS-1": 100.0}
    assert score(vocabulary, [[0.0, 0, 0, 0, -9, -8]], [["b"]], [5], most=1, special=()).corpus == {
        "CS-1": 0.0
    }


def test_unknown_words_and_the_end_count_by_their_characters_alone():
    vocabulary = [*SPECIAL_WORDS, "ab"]
    log_probs = [[0.0] * 5] * 2
    found = score(vocabulary, log_probs, [["ab", "xyz"]], [4, 3], most=1)
    assert found.corpus == {"CS-1": 40.0}
    end = (np.array([0]), np.array([2]), np.zeros((1, 5)))
    first = (np.array([0]), np.array([4]), np.zeros((1, 5)))
    assert keystrokes([first, end], [["ab"]], vocabulary, most=1).corpus == {"CS-1": 100.0}


def test_of_equal_words_the_first_token_is_suggested():
    found = score(["b", "a"], [[-1.0, -1.0], [-1.0, -1.0]], [["b"], ["a"]], [0, 1], most=1)
    assert found.sentences == {"CS-1": [100.0, 0.0]}


def test_the_mean_is_over_comments_with_words():
    found = score(["a", "bb"], [[0.0, -1.0], [0.0, -1.0]], [["a"], [], ["bb"]], [0, 1], most=2)
    assert found.sentences == {"CS-1": [100.0, None, 50.0], "CS-2": [100.0, None, 100.0]}
    assert found.corpus == {"CS-1": 75.0, "CS-2": 100.0}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["a"], [[0.0]], [[]], []), "found no characters in 1 sentences"),
        ((["a"], [[0.0, 0.0]], [["a"]], [0]), r"log_probs has shape \(1, 2\), expected \(n, V\) with V = 1"),
        ((["a"], [[math.nan]], [["a"]], [0]), "log_probs has NaN"),
        ((["a", "a"], [[0.0, 0.0]], [["a"]], [0]), "'a' is in vocabulary twice"),
        ((["<END>"], [[0.0]], [["a"]], [0]), "vocabulary has no words"),
        ((["a", "abc"], [[-1.0, 0.0]], [["a"]], [1]), "3 of 1 characters of sentence 0 are saved"),
    ],
)
def test_errors(arguments, message):
    with pytest.raises(ValueError, match=message):
        score(*arguments)


@pytest.mark.parametrize(
    ("rows", "tokens", "error", "message"),
    [
        ([-1], [0], IndexError, "rows has -1, and there are 1 sentences"),
        ([1], [0], IndexError, "rows has 1, and there are 1 sentences"),
        ([0], [-2], IndexError, "tokens has -2, and there are 2 words"),
        ([0], [2], IndexError, "tokens has 2, and there are 2 words"),
        ([0.9], [1], TypeError, "rows has dtype float64, expected integers"),
        ([0], [1.7], TypeError, "tokens has dtype float64, expected integers"),
    ],
)
def test_numbers_out_of_range(rows, tokens, error, message):
    with pytest.raises(error, match=f"keystrokes: {message}"):
        keystrokes([(rows, tokens, np.zeros((1, 2)))], [["a"]], ["a", "b"])


def test_sentences_are_lists_of_words():
    with pytest.raises(TypeError, match="sentences has 'a tree', expected a list of its words"):
        keystrokes([([0], [1], np.zeros((1, 2)))], ["a tree"], ["a", "tree"])


def test_no_suggestions():
    with pytest.raises(ValueError, match="most is 0, expected at least 1"):
        keystrokes([], [["a"]], ["a"], most=0)
