"""Sentence pairs by splits, with epochs and batches of a source and a target for the solver.

    source    words, <END>, then <NULL>             (N, L), L the longest of the batch
    target    <START>, words, <END>, then <NULL>    (N, M), M the longest of the batch

The source ends with <END> as well (as in Bahdanau et al. 2015): attention can rest there, and no source is
empty.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rnnlab.data.fingerprint import Fingerprint, array_hash
from rnnlab.data.split_data import SplitData, batches
from rnnlab.data.subwords import SUBWORDS, Subwords
from rnnlab.data.vocabulary import NULL, UNK, Vocabulary

Words = Sequence[str]
Pair = tuple[Words, Words]  # a source and a target

LONG_PAIRS = ("drop", "cut")

_WINDOW = 20  # batches whose pairs are sorted by length together


@dataclass(frozen=True)
class ParallelSplit:
    """One split: the words and the tokens of each pair.

    Attributes
    ----------
    source, target : list of sequences of str
        As they were read, including words that the vocabulary lacks.
    source_rows, target_rows : list of (length,) int32
        Their tokens: words and <END>, of the target <START> too.
    """

    source: list[Words]
    target: list[Words]
    source_rows: list[np.ndarray]
    target_rows: list[np.ndarray]

    @property
    def references(self) -> list[list[Words]]:
        """The reference translations: one of each source."""
        return [[words] for words in self.target]

    def __len__(self) -> int:
        return len(self.source)


class ParallelData(SplitData[ParallelSplit]):
    """Sentence pairs by splits. The vocabularies are built from the training split.

    Parameters
    ----------
    pairs : mapping of str to sequence of (source words, target words)
        The splits. ``train`` is required; ``val`` serves validation.
    name : str
        Used in messages.
    min_count : int
        The number of occurrences in the training split from which a word is in its vocabulary.
    max_size : int, optional
        The most words in a vocabulary, without the special ones.
    max_length : int, optional
        The most words in either sentence of a training pair. The other splits are not changed.
    long_pairs : "drop" or "cut"
        Whether longer training pairs are dropped or cut.
    max_train : int, optional
        Use only this number of training pairs, drawn with seed 0. The vocabularies are built from all pairs.
    tokenizer : str
        The name of the tokenizer that split the sentences, which is saved with a model.
    subwords : (Subwords, Subwords), optional
        What split source and target into pieces of words, with tokenizer "sentencepiece"; saved too.

    Attributes
    ----------
    source_vocabulary, vocabulary : Vocabulary
        Of the source and of the target.
    splits : dict of str to ParallelSplit
    num_long : int
        The number of training pairs that were dropped or cut.

    Raises
    ------
    ValueError
        If an option is out of range, or there is no training pair.
    """

    in_memory = True  # a batch is a copy of rows

    def __init__(
        self,
        pairs: Mapping[str, Sequence[Pair]],
        *,
        name: str = "pairs",
        min_count: int = 1,
        max_size: int | None = None,
        max_length: int | None = None,
        long_pairs: str = "drop",
        max_train: int | None = None,
        tokenizer: str = "text",
        subwords: tuple[Subwords, Subwords] | None = None,
    ) -> None:
        self.name, self.tokenizer, self.subwords = name, tokenizer, subwords
        if long_pairs not in LONG_PAIRS:
            raise ValueError(
                f"ParallelData: long_pairs is {long_pairs!r}, expected one of {', '.join(LONG_PAIRS)}"
            )
        counts = {
            "min_count": min_count,
            "max_size": max_size,
            "max_length": max_length,
            "max_train": max_train,
        }
        for option, count in counts.items():
            if count is not None and count < 1:
                raise ValueError(f"ParallelData: {option} is {count}, expected at least 1")
        if (tokenizer == SUBWORDS) != (subwords is not None):
            raise ValueError(
                f"ParallelData: tokenizer is {tokenizer!r} and subwords "
                f"{'none' if subwords is None else 'given'}, expected subwords with {SUBWORDS!r} alone"
            )
        if not pairs.get("train"):
            found = ", ".join(f"{split} {len(some)}" for split, some in pairs.items()) or "no split"
            raise ValueError(f"ParallelData: {name}: found {found}, expected pairs of a split train")
        train = list(pairs["train"])
        self.num_long = 0
        if max_length is not None:
            train, self.num_long = _shortened(train, max_length, long_pairs)
            if not train:
                raise ValueError(
                    f"ParallelData: max_length is {max_length}, and all {self.num_long} training pairs of "
                    f"{name} are longer"
                )
        self.max_length, self.long_pairs = max_length, long_pairs
        # every piece is in the vocabulary: also one that only rare words of other splits have
        pieces = [[each.pieces] for each in subwords] if subwords is not None else [[], []]
        self.source_vocabulary, self.vocabulary = (
            Vocabulary.build([*(pair[side] for pair in train), *pieces[side]], min_count, max_size)
            for side in (0, 1)
        )
        if max_train is not None and max_train < len(train):
            kept = np.sort(np.random.default_rng(0).permutation(len(train))[:max_train])
            train = [train[k] for k in kept]
        self.splits = {split: self._encoded(some) for split, some in {**pairs, "train": train}.items()}

    def epoch(self, split: str, batch_size: int, rng: np.random.Generator | None = None) -> list[np.ndarray]:
        """The pairs of one pass over ``split``, a batch at a time; one batch may be smaller.

        Parameters
        ----------
        split : str
        batch_size : int
        rng : Generator, optional
            Shuffles. Among the pairs of every 20 batches, those of similar length form a batch; the batches
            are in random order. Without it the pairs are in their order.
        """
        chosen = self.split(split)
        N = len(chosen)
        if rng is None:
            return batches(np.arange(N), batch_size)
        order = rng.permutation(N)
        source = np.array([len(row) for row in chosen.source_rows], np.intp)
        target = np.array([len(row) for row in chosen.target_rows], np.intp)
        for start in range(0, N, _WINDOW * batch_size):
            window = order[start : start + _WINDOW * batch_size]
            window[:] = window[np.lexsort((target[window], source[window]))]
        shuffled = batches(order, batch_size)
        return [shuffled[k] for k in rng.permutation(len(shuffled))]

    def batch(self, split: str, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The sources (N, L) and the targets (N, M) of the pairs ``indices`` (N,), int32."""
        chosen = self.split(split)
        return pad([chosen.source_rows[k] for k in indices]), pad([chosen.target_rows[k] for k in indices])

    def row_lengths(self, split: str, indices: np.ndarray) -> np.ndarray:
        """The number of tokens of each pair of ``indices`` (N,), source and target together."""
        chosen = self.split(split)
        return np.array([len(chosen.source_rows[k]) + len(chosen.target_rows[k]) for k in indices], np.int64)

    @staticmethod
    def num_tokens(batch: tuple[np.ndarray, np.ndarray]) -> int:
        """The number of tokens that a model predicts in ``batch``: words of the target and <END>."""
        return int(np.count_nonzero(batch[1][:, 1:] != NULL))

    def preprocessing(self) -> dict[str, Any]:
        """What a checkpoint saves so that a model can read new sentences: source vocabulary and tokenizer.

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
        """Sizes and hashes of the tokens of each split, for :meth:`Solver.resume`."""
        return {
            f"{name} {side}": f"{len(rows)} {array_hash(np.concatenate([*rows, np.zeros(0, np.int32)]))}"
            for name, split in self.splits.items()
            for side, rows in (("source", split.source_rows), ("target", split.target_rows))
        }

    def describe(self) -> str:
        """A text for people: splits, vocabularies, the number of long pairs, and a pair of each split."""
        source, target = len(self.source_vocabulary), len(self.vocabulary)
        lines = [f"{self.name}: {source:,} source words, {target:,} target words"]
        if self.max_length is not None:
            lines.append(
                f"{self.num_long:,} training pairs of more than {self.max_length} words were "
                f"{'dropped' if self.long_pairs == 'drop' else 'cut'}"
            )
        lines.append(f"{'split':<18}{'pairs':>9}{'words':>16}{'longest':>14}{'<UNK>':>16}")
        for name, split in self.splits.items():
            counts = [_counts(split.source_rows, 1), _counts(split.target_rows, 2)]
            words, longest, unknown = (" | ".join(column) for column in zip(*counts, strict=True))
            lines.append(f"{name:<18}{len(split):>9,}{words:>16}{longest:>14}{unknown:>16}")
        for name, split in self.splits.items():
            for pair in zip(split.source[:1], split.target[:1], strict=True):
                lines.append(f"{name}: {' | '.join(' '.join(words) for words in pair)}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name} {len(split):,} pairs" for name, split in self.splits.items())
        words = f"{len(self.source_vocabulary):,} and {len(self.vocabulary):,} words"
        return f"ParallelData({self.name}: {sizes}; {words})"

    def _encoded(self, pairs: Sequence[Pair]) -> ParallelSplit:
        source, target = [words for words, _ in pairs], [words for _, words in pairs]
        return ParallelSplit(
            source,
            target,
            [source_row(self.source_vocabulary, words) for words in source],
            [self.vocabulary.encode(words) for words in target],
        )


def source_row(vocabulary: Vocabulary, words: Words) -> np.ndarray:
    """The tokens of a source: its words and <END>, (length,) int32."""
    return vocabulary.encode(words)[1:]


def pad(rows: Sequence[np.ndarray]) -> np.ndarray:
    """Rows of different lengths as one array, padded with <NULL>: (N, longest) int32."""
    lengths = np.array([len(row) for row in rows], np.intp)
    padded = np.full((len(rows), lengths.max(initial=0)), NULL, np.int32)
    if len(rows):
        padded[np.arange(padded.shape[1]) < lengths[:, None]] = np.concatenate(rows)
    return padded


def _shortened(pairs: list[Pair], max_length: int, long_pairs: str) -> tuple[list[Pair], int]:
    """The pairs with the long ones dropped or cut, and the number of long ones."""
    is_long = [max(len(source), len(target)) > max_length for source, target in pairs]
    if long_pairs == "drop":
        kept = [pair for pair, long in zip(pairs, is_long, strict=True) if not long]
    else:
        kept = [(source[:max_length], target[:max_length]) for source, target in pairs]
    return kept, sum(is_long)


def _counts(rows: list[np.ndarray], special: int) -> tuple[str, str, str]:
    """Mean and largest number of words, share of <UNK>; ``special`` tokens of each row are not words."""
    lengths = np.array([len(row) - special for row in rows])
    unknown = sum(int(np.count_nonzero(row == UNK)) for row in rows)
    mean = lengths.mean() if len(rows) else 0.0
    return f"{mean:.1f}", f"{lengths.max(initial=0)}", f"{unknown / max(1, lengths.sum()):.1%}"
