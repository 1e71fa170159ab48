"""Words and their tokens.

A caption of at most ``length - 2`` words is a row of ``length`` tokens: <START>, the words, <END>, then
<NULL> to the end. A longer caption is cut before its <END>.
"""

from __future__ import annotations

import functools
import operator
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from rnnlab.errors import InputError, InputTypeError, OutOfRangeError
from rnnlab.reading import utf8
from rnnlab.special_words import SPECIAL_WORDS

NULL, START, END, UNK = range(4)

_WORD = re.compile(r"[^\W_]+")


def tokenize(sentence: str) -> list[str]:
    """The words of ``sentence``: lower case, split and stripped at everything that is not alphanumeric.

    Accents and vowel signs belong to the letters before them, in any form of Unicode.

    Examples
    --------
    >>> tokenize("A boy wearing a red t-shirt .")
    ['a', 'boy', 'wearing', 'a', 'red', 't', 'shirt']
    """
    text = unicodedata.normalize("NFC", sentence).lower()
    return (_word_with_marks() if has_marks(text) else _WORD).findall(text)


def has_marks(text: str) -> bool:
    """Whether a text has combining characters, which ``re`` does not treat as letters."""
    return not text.isascii() and not combining_marks().isdisjoint(text)


@functools.cache
def combining_marks() -> frozenset[str]:
    """All combining characters, such as accents and vowel signs."""
    characters = map(chr, range(sys.maxunicode + 1))
    return frozenset(each for each in characters if unicodedata.category(each).startswith("M"))


@functools.cache
def _word_with_marks() -> re.Pattern[str]:
    return re.compile(rf"[^\W_](?:[^\W_]|[{''.join(combining_marks())}])*")


class Vocabulary:
    """The words of a model by token, from 0 on; <NULL>, <START>, <END> and <UNK> are tokens 0 to 3.

    Parameters
    ----------
    words : sequence of str
        All words in the order of their tokens. If they do not include the special words, these are prepended.

    Attributes
    ----------
    idx_to_word : list of str
    word_to_idx : dict of str to int

    Raises
    ------
    ValueError
        If a word occurs twice or has a lone surrogate, or a special word is not in its position.
    TypeError
        If ``words`` is one string, or a word is not a string.
    """

    def __init__(self, words: Sequence[str]) -> None:
        _check_words("Vocabulary", words)
        words = list(words)
        for word in words:
            if not isinstance(word, str):
                raise InputTypeError(f"Vocabulary: words has {word!r:.60}, expected strings")
            utf8("Vocabulary: words", word)
        if not set(SPECIAL_WORDS) & set(words):
            words = [*SPECIAL_WORDS, *words]
        if tuple(words[:4]) != SPECIAL_WORDS:
            raise InputError(f"Vocabulary: words begin with {words[:4]}, expected {list(SPECIAL_WORDS)}")
        self.idx_to_word = words
        self.word_to_idx = {word: index for index, word in enumerate(words)}
        if len(self.word_to_idx) != len(words):
            twice = next(word for word, count in Counter(words).items() if count > 1)
            raise InputError(f"Vocabulary: {twice!r} is in words more than once, expected every word once")

    @classmethod
    def build(
        cls, token_lists: Iterable[Sequence[str]], min_count: int = 1, max_size: int | None = None
    ) -> Vocabulary:
        """The words seen at least ``min_count`` times, the most frequent first (ties in alphabetical order).

        Parameters
        ----------
        token_lists : iterable of sequences of str
            The tokenized sentences of the training split only.
        min_count : int
            A rarer word becomes <UNK>.
        max_size : int, optional
            The maximum number of words, without the special ones.

        Raises
        ------
        ValueError
            If ``min_count`` or ``max_size`` is below 1.
        TypeError
            If a sentence is a string rather than a list of tokens.
        """
        counts: Counter[str] = Counter()
        for tokens in token_lists:
            if isinstance(tokens, str):
                raise InputTypeError(
                    f"Vocabulary.build: token_lists has the string {tokens!r}, expected a list of words "
                    "for each sentence"
                )
            counts.update(tokens)
        return cls.from_counts(counts, min_count, max_size)

    @classmethod
    def from_counts(
        cls, counts: Mapping[str, int], min_count: int = 1, max_size: int | None = None
    ) -> Vocabulary:
        """As :meth:`build`, from the number of occurrences of each word of the training split."""
        for name, count in (("min_count", min_count), ("max_size", max_size)):
            if count is not None and count < 1:
                raise InputError(f"Vocabulary: {name} is {count}, expected at least 1")
        frequent = [
            word for word, count in counts.items() if count >= min_count and word not in SPECIAL_WORDS
        ]
        frequent.sort(key=lambda word: (-counts[word], word))
        return cls([*SPECIAL_WORDS, *frequent[:max_size]])

    def tokens_of(self, words: Iterable[str]) -> list[int]:
        """The token of each word. Unknown words are <UNK>, and so is text that looks like a special word.

        Raises
        ------
        TypeError
            If ``words`` is one string.
        """
        _check_words("tokens_of", words)
        found = (self.word_to_idx.get(word, UNK) for word in words)
        return [token if token > UNK else UNK for token in found]

    def encode(self, words: Sequence[str], length: int | None = None) -> np.ndarray:
        """<START>, ``words``, <END> and <NULL> padding as (length,) int32.

        Parameters
        ----------
        words : sequence of str
            Unknown words become <UNK>; words after the first ``length - 2`` are cut.
        length : int, optional
            The number of tokens to return, at least 2. By default ``len(words) + 2``.

        Raises
        ------
        ValueError
            If ``length`` is below 2.
        TypeError
            If ``words`` is one string.
        """
        _check_words("encode", words)
        if length is None:
            length = len(words) + 2
        if length < 2:
            raise InputError(f"encode: length is {length}, expected at least 2, for <START> and <END>")
        tokens = [START, *self.tokens_of(words[: length - 2]), END]
        row = np.full(length, NULL, np.int32)
        row[: len(tokens)] = tokens
        return row

    def decode(self, ids: Iterable[int]) -> str:
        """The sentence of a row of tokens: up to <END>, without <START> and <NULL>.

        Raises
        ------
        IndexError
            If a token is outside the vocabulary.
        TypeError
            If a token is not an integer.
        """
        return " ".join(self.words_of("decode", ids))

    def words_of(self, function: str, ids: Iterable[int]) -> list[str]:
        """The words of :meth:`decode`, as a list. ``function`` begins the messages of errors."""
        words = []
        for each in ids:
            try:
                token = operator.index(each)
            except TypeError:
                raise InputTypeError(
                    f"{function}: ids holds a {type(each).__name__}, expected integers, such as the tokens "
                    "of a Hypothesis"
                ) from None
            if token == END:
                break
            if not 0 <= token < len(self):
                raise OutOfRangeError(
                    f"{function}: token {token} is outside the vocabulary of {len(self)} words"
                )
            if token not in (NULL, START):
                words.append(self.idx_to_word[token])
        return words

    def __len__(self) -> int:
        return len(self.idx_to_word)

    def __contains__(self, word: object) -> bool:
        return word in self.word_to_idx

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and self.idx_to_word == other.idx_to_word

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = [*self.idx_to_word[:8], *["..."] * (len(self) > 8)]
        return f"Vocabulary({len(self)} words: {', '.join(shown)})"


def _check_words(function: str, words: Iterable[str]) -> None:
    if isinstance(words, str):
        raise InputTypeError(f"{function}: words is the string {words!r}, expected a list of words")
