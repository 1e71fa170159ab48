"""The primitives on NumPy: the reference with which every other implementation is compared."""

from __future__ import annotations

from rnnlab.ops.numpy.activation import (
    sigmoid,
    tanh,
)
from rnnlab.ops.numpy.arrays import (
    CHUNK,
    asarray,
    asnumpy,
    clear,
    concatenate,
    empty,
    fetch,
    indices,
    prefetch,
    put,
    scalar,
    take,
    zeros,
)
from rnnlab.ops.numpy.attention import (
    additive_attention_backward,
    additive_attention_forward,
    attention_memory_gradient,
    dot_attention_backward,
    dot_attention_forward,
)
from rnnlab.ops.numpy.beams import (
    beam_step,
    beam_words,
)
from rnnlab.ops.numpy.cells import (
    gru_candidate_backward,
    gru_candidate_forward,
    gru_gates_backward,
    gru_gates_forward,
    lstm_backward,
    lstm_forward,
    rnn_backward,
    rnn_forward,
    simplified_gru_backward,
    simplified_gru_forward,
)
from rnnlab.ops.numpy.embedding import (
    embedding_gradient,
)
from rnnlab.ops.numpy.margin import (
    max_pool,
    max_pool_gradient,
    multilabel_margin,
)
from rnnlab.ops.numpy.masks import (
    dropout,
    dropout_mask,
    mask_seeds,
)
from rnnlab.ops.numpy.optim import (
    adadelta,
    adagrad,
    adam,
    adamw,
    clip_values,
    decay_weights,
    first_non_finite,
    flush_subnormals,
    momentum,
    move_towards,
    rmsprop,
    sgd,
    sum_of_squares,
)
from rnnlab.ops.numpy.products import (
    add_affine_gradients,
    add_column_sums,
    affine,
    affine_into,
    matmul,
    matmul_add,
    matmul_into,
    prepacked,
)
from rnnlab.ops.numpy.regularised import (
    gru_candidate_regularised_backward,
    gru_candidate_regularised_forward,
    lstm_regularised_backward,
    lstm_regularised_forward,
    rnn_regularised_backward,
    rnn_regularised_forward,
    simplified_gru_regularised_backward,
    simplified_gru_regularised_forward,
)
from rnnlab.ops.numpy.scores import (
    draw,
    log_softmax,
    softmax_cross_entropy,
    top,
)
from rnnlab.ops.numpy.steps import (
    steps_backward,
    steps_forward,
)
