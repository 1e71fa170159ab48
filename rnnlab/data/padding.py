"""Rows of tokens of different lengths, and several of them as one array padded with <NULL>."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rnnlab.data.sentences import Words
from rnnlab.data.vocabulary import NULL, Vocabulary


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


class PaddedRows:
    """Rows of different lengths. A slice is an array, padded to the longest row of the slice."""

    def __init__(self, rows: Sequence[np.ndarray]) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, some: slice) -> np.ndarray:
        return pad(self._rows[some])

    def lengths(self) -> np.ndarray:
        """The length of each row, (N,)."""
        return np.array([len(row) for row in self._rows], np.int64)
