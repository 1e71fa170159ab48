"""The loss of what a decoder made: scores over the vocabulary, softmax cross-entropy, and back.

The scores of a batch can be by far its largest array, M real tokens times V words. They are made and used up
in chunks of rows, so that no more of them exist at a time than a budget allows, or 512 rows if that is more;
loss and gradients are the same. The gradient of the scores takes their place.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rnnlab.models.parts.embedding import DeepOutput, LinearOutput, Readout
from rnnlab.models.parts.encoders import Random
from rnnlab.ops import ops_for
from rnnlab.parameters import Parameters
from rnnlab.types import Array

SCORES_AT_ONCE = 1 << 23  # numbers, 32 MB in float32
_ROWS_AT_LEAST = 512  # for the matrix products to be fast


Output = LinearOutput | DeepOutput


def output_loss(
    output: Output,
    params: Parameters,
    readout: Readout,
    targets: Array,
    *,
    weights: float | Array,
    grads: Parameters,
    label_smoothing: float = 0.0,
    rng: Random = None,
) -> tuple[float, Readout]:
    """The weighted sum of the losses of rows, and the gradient of what is scored.

    Parameters
    ----------
    output : LinearOutput or DeepOutput
        Its parameters' gradients are added into ``grads``.
    params : Parameters
    readout : Readout
        Arrays (M, ...).
    targets : (M,) integers in [0, V)
    weights : float, or (M,)
        Of the rows' losses, on the device and in the dtype of the parameters if there is one for each.
    grads : Parameters
    label_smoothing : float in [0, 1)
    rng : numpy Generator, optional
        Where dropout's noise comes from.

    Returns
    -------
    loss : float, or an array () on the device of the parameters
    dreadout : Readout
    """
    ops = ops_for(readout.hidden)
    room = Readout(*(None if array is None else ops.empty(array.shape, array.dtype) for array in readout))
    total, by_row = 0.0, not isinstance(weights, float)
    for rows in _chunks(len(targets), output.vocabulary_size):
        scores, cache = output.forward(params, _rows(readout, rows), rng=rng)
        scale: float | Array = weights[rows] if by_row else weights  # type: ignore[index]
        losses = ops.softmax_cross_entropy(scores, targets[rows], scale, scores, label_smoothing)
        if by_row:
            losses *= scale
        total += losses.sum(dtype=np.float64)
        for gradient, place in zip(output.backward(scores, cache, grads), room, strict=True):
            if gradient is not None:
                place[rows] = gradient
    return total if by_row else total * weights, room


def output_nll(output: Output, params: Parameters, readout: Readout, targets: Array) -> float:
    """The summed negative log-likelihood of rows, in nats, without noise and without gradients."""
    ops, total = ops_for(readout.hidden), 0.0
    for rows in _chunks(len(targets), output.vocabulary_size):
        scores, _ = output.forward(params, _rows(readout, rows))
        losses = ops.softmax_cross_entropy(scores, targets[rows], 1.0, scores)
        total += losses.sum(dtype=np.float64)
    return float(total)


def _rows(readout: Readout, rows: slice) -> Readout:
    return Readout(*(None if array is None else array[rows] for array in readout))


def _chunks(rows: int, vocabulary_size: int) -> Iterator[slice]:
    """All rows, in as few parts of about equal size as the budget allows."""
    at_once = max(_ROWS_AT_LEAST, SCORES_AT_ONCE // vocabulary_size)
    parts = -(-rows // at_once)
    return (slice(part * rows // parts, (part + 1) * rows // parts) for part in range(parts))
