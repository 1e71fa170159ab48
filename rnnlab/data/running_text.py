r"""Running text by splits, for language models: windows of streams, rows (N, L).

    text       the words of all lines, each line followed by the word "\n"
    streams    N parts of the text, equally long or one word longer
    windows    the next words of each stream: a batch

A row is the word before a window and the words of the window, so that a model that reads all words of a row
but the last predicts those of the window. Row n of each batch continues row n of the batch before: the model
begins at the state that it had there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rnnlab.data.fingerprint import Fingerprint, array_hash
from rnnlab.data.language_data import LanguageData, open_lines
from rnnlab.data.sentences import Sentences, sentences_of_splits
from rnnlab.data.text_inputs import LINE_END, TextInputs, check_tokenizer
from rnnlab.data.vocabulary import NULL, START, UNK, Vocabulary
from rnnlab.errors import InputError, InputTypeError
from rnnlab.layers.checks import check_rng
from rnnlab.options import Count, check_option, check_options
from rnnlab.reading import PathLike

# Where windows are in the text of a split, and whether they are the first ones of their streams.
WINDOW = np.dtype([("start", np.int64), ("stop", np.int64), ("first", np.bool_)])

_WORDS_SHOWN = 600  # that a summary reads of a split, since a line may be the whole text


@dataclass(frozen=True)
class RunningSplit:
    r"""One split.

    Attributes
    ----------
    sentences : Sentences
        The words of each line as they were read, with the word "\n" at its end.
    tokens : (M,) int32
        Those of all words.
    """

    sentences: Sentences
    tokens: np.ndarray

    def __repr__(self) -> str:
        return f"RunningSplit({len(self):,} words)"

    def __len__(self) -> int:
        return len(self.tokens)


class RunningText(LanguageData[RunningSplit]):
    """Running text by splits, which is read in windows. The vocabulary is built from the training split.

    A :class:`~rnnlab.training.Solver` gives a model the state of each row at the end of the window before,
    and zeros at the beginning of an epoch. Its ``batch_size`` is the number of streams.

    Parameters
    ----------
    lines : mapping of str to iterable of iterables of str
        The words of each line, by splits; empty lines are text, too. ``train`` is required; ``val`` is for
        validation. Lines are read once, one after another.
    window : int
        The number of words of a stream in a batch. The gradient of the loss is computed within them:
        truncated backpropagation through time (Williams and Peng 1990).
    name : str
        Used in messages.
    min_count : int
        The minimum number of occurrences of a vocabulary word in the training split. Rarer words are <UNK>.
    max_size : int, optional
        The maximum number of words in the vocabulary, without the special ones.
    tokenizer : "text", "spaces" or "characters"
        How the lines were split into words, which :meth:`prompt` and :meth:`text` need. It is saved with a
        model.

    Attributes
    ----------
    vocabulary : Vocabulary
    inputs : TextInputs
        The vocabulary and the tokenizer.
    splits : dict of str to RunningSplit
    carries_state : bool
        True. If it is set to false before a solver is built, each window begins at a state of zeros.

    Raises
    ------
    ValueError
        If an option is out of range, or the training split has no line.
    TypeError
        If ``lines`` is not a mapping to lists of words.
    """

    carries_state = True

    def __init__(
        self,
        lines: Mapping[str, Iterable[Iterable[str]]],
        *,
        window: Count = 35,
        name: str = "text",
        min_count: Count = 1,
        max_size: Count | None = None,
        tokenizer: str = "text",
    ) -> None:
        counts = {"window": window, "min_count": min_count, "max_size": max_size}
        check_options("RunningText", RunningText, counts)
        check_tokenizer("RunningText", tokenizer)
        self.name, self.window = name, window
        read = sentences_of_splits("RunningText", "lines", lines, ending=LINE_END)
        if not len(read.get("train", ())):
            found = ", ".join(f"{split} {len(each)}" for split, each in read.items()) or "no split"
            raise InputError(f"RunningText: {name}: found {found}, expected lines of a split train")
        vocabulary = Vocabulary.from_counts(read["train"].counts(), min_count, max_size)
        self.inputs = TextInputs(vocabulary, tokenizer, running=True)
        tokens = np.array(vocabulary.tokens_of(read["train"].words), np.int32)
        self.splits = {split: RunningSplit(each, tokens[each.ids]) for split, each in read.items()}

    def epoch(self, split: str, batch_size: int, rng: np.random.Generator | None = None) -> list[np.ndarray]:
        """The windows of one pass over ``split``, those of all streams at a time, (N,) each.

        Parameters
        ----------
        split : str
        batch_size : int
            The number of streams; a text with fewer words has fewer.
        rng : Generator, optional
            Not used: a text has one order.
        """
        check_rng("epoch", rng)
        check_option("epoch", "batch_size", Count, batch_size)
        starts, ends = self._streams(split, batch_size)
        longest = int((ends - starts).max(initial=0))
        found = []
        for before in range(0, longest, self.window):
            windows = np.empty(len(starts), WINDOW)
            windows["start"] = np.minimum(starts + before, ends)
            windows["stop"] = np.minimum(starts + min(before + self.window, longest), ends)
            windows["first"] = before == 0
            found.append(windows)
        return found

    def batch(self, split: str, indices: np.ndarray) -> tuple[np.ndarray]:
        """The windows ``indices`` (N,) of :meth:`epoch` as tokens, (N, L) int32.

        A row has the word before the window, <START> if the window is the first of its stream, then the words
        of the window, then <NULL>.
        """
        windows, tokens = self._checked("batch", indices), self.split(split).tokens
        lengths = (windows["stop"] - windows["start"])[:, None]
        columns = np.arange(1 + max(1, lengths.max(initial=1)))
        found = np.full((len(windows), len(columns)), NULL, np.int32)
        places = windows["start"][:, None] + columns - 1
        is_word = columns <= lengths
        is_word[windows["first"], 0] = False
        found[is_word] = tokens[places[is_word]]
        found[windows["first"], 0] = START
        return (found,)

    def streams(self, split: str, count: int) -> np.ndarray:
        """The text of a split in ``count`` streams, each whole: <START> and its words, (N, L) int32."""
        check_option("streams", "count", Count, count)
        starts, ends = self._streams(split, count)
        windows = np.empty(len(starts), WINDOW)
        windows["start"], windows["stop"], windows["first"] = starts, ends, True
        return self.batch(split, windows)[0]

    def row_lengths(self, split: str, indices: np.ndarray) -> np.ndarray:
        """The number of words of each of the windows ``indices`` (N,)."""
        return indices["stop"] - indices["start"]

    def fingerprint(self) -> Fingerprint:
        """The window, ``carries_state``, sizes and hashes of each split, for :meth:`Solver.resume`."""
        return {
            "window": str(self.window),
            "carries_state": str(self.carries_state),
            **{name: f"{len(split)} {array_hash(split.tokens)}" for name, split in self.splits.items()},
        }

    def describe(self) -> str:
        """A summary: splits, vocabulary, and the beginning of each split."""
        words = self.unit
        lines = [f"{self.name}: {len(self.vocabulary):,} {words}, windows of {self.window}"]
        lines.append(f"{'split':<18}{'lines':>10}{words:>14}{'<UNK>':>8}")
        for name, split in self.splits.items():
            unknown = np.count_nonzero(split.tokens == UNK) / max(1, len(split))
            lines.append(f"{name:<18}{len(split.sentences):>10,}{len(split):>14,}{unknown:>8.1%}")
        for name, split in self.splits.items():
            first = [split.sentences.words[number] for number in split.sentences.ids[:_WORDS_SHOWN]]
            text = " ".join(self.inputs.joined(first).split())
            if text:
                lines.append(f"{name}: {self.beginning(text)}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name} {len(split):,}" for name, split in self.splits.items())
        return (
            f"RunningText({self.name}: {self.unit}: {sizes}; windows of {self.window}; vocabulary of "
            f"{len(self.vocabulary):,})"
        )

    def _streams(self, split: str, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Where each stream starts and ends in the text of a split."""
        M = len(self.split(split))
        bounds = np.arange(min(count, M) + 1)
        size, longer = divmod(M, max(1, len(bounds) - 1))
        bounds = bounds * size + np.minimum(bounds, longer)
        return bounds[:-1], bounds[1:]

    @staticmethod
    def _checked(function: str, indices: Any) -> np.ndarray:
        if getattr(indices, "dtype", None) != WINDOW:
            found = getattr(indices, "dtype", type(indices).__name__)
            raise InputTypeError(
                f"RunningText.{function}: indices are {found}, expected windows as epoch returns them"
            )
        return indices


def open_running_text(
    files: Mapping[str, PathLike], *, tokenizer: str = "text", **options: Any
) -> RunningText:
    """The text of files in UTF-8, gzipped or not, line by line.

    Parameters
    ----------
    files : mapping of str to path
        The file of each split: ``{"train": "train.txt", "val": "val.txt"}``.
    tokenizer : "text", "spaces" or "characters"
        Split a line by :func:`tokenize_text`, at spaces only, or into characters.
    **options
        Options of :class:`RunningText`.

    Raises
    ------
    OSError, ValueError
        As :func:`rnnlab.reading.lines_in_pieces`. The message names the file, and the line if one is wrong.
    ValueError
        If a file has no line.
    ValueError, TypeError
        As :class:`RunningText`.
    """
    lines, name = open_lines("open_running_text", files, tokenizer, of_any_length=True)
    data = RunningText(lines, tokenizer=tokenizer, **{"name": name, **options})
    for split, path in files.items():
        if not len(data.split(split)):
            raise InputError(f"{path}: found no line, expected those of the split {split}")
    return data
