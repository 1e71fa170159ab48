"""Discriminative supervision as a part of a model: thought vectors predict the frequent words of a sentence.

The loss of :mod:`rnnlab.layers.discriminative` is averaged over the blocks of a reviewer, which share the
matrix of the word scores (Jiang, Ma and Lu 2020, eq. 10).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rnnlab.errors import InputError
from rnnlab.layers.discriminative import (
    discriminative_backward,
    discriminative_forward,
    discriminative_shapes,
    frequent_words,
)
from rnnlab.models.parts.teacher_forcing import TeacherForced
from rnnlab.ops import ops_for
from rnnlab.parameters import Parameters, scoped
from rnnlab.special_words import SPECIAL_WORDS
from rnnlab.types import Array, Shapes

PREFIX = "discriminative_"
WORDS = 1000  # k of the paper


class Discriminator:
    """The scores of the k most frequent words from thought vectors, and their loss.

    Parameters
    ----------
    hidden_dim : int
        Size of a thought vector.
    first : int
        The token of the most frequent word.
    size : int
        k, the number of words that are scored: the option ``discriminative_words`` of models.
    """

    def __init__(self, hidden_dim: int, first: int, size: int) -> None:
        self._first, self.size = first, size
        self._shapes = scoped(PREFIX, discriminative_shapes(hidden_dim, size))

    def shapes(self) -> Shapes:
        """As in :func:`~rnnlab.layers.discriminative.discriminative_shapes`, with the prefix."""
        return self._shapes

    def loss(
        self,
        params: Parameters,
        thoughts: Sequence[Array],
        forced: TeacherForced,
        *,
        weight: float,
        grads: Parameters,
    ) -> tuple[float, list[Array]]:
        """The loss, and ``weight`` times the gradients of the thought vectors.

        Parameters
        ----------
        thoughts : B arrays (N, L, H)
        forced : TeacherForced
            On the device of the thought vectors.
        weight : float
        grads : Parameters
            ``weight`` times the gradient of the word scores' matrix is added to them.
        """
        words = frequent_words(_target_tokens(forced, thoughts[0]), self._first, self.size)
        total, dthoughts, scale = 0.0, [], weight / len(thoughts)
        for each in thoughts:
            loss, cache = discriminative_forward(each, words, params.scope(PREFIX))
            total += loss
            dthoughts.append(discriminative_backward(scale, cache, into=grads.scope(PREFIX))[0])
        return total / len(thoughts), dthoughts


def build_discriminator(
    model: str, word_to_idx: Mapping[str, int], options: Mapping[str, Any]
) -> Discriminator | None:
    """The discriminator from a model's options, None if they have none.

    Parameters
    ----------
    model : str
        The name of the model's class, for the errors.
    word_to_idx : mapping of str to int
        The vocabulary: the special words, then the others, the most frequent first.
    options : mapping
        The options of the model.

    Raises
    ------
    ValueError
        If the vocabulary has fewer words, or does not begin with its special words.
    """
    weight, count = options.get("discriminative"), options.get("discriminative_words")
    if count is None and not weight:
        return None
    first = sum(word in word_to_idx for word in SPECIAL_WORDS)
    if any(word_to_idx[word] >= first for word in SPECIAL_WORDS if word in word_to_idx):
        raise InputError(
            f"{model}: word_to_idx does not begin with its special words, "
            f"expected {', '.join(SPECIAL_WORDS)} and then all others in the order of frequency: "
            "discriminative supervision takes the first words"
        )
    most = len(word_to_idx) - first
    if count is not None and count > most:
        raise InputError(
            f"{model}: discriminative_words is {count}, expected at most {most}, the vocabulary "
            "without its special words"
        )
    return Discriminator(options["hidden_dim"], first, min(WORDS, most) if count is None else count)


def _target_tokens(forced: TeacherForced, like: Array) -> Array:
    """The targets (N, T), zero where there is none."""
    ops, (N, T) = ops_for(like), forced.inputs.shape
    tokens = ops.zeros(N * T, "int64")
    tokens[forced.target_rows] = forced.targets
    return tokens.reshape(N, T)
