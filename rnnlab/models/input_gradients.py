"""What ``loss(..., inputs=True)`` returns beside the gradients of the parameters: those of a model's inputs.

    loss, grads, inputs = model.loss(features, captions, inputs=True)
    inputs.features, inputs.words, inputs.hidden

Each array is the gradient of the whole loss, auxiliary losses included, and has the shape of what it belongs
to. Features and word vectors are those before dropout.

``hidden`` is the total derivative dL/dh_t. The loss depends on h_t through the output of step t, through an
auxiliary loss that reads h_t, and through the later steps, by the recurrence and by attention. With several
layers h_t is the state of the last one.

T is the length of the longest sentence without its <START>. Where an image has S captions, or a source S
sentences, there is a row for each of them. The gradient of padding is zero. The arrays are on the model's
device and in its dtype.
"""

from __future__ import annotations

from typing import NamedTuple

from rnnlab.models.parts.features import Features
from rnnlab.types import Array


class CaptioningGradients(NamedTuple):
    """The gradients of the inputs of a :class:`~rnnlab.models.CaptioningRNN`."""

    features: Features  # as the features: one array, or those of regions and of images
    words: Array  # (N, T, W) of the vectors of the words that the decoder reads
    hidden: Array  # (N, T, H) of the decoder's hidden states


class TranslationGradients(NamedTuple):
    """The gradients of the inputs of a :class:`~rnnlab.models.Seq2Seq`."""

    source: Array  # (N, L, W) of the word vectors of the source, L the length of the longest sentence
    target: Array  # (N, T, W) of the vectors of the words that the decoder reads
    hidden: Array  # (N, T, H) of the decoder's hidden states


class ClassificationGradients(NamedTuple):
    """The gradients of the inputs of a :class:`~rnnlab.models.SequenceClassifier`."""

    x: Array  # (N, T, D)
    hidden: Array  # (N, T, H) of the last layer's hidden states
