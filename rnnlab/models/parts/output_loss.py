"""The loss of an output layer: scores over the vocabulary, softmax cross-entropy, and the backward of both.

The scores, M real targets times V words, can be by far the largest array of a batch. They are computed in
chunks of rows of at most ``SCORES_AT_ONCE`` numbers, or of 512 rows if that is more. Each chunk goes forward
and backward before the next one, and the gradient overwrites the scores. Loss and gradients do not depend on
the chunks. :class:`OutputLoss` is the part of a model that computes them for a batch of sentences.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rnnlab.models.parts.output import DeepOutput, LinearOutput, OutputInputs
from rnnlab.models.parts.teacher_forcing import TeacherForced
from rnnlab.models.parts.values import Decoded
from rnnlab.ops import ops_for
from rnnlab.parameters import Parameters
from rnnlab.types import Array, Random

SCORES_AT_ONCE = 1 << 23  # numbers in a chunk, 32 MB in float32
_ROWS_AT_LEAST = 512  # rows of a chunk; matrix products with fewer rows are slow

OutputLayer = LinearOutput | DeepOutput


class OutputLoss:
    """The loss of a batch of sentences from the outputs of a decoder: an output layer at the real targets.

    Parameters
    ----------
    output : LinearOutput or DeepOutput
    """

    def __init__(self, output: OutputLayer) -> None:
        self.output = output

    def loss(
        self,
        params: Parameters,
        decoded: Decoded,
        words: Array,
        forced: TeacherForced,
        *,
        weights: float | Array,
        grads: Parameters,
        label_smoothing: float = 0.0,
        rng: Random = None,
    ) -> tuple[float, OutputInputs]:
        """The weighted sum of the losses of the real targets, and the gradient of the output layer's inputs.

        Parameters
        ----------
        params : Parameters
        decoded : Decoded
            Arrays (N, T, ...).
        words : (N, T, W)
        forced : TeacherForced
            On the device of the parameters.
        weights, grads, label_smoothing, rng
            As in :func:`output_loss`.

        Returns
        -------
        loss : float, or an array () on the device of the parameters
        dinputs : OutputInputs
            Arrays (N, T, ...), zero where there is no real target.
        """
        loss, dinputs = output_loss(
            self.output,
            params,
            self._at_targets(decoded, words, forced),
            forced.targets,
            weights=weights,
            grads=grads,
            label_smoothing=label_smoothing,
            rng=rng,
        )
        return loss, OutputInputs(*(None if rows is None else forced.spread(rows) for rows in dinputs))

    def nll(self, params: Parameters, decoded: Decoded, words: Array, forced: TeacherForced) -> float:
        """The summed negative log-likelihood of the real targets in nats, without dropout and gradients."""
        return output_nll(self.output, params, self._at_targets(decoded, words, forced), forced.targets)

    def _at_targets(self, decoded: Decoded, words: Array, forced: TeacherForced) -> OutputInputs:
        """The inputs of the output layer at the real targets."""
        hidden = forced.gather(decoded.hidden)
        if not self.output.reads_contexts:
            return OutputInputs(hidden)
        contexts = None if decoded.contexts is None else forced.gather(decoded.contexts)
        return OutputInputs(hidden, contexts, forced.gather(words))


def output_loss(
    output: OutputLayer,
    params: Parameters,
    inputs: OutputInputs,
    targets: Array,
    *,
    weights: float | Array,
    grads: Parameters,
    label_smoothing: float = 0.0,
    rng: Random = None,
) -> tuple[float, OutputInputs]:
    """The weighted sum of the losses of rows, and the gradient of the output layer's inputs.

    Parameters
    ----------
    output : LinearOutput or DeepOutput
        Its parameters' gradients are added into ``grads``.
    params : Parameters
    inputs : OutputInputs
        Arrays (M, ...).
    targets : (M,) integers in [0, V)
    weights : float, or (M,)
        Weight of each row's loss. An array is on the device and in the dtype of the parameters.
    grads : Parameters
    label_smoothing : float in [0, 1)
    rng : numpy Generator, optional
        Draws the dropout masks. Without it there is no dropout.

    Returns
    -------
    loss : float, or an array () on the device of the parameters
    dinputs : OutputInputs
    """
    ops = ops_for(inputs.hidden)
    dinputs = OutputInputs(
        *(None if array is None else ops.empty(array.shape, array.dtype) for array in inputs)
    )
    total, by_row = 0.0, not isinstance(weights, float)
    for rows in _chunks(len(targets), output.vocabulary_size):
        scores, cache = output.forward(params, _rows(inputs, rows), rng=rng)
        scale: float | Array = weights[rows] if by_row else weights  # type: ignore[index]
        losses = ops.softmax_cross_entropy(scores, targets[rows], scale, scores, label_smoothing)
        if by_row:
            losses *= scale
        total += losses.sum(dtype=np.float64)
        for gradient, whole in zip(output.backward(scores, cache, grads), dinputs, strict=True):
            if gradient is not None:
                whole[rows] = gradient
    return total if by_row else total * weights, dinputs


def output_nll(output: OutputLayer, params: Parameters, inputs: OutputInputs, targets: Array) -> float:
    """The summed negative log-likelihood of rows in nats, without dropout and gradients."""
    ops, total = ops_for(inputs.hidden), 0.0
    for rows in _chunks(len(targets), output.vocabulary_size):
        scores, _ = output.forward(params, _rows(inputs, rows))
        losses = ops.softmax_cross_entropy(scores, targets[rows], 1.0, scores)
        total += losses.sum(dtype=np.float64)
    return float(total)


def _rows(inputs: OutputInputs, rows: slice) -> OutputInputs:
    return OutputInputs(*(None if array is None else array[rows] for array in inputs))


def _chunks(rows: int, vocabulary_size: int) -> Iterator[slice]:
    """Slices of about equal size that cover all rows, as few as SCORES_AT_ONCE allows."""
    at_once = max(_ROWS_AT_LEAST, SCORES_AT_ONCE // vocabulary_size)
    parts = -(-rows // at_once)
    return (slice(part * rows // parts, (part + 1) * rows // parts) for part in range(parts))
