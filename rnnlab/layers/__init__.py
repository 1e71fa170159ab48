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
from rnnlab.layers.arnet import arnet_backward, arnet_forward, arnet_shapes
from rnnlab.layers.attention.decoder import attentive_backward, attentive_forward, attentive_shapes
from rnnlab.layers.attention.decoding import attentive_start, attentive_step
from rnnlab.layers.attention.losses import doubly_stochastic_loss
from rnnlab.layers.attention.query import (
    attention_keys_backward,
    attention_keys_forward,
    attention_shapes,
    attention_step_backward,
    attention_step_forward,
)
from rnnlab.layers.attention.selector import selector_backward, selector_forward
from rnnlab.layers.attention.target import target_attention_backward, target_attention_forward
from rnnlab.layers.discriminative import (
    discriminative_backward,
    discriminative_forward,
    discriminative_shapes,
    frequent_words,
)
from rnnlab.layers.dropout import dropout_backward, dropout_forward
from rnnlab.layers.embedding import word_embedding_backward, word_embedding_forward
from rnnlab.layers.recurrent.cell import Cell, cell_names, register_cell
from rnnlab.layers.recurrent.gru import gru_backward, gru_forward, gru_step_backward, gru_step_forward
from rnnlab.layers.recurrent.lstm import lstm_backward, lstm_forward, lstm_step_backward, lstm_step_forward
from rnnlab.layers.recurrent.regularisation import Regularisation
from rnnlab.layers.recurrent.reversal import reversed_in_time
from rnnlab.layers.recurrent.rnn import rnn_backward, rnn_forward, rnn_step_backward, rnn_step_forward
from rnnlab.layers.recurrent.sequence import recurrent_backward, recurrent_forward
from rnnlab.layers.recurrent.simplified_gru import (
    simplified_gru_backward,
    simplified_gru_forward,
    simplified_gru_step_backward,
    simplified_gru_step_forward,
)
from rnnlab.layers.review import review_backward, review_forward, review_shapes
from rnnlab.layers.softmax import softmax_loss, temporal_softmax_loss

__all__ = [
    "Cell",
    "Regularisation",
    "affine_backward",
    "affine_forward",
    "arnet_backward",
    "arnet_forward",
    "arnet_shapes",
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
    "cell_names",
    "discriminative_backward",
    "discriminative_forward",
    "discriminative_shapes",
    "doubly_stochastic_loss",
    "dropout_backward",
    "dropout_forward",
    "frequent_words",
    "gru_backward",
    "gru_forward",
    "gru_step_backward",
    "gru_step_forward",
    "lstm_backward",
    "lstm_forward",
    "lstm_step_backward",
    "lstm_step_forward",
    "recurrent_backward",
    "recurrent_forward",
    "register_cell",
    "relu_backward",
    "relu_forward",
    "reversed_in_time",
    "review_backward",
    "review_forward",
    "review_shapes",
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
