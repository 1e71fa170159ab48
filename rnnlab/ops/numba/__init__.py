"""The primitives on NumPy arrays, fast: kernels that numba compiles, matrix products among them.

The names and signatures are those of :mod:`rnnlab.ops.numpy`, whose docstrings tell what each does.
Importing this module needs the extra ``[fast]``, of which MKL, for x86-64 Linux only, may be missing.
"""

from __future__ import annotations

import numba

from rnnlab.ops.lstm_steps import lstm_step_by_step, of_sum
from rnnlab.ops.numba import products
from rnnlab.ops.numba.attention import (
    additive_attention_backward,
    additive_attention_forward,
    attention_memory_gradient,
    dot_attention_backward,
    dot_attention_forward,
)
from rnnlab.ops.numba.cells import (
    gru_candidate_backward,
    gru_candidate_dropped_backward,
    gru_candidate_dropped_forward,
    gru_candidate_forward,
    gru_gates_backward,
    gru_gates_forward,
    lstm_backward,
    lstm_dropped_backward,
    lstm_dropped_forward,
    lstm_forward,
    rnn_backward,
    rnn_forward,
    simplified_gru_backward,
    simplified_gru_dropped_backward,
    simplified_gru_dropped_forward,
    simplified_gru_forward,
)
from rnnlab.ops.numba.kernel import threads
from rnnlab.ops.numba.masks import (
    dropout,
    dropout_mask,
    zoneout_backward,
    zoneout_forward,
)
from rnnlab.ops.numba.memory import empty, zeros
from rnnlab.ops.numba.optim import (
    adadelta,
    adagrad,
    adam,
    adamw,
    clip_values,
    flush_subnormals,
    momentum,
    rmsprop,
    sgd,
    sum_of_squares,
)
from rnnlab.ops.numba.products import affine, affine_into, matmul, matmul_add, matmul_into, prepacked
from rnnlab.ops.numba.scores import embedding_gradient, log_softmax, softmax_cross_entropy
from rnnlab.ops.numpy import (
    add_column_sums,
    asarray,
    asnumpy,
    concatenate,
    first_non_finite,
    indices,
    mask_seeds,
    put,
    scalar,
    sigmoid,
    staged,
    take,
    tanh,
    top,
)
from rnnlab.ops.step_masks import Drawing, regularised_lstm, regularised_mixing, regularised_rnn

__all__ = [
    "adadelta",
    "adagrad",
    "adam",
    "adamw",
    "add_column_sums",
    "additive_attention_backward",
    "additive_attention_forward",
    "affine",
    "affine_into",
    "asarray",
    "asnumpy",
    "attention_memory_gradient",
    "clip_values",
    "concatenate",
    "dot_attention_backward",
    "dot_attention_forward",
    "dropout",
    "dropout_mask",
    "embedding_gradient",
    "empty",
    "first_non_finite",
    "flush_subnormals",
    "gru_candidate_backward",
    "gru_candidate_forward",
    "gru_candidate_regularised_backward",
    "gru_candidate_regularised_forward",
    "gru_gates_backward",
    "gru_gates_forward",
    "indices",
    "log_softmax",
    "lstm_backward",
    "lstm_forward",
    "lstm_regularised_backward",
    "lstm_regularised_forward",
    "lstm_steps_backward",
    "lstm_steps_forward",
    "mask_seeds",
    "matmul",
    "matmul_add",
    "matmul_into",
    "momentum",
    "prepacked",
    "put",
    "rmsprop",
    "rnn_backward",
    "rnn_forward",
    "rnn_regularised_backward",
    "rnn_regularised_forward",
    "scalar",
    "sgd",
    "sigmoid",
    "simplified_gru_backward",
    "simplified_gru_forward",
    "simplified_gru_regularised_backward",
    "simplified_gru_regularised_forward",
    "softmax_cross_entropy",
    "staged",
    "sum_of_squares",
    "take",
    "tanh",
    "top",
    "zeros",
]

lstm_steps_forward, lstm_steps_backward = lstm_step_by_step(
    matmul_into, matmul_add, lstm_forward, of_sum(lstm_backward)
)

_drawing = Drawing(dropout_mask, zoneout_forward, zoneout_backward)
rnn_regularised_forward, rnn_regularised_backward = regularised_rnn(_drawing, rnn_forward, rnn_backward)
lstm_regularised_forward, lstm_regularised_backward = regularised_lstm(
    _drawing, lstm_forward, lstm_backward, lstm_dropped_forward, lstm_dropped_backward
)
gru_candidate_regularised_forward, gru_candidate_regularised_backward = regularised_mixing(
    _drawing,
    gru_candidate_forward,
    gru_candidate_backward,
    gru_candidate_dropped_forward,
    gru_candidate_dropped_backward,
)
simplified_gru_regularised_forward, simplified_gru_regularised_backward = regularised_mixing(
    _drawing,
    simplified_gru_forward,
    simplified_gru_backward,
    simplified_gru_dropped_forward,
    simplified_gru_dropped_backward,
)

CHUNK = 1

DESCRIPTION = f"kernels compiled by numba {numba.__version__}, threads: {threads()}; {products.DESCRIPTION}"
