"""The primitives on NumPy arrays, including matrix products, by kernels that numba compiles.

Importing this package needs the extra ``[fast]``. MKL, which is for x86-64 Linux only, may be missing.
"""

from __future__ import annotations

import numba

from rnnlab.ops.numba import products
from rnnlab.ops.numba.arrays import (
    clear,
    put,
    take,
    zeros,
)
from rnnlab.ops.numba.attention import (
    additive_attention_backward,
    additive_attention_forward,
    attention_memory_gradient,
    dot_attention_backward,
    dot_attention_forward,
)
from rnnlab.ops.numba.beams import (
    beam_step,
)
from rnnlab.ops.numba.cells import (
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
from rnnlab.ops.numba.embedding import (
    embedding_gradient,
)
from rnnlab.ops.numba.kernel import threads
from rnnlab.ops.numba.margin import (
    max_pool,
    max_pool_gradient,
    multilabel_margin,
)
from rnnlab.ops.numba.masks import (
    dropout,
    dropout_mask,
)
from rnnlab.ops.numba.memory import (
    empty,
)
from rnnlab.ops.numba.optim import (
    adadelta,
    adagrad,
    adam,
    adamw,
    clip_values,
    decay_weights,
    flush_subnormals,
    momentum,
    move_towards,
    rmsprop,
    sgd,
    sum_of_squares,
)
from rnnlab.ops.numba.products import (
    add_affine_gradients,
    add_column_sums,
    affine,
    affine_into,
    matmul,
    matmul_add,
    matmul_into,
    prepacked,
)
from rnnlab.ops.numba.regularised import (
    gru_candidate_regularised_backward,
    gru_candidate_regularised_forward,
    lstm_regularised_backward,
    lstm_regularised_forward,
    rnn_regularised_backward,
    rnn_regularised_forward,
    simplified_gru_regularised_backward,
    simplified_gru_regularised_forward,
)
from rnnlab.ops.numba.scores import (
    draw,
    log_softmax,
    softmax_cross_entropy,
    top,
)
from rnnlab.ops.numba.steps import (
    steps_backward,
    steps_forward,
)
from rnnlab.ops.numpy.activation import (
    sigmoid,
    tanh,
)
from rnnlab.ops.numpy.arrays import (
    CHUNK,
    asarray,
    asnumpy,
    concatenate,
    fetch,
    indices,
    prefetch,
    scalar,
)
from rnnlab.ops.numpy.beams import (
    beam_words,
)
from rnnlab.ops.numpy.masks import (
    mask_seeds,
)
from rnnlab.ops.numpy.optim import (
    first_non_finite,
)
from rnnlab.ops.threads import num_threads

_NO_OPENMP = "" if threads() == num_threads() else " (numba has no OpenMP threads)"
DESCRIPTION = (
    f"kernels compiled by numba {numba.__version__}, threads: {threads()}{_NO_OPENMP}; {products.DESCRIPTION}"
)
