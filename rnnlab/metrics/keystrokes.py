"""CS-k: the characters saved by word completion (Movshovitz-Attias and Cohen 2013).

Someone types a comment. Before each word the model ranks the vocabulary, given the source and the true words
before it. After n typed characters the list of suggestions has the k most probable words that begin with
them.

    n(w)      the fewest characters after which the true word w is among the k suggestions
    saved(w)  len(w) - n(w)
    CS-k      100 sum_w saved(w) / sum_w len(w) of a comment, then the mean over comments

- A word saves nothing if k longer words rank before it even after its last character, or if the vocabulary
  lacks it. Its characters count.
- Special tokens (<NULL>, <START>, <END>, <UNK>) are never suggested, and are not words of a comment.
- Among equally probable words, the one with the lower token comes first, as in greedy decoding.
- Characters are Unicode code points. Spaces between words do not count.
- A comment without characters has no score and is left out of the mean.

Scores are from 0 to 100, as papers print them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile

import numpy as np

from rnnlab.errors import InputError, InputTypeError, OutOfRangeError
from rnnlab.ops import ops_for
from rnnlab.special_words import SPECIAL_WORDS
from rnnlab.types import Array

_AT_ONCE = 1 << 21  # log-probabilities that are ranked together


@dataclass(frozen=True)
class KeystrokeScores:
    """The result of :func:`keystrokes`.

    Attributes
    ----------
    corpus : dict of str to float
        CS-1, CS-2 and so on: means over sentences, from 0 to 100.
    sentences : dict of str to list of float or None
        By the same names, the score of each sentence; None for a sentence without characters.
    characters : int
        The number of characters of all sentences.
    """

    corpus: dict[str, float]
    sentences: dict[str, list[float | None]]
    characters: int


class PrefixIndex:
    """A sorted vocabulary. The words that begin with a prefix are a contiguous range of it.

    Parameters
    ----------
    vocabulary : sequence of str
        The words by token, V of them.
    special : collection of str
        Words of the vocabulary that are never suggested.

    Attributes
    ----------
    order : (C,) integers
        The tokens of all other words, sorted by word.
    lengths : (V,) integers
        The number of characters of each word.

    Raises
    ------
    ValueError
        If a word occurs twice, or there are only special words.
    """

    def __init__(self, vocabulary: Sequence[str], special: Collection[str] = SPECIAL_WORDS) -> None:
        tokens = [token for token, word in enumerate(vocabulary) if word not in special]
        self.order = np.array(sorted(tokens, key=vocabulary.__getitem__), np.int64)
        words = [vocabulary[token] for token in self.order]
        if not words:
            raise InputError("PrefixIndex: vocabulary has no words, expected at least one")
        for one, other in pairwise(words):
            if one == other:
                raise InputError(f"PrefixIndex: {one!r} is in vocabulary twice, expected each word once")
        self.lengths = np.array([len(word) for word in vocabulary])
        self._places = np.full(len(vocabulary), -1)  # the index of a token in ``order``; -1 for special words
        self._places[self.order] = np.arange(len(words))
        shared = np.array([_num_shared(one, other) for one, other in pairwise(words)], int)
        self._starts, self._stops = _ranges(shared)

    def ahead(self, log_probs: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """The number of suggestions that rank before a word, by the number of typed characters.

        Parameters
        ----------
        log_probs : (M, V)
        tokens : (M,) integers
            The true words, none of them special.

        Returns
        -------
        (M, D + 1)
            Column n is the number of words with the same first n characters that rank before the word.
            A prefix of D characters belongs to one word only.
        """
        own = log_probs[np.arange(len(tokens)), tokens][:, None]
        others = log_probs[:, self.order]
        before = others > own
        before |= (others == own) & (self.order < tokens[:, None])
        counts = np.zeros((len(tokens), len(self.order) + 1), np.int32)
        np.cumsum(before, axis=1, out=counts[:, 1:])
        rows, places = np.arange(len(tokens))[:, None], self._places[tokens]
        return counts[rows, self._stops[places]] - counts[rows, self._starts[places]]

    def saved(self, log_probs: np.ndarray, tokens: np.ndarray, most: int) -> np.ndarray:
        """The characters that lists of 1 to ``most`` suggestions save at each of M words.

        Parameters
        ----------
        log_probs : (M, V)
        tokens : (M,) integers in [0, V)
            The true words. Special words save nothing.
        most : int

        Returns
        -------
        (M, most) integers
        """
        saved = np.zeros((len(tokens), most), np.int64)
        known = np.flatnonzero(self._places[tokens] >= 0)
        at_once = max(1, _AT_ONCE // log_probs.shape[1])
        for rows in np.split(known, range(at_once, len(known), at_once)):
            ahead = self.ahead(log_probs[rows], tokens[rows])
            for k in range(1, most + 1):
                typed = (ahead < k).argmax(axis=1)  # the first: the last column is all 0
                saved[rows, k - 1] = np.maximum(self.lengths[tokens[rows]] - typed, 0)
        return saved


def keystrokes(
    predictions: Iterable[tuple[Array, Array, Array]],
    sentences: Sequence[Sequence[str]],
    vocabulary: Sequence[str],
    *,
    most: int = 5,
    special: Collection[str] = SPECIAL_WORDS,
) -> KeystrokeScores:
    """CS-1 to CS-``most``, the percentage of characters that lists of suggestions save.

    Parameters
    ----------
    predictions : iterable of (rows (n,), tokens (n,), log_probs (n, V))
        The model's distributions under teacher forcing, in parts of any size and order: the sentence of each
        prediction, the true token, and the log-probabilities of all words.
        :func:`rnnlab.decoding.teacher_forced` yields them. Parts are read one by one and are not stored.
    sentences : sequence of sequences of str
        The true words of all sentences, including those that the vocabulary lacks.
    vocabulary : sequence of str
        The words by token.
    most : int
        The longest list of suggestions.
    special : collection of str
        Words of the vocabulary that are never suggested.

    Returns
    -------
    KeystrokeScores

    Raises
    ------
    ValueError
        If no sentence has characters, log-probabilities contain NaN or have another number of columns than
        the vocabulary has words, a word is in the vocabulary twice, or more characters are saved than a
        sentence has.
    TypeError
        If a sentence is a string, or rows or tokens are not integers.
    IndexError
        If a row or a token is out of range.

    Examples
    --------
    "tree" is second among all words, and first among those that begin with "tr". With a list of one word, two
    characters are typed and two are saved; with a list of two words, all four are saved.

    >>> words = ["the", "tree", "a"]
    >>> scores = keystrokes([([0], [1], np.log([[0.6, 0.3, 0.1]]))], [["tree"]], words, most=2)
    >>> scores.corpus
    {'CS-1': 50.0, 'CS-2': 100.0}
    """
    if most < 1:
        raise InputError(f"keystrokes: most is {most}, expected at least 1")
    saved = saved_characters(predictions, len(sentences), vocabulary, most=most, special=special)
    return keystroke_scores(saved, sentences)


def saved_characters(
    predictions: Iterable[tuple[Array, Array, Array]],
    count: int,
    vocabulary: Sequence[str],
    *,
    most: int = 5,
    special: Collection[str] = SPECIAL_WORDS,
) -> np.ndarray:
    """The characters (count, most) that lists of 1 to ``most`` suggestions save in ``count`` sentences.

    The arguments are those of :func:`keystrokes`. The result for several parts of the predictions is the sum
    of the results for the parts.
    """
    index = PrefixIndex(vocabulary, special)
    saved = np.zeros((count, most), np.int64)
    for rows, tokens, log_probs in predictions:
        log_probs = ops_for(log_probs).asnumpy(log_probs)
        if log_probs.shape[1] != len(vocabulary):
            raise InputError(
                f"keystrokes: log_probs has shape {log_probs.shape}, "
                f"expected (n, V) with V = {len(vocabulary)}"
            )
        if np.isnan(log_probs).any():
            raise InputError("keystrokes: log_probs has NaN")
        rows = _checked_numbers("rows", rows, count, "sentences")
        tokens = _checked_numbers("tokens", tokens, len(vocabulary), "words")
        np.add.at(saved, rows, index.saved(log_probs, tokens, most))
    return saved


def _checked_numbers(name: str, numbers: Array, count: int, of: str) -> np.ndarray:
    found = np.asarray(numbers)
    if found.size and found.dtype.kind not in "iu":  # an empty list is an array of floats
        raise InputTypeError(f"keystrokes: {name} has dtype {found.dtype}, expected integers")
    if found.size and not (found.min() >= 0 and found.max() < count):
        wrong = found.min() if found.min() < 0 else found.max()
        raise OutOfRangeError(f"keystrokes: {name} has {wrong}, and there are {count} {of}")
    return found.astype(np.intp)


def keystroke_scores(saved: np.ndarray, sentences: Sequence[Sequence[str]]) -> KeystrokeScores:
    """The scores of sentences from the characters (N, K) that are saved in each; see :func:`keystrokes`."""
    for words in sentences:
        if isinstance(words, str):
            raise InputTypeError(f"keystrokes: sentences has {words!r}, expected a list of its words")
    characters = np.array([sum(map(len, words)) for words in sentences], np.int64)
    if not characters.any():
        raise InputError(f"keystrokes: found no characters in {len(sentences)} sentences, expected words")
    if (saved > characters[:, None]).any():
        row = int(np.flatnonzero((saved > characters[:, None]).any(axis=1))[0])
        raise InputError(
            f"keystrokes: {saved[row].max()} of {characters[row]} characters of sentence {row} are saved, "
            "expected predictions of the words of the sentence, each once"
        )
    percent: list[list[float | None]] = [
        [
            100 * row[k] / count if count else None
            for row, count in zip(saved.tolist(), characters.tolist(), strict=True)
        ]
        for k in range(saved.shape[1])
    ]
    means = [float(np.mean([share for share in column if share is not None])) for column in percent]
    names = [f"CS-{k}" for k in range(1, len(percent) + 1)]
    return KeystrokeScores(
        dict(zip(names, means, strict=True)), dict(zip(names, percent, strict=True)), int(characters.sum())
    )


def _num_shared(one: str, other: str) -> int:
    """The length of the longest common prefix of two words."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _ranges(shared: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The range of the words that begin with each prefix of each of C sorted words.

    Parameters
    ----------
    shared : (C - 1,) integers
        The number of first characters that each word shares with the next one.

    Returns
    -------
    starts, stops : (C, D + 1)
        Entry (i, n) is the range of the words that share the first n characters of word i. If the word has
        fewer characters, and in the last column, it is the word alone.
    """
    C, D = len(shared) + 1, int(shared.max(initial=-1)) + 1
    begins = np.ones((C, D + 1), bool)  # whether another prefix begins at this word
    begins[1:] = shared[:, None] < np.arange(D + 1)
    places = np.arange(C)[:, None]
    starts = np.maximum.accumulate(np.where(begins, places, 0), axis=0)
    ends = np.ones((C, D + 1), bool)  # whether a prefix ends at this word
    ends[:-1] = begins[1:]
    stops = np.minimum.accumulate(np.where(ends, places + 1, C)[::-1], axis=0)[::-1]
    return starts, stops
