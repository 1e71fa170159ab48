"""Layers: pairs of functions, forward and backward, one idea a file.

    out, cache = x_forward(inputs, parameters, *, options)
    dinputs_and_dparameters = x_backward(dout, cache)

A cache is a NamedTuple of what the backward needs. A backward never writes into ``dout`` or into the cache.
"""

from rnnlab.layers.activation import relu_backward, relu_forward, tanh_backward, tanh_forward
from rnnlab.layers.affine import (
    affine_backward,
    affine_forward,
    temporal_affine_backward,
    temporal_affine_forward,
)
from rnnlab.layers.attention import (
    attention_keys_backward,
    attention_keys_forward,
    attention_shapes,
    attention_step_backward,
    attention_step_forward,
    doubly_stochastic_loss,
    selector_backward,
    selector_forward,
)
from rnnlab.layers.attentive import attentive_backward, attentive_forward, attentive_shapes
from rnnlab.layers.attentive_step import attentive_start, attentive_step
from rnnlab.layers.dropout import dropout_backward, dropout_forward
from rnnlab.layers.embedding import word_embedding_backward, word_embedding_forward
from rnnlab.layers.gru import gru_backward, gru_forward, gru_step_backward, gru_step_forward
from rnnlab.layers.lstm import lstm_backward, lstm_forward, lstm_step_backward, lstm_step_forward
from rnnlab.layers.regularisation import Regularisation
from rnnlab.layers.regularised import regularised_backward, regularised_forward
from rnnlab.layers.rnn import rnn_backward, rnn_forward, rnn_step_backward, rnn_step_forward
from rnnlab.layers.simplified_gru import (
    simplified_gru_backward,
    simplified_gru_forward,
    simplified_gru_step_backward,
    simplified_gru_step_forward,
)
from rnnlab.layers.softmax import softmax_loss, temporal_softmax_loss
from rnnlab.layers.target_attention import target_attention_backward, target_attention_forward

__all__ = [
    "Regularisation",
    "affine_backward",
    "affine_forward",
    "attention_keys_backward",
    "attention_keys_forward",
    "attention_shapes",
    "attention_step_backward",
    "attention_step_forward",
    "attentive_backward",
    "attentive_forward",
    "attentive_shapes",
    "attentive_start",
    "attentive_step",
    "doubly_stochastic_loss",
    "dropout_backward",
    "dropout_forward",
    "gru_backward",
    "gru_forward",
    "gru_step_backward",
    "gru_step_forward",
    "lstm_backward",
    "lstm_forward",
    "lstm_step_backward",
    "lstm_step_forward",
    "regularised_backward",
    "regularised_forward",
    "relu_backward",
    "relu_forward",
    "rnn_backward",
    "rnn_forward",
    "rnn_step_backward",
    "rnn_step_forward",
    "selector_backward",
    "selector_forward",
    "simplified_gru_backward",
    "simplified_gru_forward",
    "simplified_gru_step_backward",
    "simplified_gru_step_forward",
    "softmax_loss",
    "tanh_backward",
    "tanh_forward",
    "target_attention_backward",
    "target_attention_forward",
    "temporal_affine_backward",
    "temporal_affine_forward",
    "temporal_softmax_loss",
    "word_embedding_backward",
    "word_embedding_forward",
]
