"""Sentences by splits, for language models: rows of <START>, words, <END>, then <NULL>, (N, L).

A sentence is a line of a file, and its words are what the tokenizer makes of it: words, or single characters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rnnlab.data.fingerprint import Fingerprint, joined_hash
from rnnlab.data.language_data import LanguageData, open_lines
from rnnlab.data.sentences import Sentences, TokenRows, Words, sentences_of_splits
from rnnlab.data.split_data import as_rows, drawn
from rnnlab.data.text_inputs import TextInputs, check_tokenizer
from rnnlab.data.vocabulary import Vocabulary
from rnnlab.errors import InputError
from rnnlab.options import Count, check_options
from rnnlab.reading import PathLike
from rnnlab.types import Indices


@dataclass(frozen=True)
class TextSplit:
    """One split: the words and the tokens of each sentence.

    Attributes
    ----------
    sentences : Sentences
        As they were read, including words that the vocabulary lacks.
    rows : TokenRows
        Their tokens: <START>, the words and <END>.
    """

    sentences: Sentences
    rows: TokenRows

    def __repr__(self) -> str:
        return f"TextSplit({len(self):,} sentences)"

    def __len__(self) -> int:
        return len(self.sentences)


class TextData(LanguageData[TextSplit]):
    """Sentences by splits. The vocabulary is built from the training split.

    Parameters
    ----------
    sentences : mapping of str to iterable of sequences of str
        The words of each sentence, by splits. ``train`` is required; ``val`` is for validation. Sentences are
        read once, one after another.
    name : str
        Used in messages.
    min_count : int
        The minimum number of occurrences of a vocabulary word in the training split. Rarer words are <UNK>.
    max_size : int, optional
        The maximum number of words in the vocabulary, without the special ones.
    max_length : int, optional
        The maximum number of words in a training sentence. Longer ones are left out. Other splits are not
        changed.
    max_train : int, optional
        Use only this number of training sentences, drawn with seed 0. The vocabulary is built from all of
        them.
    tokenizer : "text", "spaces" or "characters"
        How the sentences were split into words, which :meth:`prompt` and :meth:`text` need. It is saved with
        a model.

    Attributes
    ----------
    vocabulary : Vocabulary
    inputs : TextInputs
        The vocabulary and the tokenizer.
    splits : dict of str to TextSplit
    num_long : int
        The number of training sentences that were left out because of ``max_length``.

    Raises
    ------
    ValueError
        If an option is out of range, or there is no training sentence.
    TypeError
        If ``sentences`` is not a mapping to lists of words.
    """

    def __init__(
        self,
        sentences: Mapping[str, Iterable[Words]],
        *,
        name: str = "text",
        min_count: Count = 1,
        max_size: Count | None = None,
        max_length: Count | None = None,
        max_train: Count | None = None,
        tokenizer: str = "text",
    ) -> None:
        counts = {
            "min_count": min_count,
            "max_size": max_size,
            "max_length": max_length,
            "max_train": max_train,
        }
        check_options("TextData", TextData, counts)
        check_tokenizer("TextData", tokenizer)
        self.name, self.max_length, self.num_long = name, max_length, 0
        read = self._read(sentences)
        vocabulary = Vocabulary.from_counts(read["train"].counts(), min_count, max_size)
        self.inputs = TextInputs(vocabulary, tokenizer)
        if max_train is not None:
            read["train"] = read["train"].where(drawn(len(read["train"]), max_train))
        tokens = np.array(vocabulary.tokens_of(read["train"].words), np.int32)
        self.splits = {
            split: TextSplit(each, TokenRows(each, tokens, starts=True)) for split, each in read.items()
        }

    def batch(self, split: str, indices: Indices) -> tuple[np.ndarray]:
        """The sentences ``indices`` (N,) as tokens, (N, L) int32."""
        return (self.split(split).rows.padded(as_rows(self, indices)),)

    def row_lengths(self, split: str, indices: np.ndarray) -> np.ndarray:
        """The number of tokens of each of the sentences ``indices`` (N,)."""
        return self.split(split).rows.lengths(indices)

    def fingerprint(self) -> Fingerprint:
        """Sizes and hashes of the tokens of each split, for :meth:`Solver.resume`."""
        return {
            name: f"{len(split)} {joined_hash(int(split.rows.lengths().sum()), split.rows.joined())}"
            for name, split in self.splits.items()
        }

    def describe(self) -> str:
        """A summary: splits, vocabulary, the number of long sentences, and a sentence of each split."""
        words = self.unit
        lines = [f"{self.name}: {len(self.vocabulary):,} {words}"]
        if self.max_length is not None:
            lines.append(
                f"{self.num_long:,} training sentences of more than {self.max_length} {words} were dropped"
            )
        lines.append(f"{'split':<18}{'sentences':>10}{words:>12}{'longest':>9}{'<UNK>':>8}")
        for name, split in self.splits.items():
            mean, longest, unknown = split.rows.summary()
            lines.append(f"{name:<18}{len(split):>10,}{mean:>12}{longest:>9}{unknown:>8}")
        for name, split in self.splits.items():
            for sentence in split.sentences[:1]:
                lines.append(f"{name}: {self.beginning(self.inputs.joined(sentence))}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name} {len(split):,} sentences" for name, split in self.splits.items())
        return f"TextData({self.name}: {sizes}; {len(self.vocabulary):,} words)"

    def _read(self, sentences: Mapping[str, Iterable[Words]]) -> dict[str, Sentences]:
        """The sentences of each split. Long training sentences are left out, and counted."""
        read = sentences_of_splits("TextData", "sentences", sentences, keeps=self._keeps)
        if not len(read.get("train", ())):
            found = ", ".join(f"{split} {len(each)}" for split, each in read.items()) or "no split"
            longer = f", and {self.num_long:,} training sentences longer than max_length" * bool(
                self.num_long
            )
            raise InputError(
                f"TextData: {self.name}: found {found}{longer}, expected sentences of a split train"
            )
        return read

    def _keeps(self, split: str, words: Words) -> bool:
        is_long = split == "train" and self.max_length is not None and len(words) > self.max_length
        self.num_long += is_long
        return not is_long


def open_text(files: Mapping[str, PathLike], *, tokenizer: str = "text", **options: Any) -> TextData:
    """The lines of text files in UTF-8, gzipped or not. Empty lines are left out.

    Parameters
    ----------
    files : mapping of str to path
        The file of each split: ``{"train": "train.txt", "val": "val.txt"}``.
    tokenizer : "text", "spaces" or "characters"
        Split by :func:`tokenize_text`, at spaces only, or into characters.
    **options
        Options of :class:`TextData`.

    Raises
    ------
    OSError, ValueError
        As :func:`rnnlab.reading.text_lines`. The message names the file, and the line if one is wrong.
    ValueError
        If a file has no sentence.
    ValueError, TypeError
        As :class:`TextData`.
    """
    lines, name = open_lines("open_text", files, tokenizer)
    sentences: Any = {split: filter(None, some) for split, some in lines.items()}  # without empty lines
    data = TextData(sentences, tokenizer=tokenizer, **{"name": name, **options})
    for split, path in files.items():
        if not len(data.split(split)):
            raise InputError(f"{path}: found no sentence, expected those of the split {split}")
    return data
