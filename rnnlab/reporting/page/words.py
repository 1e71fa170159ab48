"""Words with attention weights, in a compact form for a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rnnlab.types import Array


class Word(NamedTuple):
    """A word of a sentence that a model generated.

    ``weights`` has two hexadecimal digits for each slot; 255 stands for the largest weight, which is
    ``peak``. Both are empty if the model does not attend.
    """

    text: str
    weights: str = ""
    peak: str = ""


class Sentence(NamedTuple):
    """The sentence of a run."""

    run: int
    words: list[Word]
    score: str = ""
    side: int = 0  # side of the square grid of regions; 0 if the weights are not those of a grid


def words_of(texts: Sequence[str], weights: Array | None) -> list[Word]:
    """Words with their rows of attention weights (T or more, L)."""
    if weights is None:
        return [Word(text) for text in texts]
    return [_word(text, row) for text, row in zip(texts, weights, strict=False)]


def _word(text: str, row: Array) -> Word:
    peak = float(row.max())
    scaled = np.round(255 * np.asarray(row, float) / (peak or 1.0)).astype(np.uint8)
    return Word(text, scaled.tobytes().hex(), f"{peak:.2f}")


def token_rows(model: Any, sentences: Sequence[Sequence[int]]) -> np.ndarray:
    """Sentences in the form of training data: <START>, words, <END>, padding."""
    width = 2 + max(map(len, sentences), default=0)
    rows = np.full((len(sentences), width), model.null_token)
    for row, tokens in zip(rows, sentences, strict=True):
        row[: len(tokens) + 2] = [model.start_token, *tokens, model.word_to_idx["<END>"]]
    return rows
