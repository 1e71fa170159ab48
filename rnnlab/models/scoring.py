"""The loss of hidden states: scores over the vocabulary, softmax cross-entropy, and back.

The scores of a batch can be by far its largest array, M real tokens times V words. They are made and used up
in chunks of rows, so that no more of them exist at a time than a budget allows, or 512 rows if that is more;
loss and gradients are the same. The gradient of the scores takes their place.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rnnlab.models.cells import Array
from rnnlab.models.encoders import Random
from rnnlab.models.words import LinearOutput
from rnnlab.ops import ops_for
from rnnlab.parameters import Parameters

SCORES_AT_ONCE = 1 << 23  # numbers, 32 MB in float32
_ROWS_AT_LEAST = 512  # for the matrix products to be fast


def output_loss(
    output: LinearOutput,
    params: Parameters,
    hidden: Array,
    targets: Array,
    *,
    divisor: float,
    grads: Parameters,
    rng: Random = None,
) -> tuple[float, Array]:
    """The loss of rows, over ``divisor``, and the gradient of the hidden states.

    Parameters
    ----------
    output : LinearOutput
        Its parameters' gradients are added into ``grads``.
    params : Parameters
    hidden : (M, H)
    targets : (M,) integers in [0, V)
    divisor : float
        What the sum over the rows is divided by.
    grads : Parameters
    rng : numpy Generator, optional
        Where dropout's noise comes from.

    Returns
    -------
    loss : float
    dhidden : (M, H)
    """
    ops = ops_for(hidden)
    dhidden, total = ops.empty(hidden.shape, hidden.dtype), 0.0
    for rows in _chunks(len(targets), output.vocabulary_size):
        scores, cache = output.forward(params, hidden[rows], rng=rng)
        losses = ops.softmax_cross_entropy(scores, targets[rows], 1 / divisor, scores)
        total += float(losses.sum(dtype=np.float64))
        dhidden[rows] = output.backward(scores, cache, grads)
    return total / divisor, dhidden


def output_nll(output: LinearOutput, params: Parameters, hidden: Array, targets: Array) -> float:
    """The summed negative log-likelihood of rows, in nats, without noise and without gradients."""
    ops, total = ops_for(hidden), 0.0
    for rows in _chunks(len(targets), output.vocabulary_size):
        scores, _ = output.forward(params, hidden[rows])
        losses = ops.softmax_cross_entropy(scores, targets[rows], 1.0, scores)
        total += float(losses.sum(dtype=np.float64))
    return total


def _chunks(rows: int, vocabulary_size: int) -> Iterator[slice]:
    """All rows, in as few parts of about equal size as the budget allows."""
    at_once = max(_ROWS_AT_LEAST, SCORES_AT_ONCE // vocabulary_size)
    parts = -(-rows // at_once)
    return (slice(part * rows // parts, (part + 1) * rows // parts) for part in range(parts))
