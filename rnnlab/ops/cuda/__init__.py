"""The primitives on CuPy arrays: custom kernels, matrix products by cuBLAS, the rest by CuPy.

No primitive waits for the device except :func:`asnumpy` and those that return a Python number. Masks are
bitwise equal to NumPy's; other results differ by rounding. Only this package imports CuPy, when the first
CuPy array arrives.
"""

from __future__ import annotations

from rnnlab.ops.cuda.activation import (
    sigmoid,
    tanh,
)
from rnnlab.ops.cuda.arrays import (
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
from rnnlab.ops.cuda.attention import (
    additive_attention_backward,
    additive_attention_forward,
    attention_memory_gradient,
    dot_attention_backward,
    dot_attention_forward,
)
from rnnlab.ops.cuda.beams import (
    beam_step,
    beam_words,
)
from rnnlab.ops.cuda.cells import (
    gru_candidate_backward,
    gru_candidate_forward,
    gru_candidate_regularised_backward,
    gru_candidate_regularised_forward,
    gru_gates_backward,
    gru_gates_forward,
    lstm_backward,
    lstm_forward,
    lstm_regularised_backward,
    lstm_regularised_forward,
    rnn_backward,
    rnn_forward,
    rnn_regularised_backward,
    rnn_regularised_forward,
    simplified_gru_backward,
    simplified_gru_forward,
    simplified_gru_regularised_backward,
    simplified_gru_regularised_forward,
)
from rnnlab.ops.cuda.embedding import (
    embedding_gradient,
)
from rnnlab.ops.cuda.margin import (
    max_pool,
    max_pool_gradient,
    multilabel_margin,
)
from rnnlab.ops.cuda.masks import (
    dropout,
    dropout_mask,
    mask_seeds,
)
from rnnlab.ops.cuda.optim import (
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
from rnnlab.ops.cuda.products import (
    add_affine_gradients,
    add_column_sums,
    affine,
    affine_into,
    matmul,
    matmul_add,
    matmul_into,
    prepacked,
)
from rnnlab.ops.cuda.scores import (
    draw,
    log_softmax,
    softmax_cross_entropy,
    top,
)
from rnnlab.ops.cuda.steps import (
    steps_backward,
    steps_forward,
)
