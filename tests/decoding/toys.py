"""A model small enough to enumerate every sentence, and what the searches' tests share."""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import numpy as np

from rnnlab.decoding import Hypothesis

Array = Any

START, END = 0, 1  # the words are 2, 3, ...


class Place(NamedTuple):
    position: Array


class TableModel:
    """log p(token | source, position, last token) read from a table (sources, positions, V, V).

    Its state has all that a state may have: arrays, None, and a named tuple inside the tuple.
    """

    start_token, end_token = START, END

    def __init__(self, table: Array) -> None:
        self.table = table
        self.rows: list[int] = []  # of each call of advance

    @classmethod
    def random(
        cls,
        rng: np.random.Generator,
        sources: int = 3,
        words: int = 2,
        positions: int = 5,
        spread: float = 1.5,
    ) -> TableModel:
        V = words + 2
        scores = spread * rng.standard_normal((sources, positions, V, V))
        return cls(scores - np.log(np.exp(scores).sum(axis=-1, keepdims=True)))

    @property
    def words(self) -> range:
        return range(2, self.table.shape[-1])

    def start(self, source: Array) -> Any:
        source = np.asarray(source, dtype=int)
        return source, None, Place(np.zeros(len(source), int))

    def advance(self, state: Any, tokens: Array) -> tuple[Array, Any]:
        source, nothing, place = state
        position = place.position
        assert nothing is None
        assert source.shape == position.shape == tokens.shape
        self.rows.append(len(source))
        return self.table[source, position, tokens], (source, None, Place(position + 1))

    def log_prob(self, source: int, tokens: tuple[int, ...], finished: bool) -> float:
        """Of a sentence, and of <END> after it if it is finished."""
        path = (START, *tokens, *((END,) if finished else ()))
        return float(sum(self.table[source, t, path[t], path[t + 1]] for t in range(len(path) - 1)))

    def sentences(
        self,
        source: int,
        max_length: int,
        length_penalty: float = 0.0,
        normalisation: str = "power",
        min_length: int = 0,
        no_repeat_ngram: int = 0,
    ) -> list[Hypothesis]:
        """Every sentence that may come and ends, best first; <START> is not a word."""
        found = []
        for length in range(min_length, max_length + 1):
            norm = length + 1 if normalisation == "power" else (5 + length + 1) / 6
            for tokens in product(self.words, repeat=length):
                if not has_repeats(tokens, no_repeat_ngram):
                    log_prob = self.log_prob(source, tokens, True)
                    found.append(Hypothesis(tokens, log_prob, log_prob / norm**length_penalty, True))
        return sorted(found, key=lambda hypothesis: -hypothesis.score)


class AttendingModel(TableModel):
    """A table whose model attends: the weights tell which source, position and last word they belong to."""

    def start(self, source: Array) -> Any:
        state = super().start(source)
        return state, np.full(len(source), -1)

    def advance(self, state: Any, tokens: Array) -> tuple[Array, Any]:
        log_probs, state = super().advance(state[0], tokens)
        return log_probs, (state, tokens)

    def attention(self, state: Any) -> Array:
        (source, _, (position,)), tokens = state
        return np.stack([source, position - 1, tokens], axis=1).astype(float)

    @staticmethod
    def expected(source: int, hypothesis: Hypothesis) -> Array:
        """The alignment that a hypothesis is to have."""
        path = (START, *hypothesis.tokens)[: len(hypothesis.tokens) + hypothesis.finished]
        return np.array([[source, t, token] for t, token in enumerate(path)], float).reshape(-1, 3)


def has_repeats(tokens: tuple[int, ...], n: int) -> bool:
    """Whether some n words in a row come twice; never for n = 0."""
    ngrams = [tokens[k : k + n] for k in range(len(tokens) - n + 1)] if n else []
    return len(set(ngrams)) < len(ngrams)


def assert_same_hypotheses(actual: list[Hypothesis], expected: list[Hypothesis]) -> None:
    """The same sentences in the same order, with the same numbers but for rounding."""
    assert [h.tokens for h in actual] == [h.tokens for h in expected]
    assert [h.finished for h in actual] == [h.finished for h in expected]
    np.testing.assert_allclose([h.log_prob for h in actual], [h.log_prob for h in expected], rtol=1e-9)
    np.testing.assert_allclose([h.score for h in actual], [h.score for h in expected], rtol=1e-9)
