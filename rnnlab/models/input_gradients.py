"""The gradients of a model's inputs, which ``loss(..., input_gradients=True)`` returns as well.

    loss, grads, inputs = model.loss(features, captions, input_gradients=True)
    inputs.features, inputs.words, inputs.hidden

Each array is the gradient of the whole loss, auxiliary losses included, and has the shape of the array that
it belongs to. Features and word vectors are those before dropout.

``hidden`` is the total derivative dL/dh_t. The loss depends on h_t through the output of step t, through an
auxiliary loss that reads h_t, and through the later steps by the recurrence and by attention. With several
layers, h_t is the state of the last layer.

T is the length of the longest sentence without its <START>. Where an image has S captions, or a source S
sentences, there is a row for each of them. The gradient of padding is zero. The arrays are on the model's
device and in its dtype.
"""

from __future__ import annotations

from typing import NamedTuple

from rnnlab.models.parts.features import Features
from rnnlab.types import Array


class CaptioningGradients(NamedTuple):
    """The gradients of the inputs of a :class:`~rnnlab.models.CaptioningRNN`.

    Attributes
    ----------
    features : as the features
        An array (N, D) or (N, L, D), or a tuple of (N, L, D) and (N, G).
    words : (N, T, W)
        Gradients of the vectors of the words that the decoder reads.
    hidden : (N, T, H)
        Gradients of the decoder's hidden states.
    """

    features: Features
    words: Array
    hidden: Array


class TranslationGradients(NamedTuple):
    """The gradients of the inputs of a :class:`~rnnlab.models.Seq2Seq`.

    Attributes
    ----------
    source : (N, L, W)
        Gradients of the word vectors of the source. L is the length of the longest sentence.
    target : (N, T, W)
        Gradients of the vectors of the words that the decoder reads.
    hidden : (N, T, H)
        Gradients of the decoder's hidden states.
    """

    source: Array
    target: Array
    hidden: Array


class LanguageGradients(NamedTuple):
    """The gradients of the inputs of a :class:`~rnnlab.models.LanguageModel`.

    Attributes
    ----------
    words : (N, T, W)
        Gradients of the vectors of the words that the model reads.
    hidden : (N, T, H)
        Gradients of the hidden states.
    """

    words: Array
    hidden: Array


class ClassificationGradients(NamedTuple):
    """The gradients of the inputs of a :class:`~rnnlab.models.SequenceClassifier`.

    Attributes
    ----------
    x : (N, T, D)
    hidden : (N, T, H)
        Of the last layer's hidden states.
    """

    x: Array
    hidden: Array
