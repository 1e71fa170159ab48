"""Many sentences in little memory: the numbers of their words in one array.

    words     every distinct word, once
    ids       the numbers of the words of one sentence after another
    starts    where each sentence begins in ids; at the end, where the last one ends

A word takes 4 bytes and a sentence 8, so ten million sentences of 13 words take 0.6 GB.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, overload

import numpy as np

from rnnlab.data.vocabulary import END, NULL, START, UNK
from rnnlab.errors import InputTypeError

Words = Sequence[str]

_SHOWN = 30  # the most words of a sentence in a summary
_AT_ONCE = 1 << 14  # sentences whose tokens are joined at once
_COUNTED_AT_ONCE = 1 << 22  # words that are counted at once


class WordNumbers(dict[str, int]):
    """The number of each word. A new word gets the next one."""

    def __missing__(self, word: str) -> int:
        self[word] = len(self)
        return self[word]


class SentenceWriter:
    """Collects sentences.

    Parameters
    ----------
    numbers : WordNumbers
        May be shared with other writers, so that their sentences have the same numbers.
    ending : str, optional
        A word that is added to the end of each sentence.
    """

    def __init__(self, numbers: WordNumbers, ending: str | None = None) -> None:
        self._numbers, self._ending = numbers, () if ending is None else (ending,)
        self._ids, self._starts = array("i"), array("q", [0])

    def add(self, words: Iterable[str]) -> None:
        """Add a sentence.

        Raises
        ------
        TypeError
            If ``words`` is one string instead of a sequence of them.
        """
        if isinstance(words, str):
            raise InputTypeError(
                f"a sentence is the string {words!r:.60}, expected a list of words; a tokenizer makes one"
            )
        for some in (words, self._ending):
            self._ids.extend(map(self._numbers.__getitem__, some))
        self._starts.append(len(self._ids))

    def sentences(self, words: list[str]) -> Sentences:
        """The sentences, without a copy; ``words`` lists the words by number. No more can be added."""
        return Sentences(words, np.asarray(self._ids, np.int32), np.asarray(self._starts, np.int64))

    def __len__(self) -> int:
        return len(self._starts) - 1


class Sentences(Sequence[list[str]]):
    """Sentences as lists of words, which are created on access. A slice is a list of sentences.

    Parameters
    ----------
    words : list of str
    ids : (num_words,) int32
    starts : (num_sentences + 1,) int64
    """

    def __init__(self, words: list[str], ids: np.ndarray, starts: np.ndarray) -> None:
        self.words, self.ids, self.starts = words, ids, starts

    def counts(self) -> dict[str, int]:
        """The number of occurrences of each of ``words``."""
        found = np.zeros(len(self.words), np.int64)
        for start in range(0, len(self.ids), _COUNTED_AT_ONCE):
            found += np.bincount(self.ids[start : start + _COUNTED_AT_ONCE], minlength=len(found))
        return dict(zip(self.words, found.tolist(), strict=True))

    def where(self, kept: np.ndarray) -> Sentences:
        """The sentences for which ``kept`` (num_sentences,) is true."""
        lengths = np.diff(self.starts)
        starts = np.concatenate([[0], np.cumsum(lengths[kept])])
        return Sentences(self.words, self.ids[np.repeat(kept, lengths)], starts)

    def __len__(self) -> int:
        return len(self.starts) - 1

    @overload
    def __getitem__(self, index: int) -> list[str]: ...
    @overload
    def __getitem__(self, index: slice) -> list[list[str]]: ...
    def __getitem__(self, index: int | slice) -> list[str] | list[list[str]]:
        if isinstance(index, slice):
            return [self[k] for k in range(len(self))[index]]
        k = range(len(self))[index]
        return [self.words[number] for number in self.ids[self.starts[k] : self.starts[k + 1]].tolist()]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Sentences({len(self):,} of {len(self.ids):,} words)"


class TokenRows:
    """The tokens of sentences as models read them, created on access.

    A row has the sentence's tokens and <END>, with ``starts`` <START> before them.

    Parameters
    ----------
    sentences : Sentences
    tokens : (num_distinct_words,) int32
        The token of each word of ``sentences.words``.
    starts : bool
    """

    def __init__(self, sentences: Sentences, tokens: np.ndarray, *, starts: bool) -> None:
        self._sentences, self._tokens = sentences, tokens
        self._before = int(starts)  # tokens before the words

    def lengths(self, rows: np.ndarray | slice = slice(None)) -> np.ndarray:
        """The number of tokens of each row, or of some rows; (N,) int64."""
        starts = self._sentences.starts
        return starts[1:][rows] - starts[:-1][rows] + self._before + 1

    def padded(self, rows: np.ndarray | slice) -> np.ndarray:
        """Some rows as one array, padded with <NULL>: (N, longest) int32."""
        lengths = self.lengths(rows)[:, None]
        columns = np.arange(lengths.max(initial=0))
        found = np.full((len(lengths), len(columns)), NULL, np.int32)
        found[:, : self._before] = START
        found[columns == lengths - 1] = END
        is_word = (columns >= self._before) & (columns < lengths - 1)
        places = self._sentences.starts[:-1][rows, None] + columns - self._before
        found[is_word] = self._tokens[self._sentences.ids[places[is_word]]]
        return found

    def joined(self) -> Iterator[np.ndarray]:
        """The tokens of all rows, one row after another, in parts: (num_tokens,) int32 each."""
        starts = self._sentences.starts
        for first in range(0, len(self), _AT_ONCE):
            last = min(first + _AT_ONCE, len(self))
            lengths = self.lengths(slice(first, last))  # not padded, because one row may be very long
            ends = np.cumsum(lengths)
            found, is_word = np.empty(lengths.sum(), np.int32), np.ones(lengths.sum(), bool)
            found[ends - 1], is_word[ends - 1] = END, False
            if self._before:
                found[ends - lengths], is_word[ends - lengths] = START, False
            found[is_word] = self._tokens[self._sentences.ids[starts[first] : starts[last]]]
            yield found

    def count(self, token: int) -> int:
        """The number of words with this token."""
        return int(np.count_nonzero((self._tokens == token)[self._sentences.ids]))

    def summary(self) -> tuple[str, str, str]:
        """The mean and the largest number of words of a sentence, and the share of <UNK> among all words."""
        num_words = self.lengths() - self._before - 1
        mean = num_words.mean() if len(self) else 0.0
        unknown = self.count(UNK) / max(1, num_words.sum())
        return f"{mean:.1f}", f"{num_words.max(initial=0)}", f"{unknown:.1%}"

    def __len__(self) -> int:
        return len(self._sentences)


def sentences_of_splits(
    function: str,
    argument: str,
    splits: Mapping[str, Iterable[Any]],
    *,
    keeps: Callable[[str, Any], bool] = lambda split, words: True,
    ending: str | None = None,
) -> dict[str, Sentences]:
    """The sentences of each split, which share a list of words.

    Parameters
    ----------
    function, argument : str
        For messages: the function, and its argument ``splits``.
    splits : mapping of str to iterable of iterables of str
    keeps : callable
        Whether to keep a sentence, from its split and its words.
    ending : str, optional
        A word that is added to the end of each sentence.

    Raises
    ------
    TypeError
        If ``splits`` is not a mapping to lists of words.
    """
    if not isinstance(splits, Mapping):
        raise InputTypeError(
            f"{function}: {argument} is a {type(splits).__name__}, expected a dict of {argument} by "
            f'splits, such as {{"train": {argument}}}'
        )
    numbers, written = WordNumbers(), {}
    for split, sentences in splits.items():
        writer = written[split] = SentenceWriter(numbers, ending)
        for words in sentences:
            if keeps(split, words):
                writer.add(words)
    words = checked_words(function, numbers)
    return {split: each.sentences(words) for split, each in written.items()}


def first_words(words: Words) -> str:
    """The first words of a sentence."""
    return " ".join([*words[:_SHOWN], *["..."] * (len(words) > _SHOWN)])


def checked_words(function: str, numbers: WordNumbers) -> list[str]:
    """The distinct words by number.

    Raises
    ------
    TypeError
        If one is not a string. The error begins with ``function``.
    """
    for word in numbers:
        if not isinstance(word, str):
            raise InputTypeError(
                f"{function}: a sentence has {word!r:.40}, expected words, which are strings"
            )
    return list(numbers)
