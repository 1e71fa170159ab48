"""Sentence pairs by splits, with epochs and batches of a source and a target for the solver.

    source    words, <END>, then <NULL>             (N, L), L the longest of the batch
    target    <START>, words, <END>, then <NULL>    (N, M), M the longest of the batch

The source ends with <END>, too (as in Bahdanau et al. 2015), so that attention has a neutral position and no
source is empty.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Literal

import numpy as np

from rnnlab.data.fingerprint import Fingerprint, joined_hash, word_hash
from rnnlab.data.sentences import (
    Sentences,
    SentenceWriter,
    TokenRows,
    WordNumbers,
    Words,
    checked_words,
    first_words,
)
from rnnlab.data.split_data import SplitData, as_rows, batches, check_batch_size, drawn
from rnnlab.data.subwords import SUBWORDS, Subwords
from rnnlab.data.vocabulary import NULL, Vocabulary
from rnnlab.errors import InputError, InputTypeError
from rnnlab.layers.checks import check_rng
from rnnlab.options import Count, check_options
from rnnlab.types import Indices

Pair = tuple[Words, Words]  # a source and a target

_WINDOW = 20  # batches whose pairs are sorted by length together


@dataclass(frozen=True)
class ParallelSplit:
    """One split: the words and the tokens of each pair.

    Attributes
    ----------
    source, target : Sentences
        As they were read, including words that the vocabulary lacks.
    source_rows, target_rows : TokenRows
        Their tokens: the words and <END>, in the target after <START>.
    further : tuple of Sentences
        Further references of all sources, for scores of translations.
    """

    source: Sentences
    target: Sentences
    source_rows: TokenRows
    target_rows: TokenRows
    further: tuple[Sentences, ...] = ()

    def __repr__(self) -> str:
        return f"ParallelSplit({len(self):,} pairs)"

    @property
    def references(self) -> list[list[list[str]]]:
        """The reference translations of each source: the target, and the further ones."""
        return [list(each) for each in zip(self.target, *self.further, strict=True)]

    def __len__(self) -> int:
        return len(self.source)


class ParallelData(SplitData[ParallelSplit]):
    """Sentence pairs by splits. The vocabularies are built from the training split.

    Parameters
    ----------
    pairs : mapping of str to iterable of (source words, target words)
        The splits. ``train`` is required; ``val`` is for validation. Pairs are read once, one after another.
    name : str
        Used in messages.
    min_count : int
        The minimum number of occurrences of a vocabulary word in the training split.
    max_size : int, optional
        The maximum number of words in a vocabulary, without the special ones.
    max_length : int, optional
        The maximum number of words in either sentence of a training pair. Other splits are not changed.
    long_pairs : "drop" or "cut"
        Whether longer training pairs are dropped or cut.
    max_train : int, optional
        Use only this number of training pairs, drawn with seed 0. The vocabularies are built from all pairs.
    tokenizer : str
        The name of the tokenizer that split the sentences, which is saved with a model.
    subwords : (Subwords, Subwords), optional
        The models that split source and target into pieces of words, with tokenizer "sentencepiece". They are
        saved, too.
    references : mapping of str to sequence of iterables of words, optional
        For some splits, further references: each iterable has a sentence for each source. BLEU compares
        translations with all of them; the target alone is trained on and has a perplexity.

    Attributes
    ----------
    source_vocabulary, vocabulary : Vocabulary
        The vocabularies of the source and of the target.
    splits : dict of str to ParallelSplit
    num_long : int
        The number of training pairs that were dropped or cut.

    Raises
    ------
    ValueError
        If an option is out of range, there is no training pair, or further references are not of a split, or
        not as many as its sources.
    TypeError
        If ``pairs`` is not a mapping to pairs of sentences, which are lists of words.
    """

    in_memory = True  # a batch is a copy of rows

    def __init__(
        self,
        pairs: Mapping[str, Iterable[Pair]],
        *,
        name: str = "pairs",
        min_count: Count = 1,
        max_size: Count | None = None,
        max_length: Count | None = None,
        long_pairs: Literal["drop", "cut"] = "drop",
        max_train: Count | None = None,
        tokenizer: str = "text",
        subwords: tuple[Subwords, Subwords] | None = None,
        references: Mapping[str, Sequence[Iterable[Words]]] | None = None,
    ) -> None:
        self.name, self.tokenizer, self.subwords = name, tokenizer, subwords
        options = {
            "min_count": min_count,
            "max_size": max_size,
            "max_length": max_length,
            "long_pairs": long_pairs,
            "max_train": max_train,
        }
        check_options("ParallelData", ParallelData, options)
        if long_pairs == "cut" and max_length is None:
            raise InputError("ParallelData: long_pairs is 'cut', which needs max_length")
        if (tokenizer == SUBWORDS) != (subwords is not None):
            raise InputError(
                f"ParallelData: tokenizer is {tokenizer!r} and subwords "
                f"{'none' if subwords is None else 'given'}, expected subwords with {SUBWORDS!r} alone"
            )
        self.max_length, self.long_pairs, self.num_long = max_length, long_pairs, 0
        sentences = self._read(pairs)
        self.source_vocabulary, self.vocabulary = (
            self._vocabulary(side, train, min_count, max_size)
            for side, train in enumerate(sentences["train"])
        )
        if max_train is not None:
            source, target = sentences["train"]
            kept = drawn(len(source), max_train)
            sentences["train"] = source.where(kept), target.where(kept)
        source_tokens, target_tokens = (
            np.array(vocabulary.tokens_of(train.words), np.int32)
            for vocabulary, train in zip(
                (self.source_vocabulary, self.vocabulary), sentences["train"], strict=True
            )
        )
        further = self._further(references or {}, sentences)
        self.splits = {
            split: ParallelSplit(
                source,
                target,
                TokenRows(source, source_tokens, starts=False),
                TokenRows(target, target_tokens, starts=True),
                further.get(split, ()),
            )
            for split, (source, target) in sentences.items()
        }

    def with_references(self, split: str, references: Sequence[Iterable[Words]]) -> ParallelData:
        """The same data with further references of a split, in addition to those that it has.

        Parameters
        ----------
        split : str
            Not "train".
        references : sequence of iterables of words
            Each has a sentence for each source.

        Raises
        ------
        KeyError
            If there is no such split.
        ValueError
            If it is "train", or there are not as many sentences as sources.
        """
        chosen = self.split(split)
        sentences = {name: (each.source, each.target) for name, each in self.splits.items()}
        further = chosen.further + self._further({split: references}, sentences)[split]
        data = copy.copy(self)
        data.splits = {**self.splits, split: replace(chosen, further=further)}
        return data

    def epoch(self, split: str, batch_size: int, rng: np.random.Generator | None = None) -> list[np.ndarray]:
        """The pairs of one pass over ``split``, a batch at a time; one batch may be smaller.

        Parameters
        ----------
        split : str
        batch_size : int
        rng : Generator, optional
            Shuffles. Among the pairs of every 20 batches, those of similar length form a batch; the batches
            are in random order. Without it the pairs are in their original order.
        """
        chosen = self.split(split)
        N = len(chosen)
        check_batch_size(batch_size)
        check_rng("epoch", rng)
        if rng is None:
            return batches(np.arange(N), batch_size)
        order = rng.permutation(N)
        source, target = chosen.source_rows.lengths(), chosen.target_rows.lengths()
        for start in range(0, N, _WINDOW * batch_size):
            window = order[start : start + _WINDOW * batch_size]
            window[:] = window[np.lexsort((target[window], source[window]))]
        shuffled = batches(order, batch_size)
        return [shuffled[k] for k in rng.permutation(len(shuffled))]

    def batch(self, split: str, indices: Indices) -> tuple[np.ndarray, np.ndarray]:
        """The sources (N, L) and the targets (N, M) of the pairs ``indices`` (N,), int32."""
        chosen, rows = self.split(split), as_rows(self, indices)
        return chosen.source_rows.padded(rows), chosen.target_rows.padded(rows)

    def row_lengths(self, split: str, indices: np.ndarray) -> np.ndarray:
        """The number of tokens of each pair of ``indices`` (N,), source and target together."""
        chosen = self.split(split)
        return chosen.source_rows.lengths(indices) + chosen.target_rows.lengths(indices)

    @staticmethod
    def num_tokens(batch: tuple[np.ndarray, np.ndarray]) -> int:
        """The number of tokens that a model predicts in ``batch``: words of the target and <END>."""
        return int(np.count_nonzero(batch[1][:, 1:] != NULL))

    def preprocessing(self) -> dict[str, Any]:
        """The entries that a checkpoint saves for new sentences: source vocabulary and tokenizer.

        Models of sentencepiece are saved as bytes.
        """
        saved: dict[str, Any] = {
            "tokenizer": self.tokenizer,
            "source_vocabulary": list(self.source_vocabulary.idx_to_word),
        }
        if self.subwords is not None:
            for name, subwords in zip(("source_subwords", "subwords"), self.subwords, strict=True):
                saved[name] = np.frombuffer(subwords.model, np.uint8)
        return saved

    def fingerprint(self) -> Fingerprint:
        """Sizes and hashes of the tokens of each split, for :meth:`Solver.resume`.

        Splits other than "train" also have a hash of their words, because scores compare translations with
        them.
        """
        tokens = {
            f"{name} {side}": f"{len(rows)} {joined_hash(int(rows.lengths().sum()), rows.joined())}"
            for name, split in self.splits.items()
            for side, rows in (("source", split.source_rows), ("target", split.target_rows))
        }
        words = {
            f"{name} references": word_hash(chain.from_iterable(chain(split.target, *split.further)))
            for name, split in self.splits.items()
            if name != "train"
        }
        return tokens | words

    def describe(self) -> str:
        """A summary: splits, vocabularies, the number of long pairs, and a pair of each split."""
        source, target = len(self.source_vocabulary), len(self.vocabulary)
        lines = [f"{self.name}: {source:,} source words, {target:,} target words"]
        if self.max_length is not None:
            lines.append(
                f"{self.num_long:,} training pairs of more than {self.max_length} words were "
                f"{'dropped' if self.long_pairs == 'drop' else 'cut'}"
            )
        lines.append(f"{'split':<18}{'pairs':>9}{'words':>16}{'longest':>14}{'<UNK>':>16}")
        for name, split in self.splits.items():
            summaries = [split.source_rows.summary(), split.target_rows.summary()]
            words, longest, unknown = (" | ".join(column) for column in zip(*summaries, strict=True))
            lines.append(f"{name:<18}{len(split):>9,}{words:>16}{longest:>14}{unknown:>16}")
        for name, split in self.splits.items():
            if split.further:
                lines.append(f"{name}: {1 + len(split.further)} references of each source")
        for name, split in self.splits.items():
            for pair in zip(split.source[:1], split.target[:1], strict=True):
                lines.append(f"{name}: {' | '.join(map(first_words, pair))}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name} {len(split):,} pairs" for name, split in self.splits.items())
        words = f"{len(self.source_vocabulary):,} and {len(self.vocabulary):,} words"
        return f"ParallelData({self.name}: {sizes}; {words})"

    def _read(self, pairs: Mapping[str, Iterable[Pair]]) -> dict[str, tuple[Sentences, Sentences]]:
        """The sources and the targets of each split. All sources share a list of words; so do all targets."""
        numbers = WordNumbers(), WordNumbers()
        if not isinstance(pairs, Mapping):
            raise InputTypeError(
                f"ParallelData: pairs is a {type(pairs).__name__}, expected a dict of pairs by splits, "
                'such as {"train": pairs}'
            )
        written = {
            split: self._written(split, _checked_pairs(split, some), numbers) for split, some in pairs.items()
        }
        if "train" not in written or not len(written["train"][0]):
            if self.num_long:
                raise InputError(
                    f"ParallelData: max_length is {self.max_length}, and all {self.num_long} training pairs "
                    f"of {self.name} are longer"
                )
            found = ", ".join(f"{split} {len(source)}" for split, (source, _) in written.items())
            raise InputError(
                f"ParallelData: {self.name}: found {found or 'no split'}, expected pairs of a split train"
            )
        source_words, target_words = (checked_words("ParallelData", each) for each in numbers)
        return {
            split: (source.sentences(source_words), target.sentences(target_words))
            for split, (source, target) in written.items()
        }

    def _written(
        self, split: str, pairs: Iterable[Pair], numbers: tuple[WordNumbers, WordNumbers]
    ) -> tuple[SentenceWriter, SentenceWriter]:
        """The sources and the targets of a split; long training pairs are dropped or cut."""
        source, target = SentenceWriter(numbers[0]), SentenceWriter(numbers[1])
        for source_words, target_words in self._shortened(pairs) if split == "train" else pairs:
            source.add(source_words)
            target.add(target_words)
        return source, target

    def _shortened(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        """The pairs; long ones are dropped or cut, and counted."""
        most = self.max_length
        for source, target in pairs:
            if most is None or max(len(source), len(target)) <= most:
                yield source, target
                continue
            self.num_long += 1
            if self.long_pairs == "cut":
                yield source[:most], target[:most]

    def _further(
        self,
        references: Mapping[str, Sequence[Iterable[Words]]],
        sentences: Mapping[str, tuple[Sentences, Sentences]],
    ) -> dict[str, tuple[Sentences, ...]]:
        """The further references of each split that has some."""
        numbers, written = WordNumbers(), dict[str, list[SentenceWriter]]()
        for split, several in references.items():
            if split not in sentences or split == "train":
                others = ", ".join(name for name in sentences if name != "train") or "none"
                raise InputError(
                    f"ParallelData: references are of the split {split!r}, expected one of {others}"
                )
            written[split] = [SentenceWriter(numbers) for _ in several]
            for writer, some in zip(written[split], several, strict=True):
                for words in some:
                    writer.add(words)
                if len(writer) != len(sentences[split][0]):
                    raise InputError(
                        f"ParallelData: references of {split} are {len(writer):,} sentences, expected "
                        f"{len(sentences[split][0]):,}, one for each source"
                    )
        words = checked_words("ParallelData", numbers)
        return {split: tuple(each.sentences(words) for each in some) for split, some in written.items()}

    def _vocabulary(self, side: int, train: Sentences, min_count: int, max_size: int | None) -> Vocabulary:
        """The words of the training split, and every piece of the subwords, rare or not."""
        counts = Counter(train.counts())
        if self.subwords is not None:
            counts.update(self.subwords[side].pieces)
        return Vocabulary.from_counts(counts, min_count, max_size)


def _checked_pairs(split: str, pairs: Iterable[Pair]) -> Iterator[Pair]:
    """The pairs, each of two sentences."""
    for pair in pairs:
        is_pair = isinstance(pair, tuple | list | np.ndarray) and len(pair) == 2
        if not is_pair or not all(isinstance(each, Sequence | np.ndarray) for each in pair):
            raise InputTypeError(
                f"ParallelData: {split} has {pair!r:.60}, expected pairs: the words of a source and a target"
            )
        yield pair[0], pair[1]
