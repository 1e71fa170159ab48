"""Teacher forcing through a step function: the distribution of each word of given sentences.

Like a search, it needs only the methods ``start`` and ``advance``, so an ensemble is scored by the same
distributions that it decodes with. The memory is that of (n, V) numbers, independent of the sentences'
length.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from rnnlab.decoding.search import StepModel, advanced
from rnnlab.decoding.state_rows import num_rows, repeated_rows, select
from rnnlab.errors import InputError, InputTypeError, OutOfRangeError
from rnnlab.layers.recurrent.packing import lengths_to_last
from rnnlab.ops import ops_for
from rnnlab.types import Array


class Prediction(NamedTuple):
    """The distributions of the next token of n sentences, and the true tokens."""

    rows: np.ndarray  # (n,) the sentences, as rows of the batch
    tokens: np.ndarray  # (n,) the true tokens
    log_probs: Array  # (n, V) log-probabilities, on the device of the model


def teacher_forced(
    model: StepModel, source: Any, sentences: Array, *, null_token: int
) -> Iterator[Prediction]:
    """The model's distributions at each token of given sentences, one step at a time.

    Parameters
    ----------
    model : StepModel
    source : anything
        The argument of ``model.start``, N rows.
    sentences : (N, L) integers, or (N, S, L)
        ``<START>``, the words, ``<END>``, then padding. S sentences of each row of the source count as N S
        rows of a batch.
    null_token : int
        The token of the padding, which is not predicted.

    Yields
    ------
    Prediction
        For the second token of all sentences, then for the third, and so on. Sentences that have ended are
        left out.

    Raises
    ------
    ValueError
        If ``sentences`` does not have two or three axes, or as many rows as ``source``.
    TypeError
        If they are not integers.
    IndexError
        If a token is out of range.
    """
    sentences = np.asarray(sentences)
    if sentences.ndim not in (2, 3):
        raise InputError(
            f"teacher_forced: sentences has shape {sentences.shape}, expected (N, L) or (N, S, L)"
        )
    if sentences.dtype.kind not in "iu":
        raise InputTypeError(f"teacher_forced: sentences has dtype {sentences.dtype}, expected integers")
    negative = sentences[(sentences < 0) & (sentences != null_token)]
    if negative.size:
        raise OutOfRangeError(f"teacher_forced: sentences holds {negative[0]}, expected tokens from 0")
    rows_of_source = len(sentences)
    sentences = sentences.reshape(-1 if sentences.size else 0, sentences.shape[-1])
    real = sentences[:, 1:] != null_token
    lengths = lengths_to_last(real)
    alive = np.arange(len(sentences))
    if not lengths.any():
        return
    state = model.start(source)
    if num_rows(state) != rows_of_source:
        raise InputError(
            f"teacher_forced: source has {num_rows(state)} rows, expected {rows_of_source} as sentences"
        )
    if len(sentences) > rows_of_source:
        state = repeated_rows(state, len(sentences) // rows_of_source)
    for step in range(int(lengths.max())):
        going_on = np.flatnonzero(lengths[alive] > step)
        if 2 * len(going_on) <= len(alive):  # a copy of the state pays off
            alive, state = alive[going_on], select(state, going_on)
        # predictions after the end of a sentence are not used, but its padding need not be a valid token
        read = np.where(lengths[alive] > step, sentences[alive, step], 0)
        if read.size and read.min() < 0:
            raise OutOfRangeError(
                f"teacher_forced: sentences holds {null_token} before a word, expected it after the last word"
            )
        log_probs, state = advanced("teacher_forced", model, state, read)
        predicted = np.flatnonzero(real[alive, step])
        if not len(predicted):
            continue
        if len(predicted) < len(alive):
            log_probs = log_probs[ops_for(log_probs).asarray(predicted)]
        rows = alive[predicted]
        if sentences[rows, step + 1].max() >= log_probs.shape[1]:
            raise OutOfRangeError(
                f"teacher_forced: sentences holds {sentences[rows, step + 1].max()}, "
                f"and there are {log_probs.shape[1]} words"
            )
        yield Prediction(rows, sentences[rows, step + 1], log_probs)


def sentences_nll(model: StepModel, source: Any, sentences: Array, *, null_token: int) -> tuple[float, int]:
    """The negative log-likelihood of given sentences under the distributions of :func:`teacher_forced`.

    Parameters
    ----------
    model, source, sentences, null_token
        As in :func:`teacher_forced`.

    Returns
    -------
    total : float
        Summed over all predicted tokens, in nats.
    tokens : int
        Their number. exp(total / tokens) is the perplexity.
    """
    total, count = 0.0, 0
    for _, tokens, log_probs in teacher_forced(model, source, sentences, null_token=null_token):
        ops = ops_for(log_probs)
        own = log_probs[ops.asarray(np.arange(len(tokens))), ops.asarray(tokens)]
        total -= float(ops.asnumpy(own).sum(dtype=np.float64))
        count += len(tokens)
    return total, count
