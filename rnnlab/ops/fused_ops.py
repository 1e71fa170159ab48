"""The primitives on NumPy arrays, fast: fused kernels by numba, and matrix products by MKL where it works.

The names and signatures are those of :mod:`rnnlab.ops.numpy_ops`, whose docstrings tell what each does.
Importing this module needs the extra ``[fast]``; without MKL, which is for x86-64 Linux only, matrix products
are NumPy's.
"""

from __future__ import annotations

from typing import Any

import numba

from rnnlab.ops import numpy_ops
from rnnlab.ops.blas import MklUnavailableError
from rnnlab.ops.fused_cells import (
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
from rnnlab.ops.fused_kernel import THREADS
from rnnlab.ops.fused_memory import empty, zeros
from rnnlab.ops.fused_optim import (
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
from rnnlab.ops.fused_scores import dropout_mask, embedding_gradient, log_softmax, softmax_cross_entropy
from rnnlab.ops.numpy_ops import (
    asarray,
    concatenate,
    first_non_finite,
    sigmoid,
    tanh,
)

__all__ = [
    "adadelta",
    "adagrad",
    "adam",
    "adamw",
    "affine",
    "asarray",
    "clip_values",
    "concatenate",
    "dropout_mask",
    "embedding_gradient",
    "empty",
    "first_non_finite",
    "flush_subnormals",
    "gru_candidate_backward",
    "gru_candidate_forward",
    "gru_gates_backward",
    "gru_gates_forward",
    "log_softmax",
    "lstm_backward",
    "lstm_forward",
    "matmul",
    "matmul_add",
    "matmul_into",
    "momentum",
    "packed",
    "rmsprop",
    "rnn_backward",
    "rnn_forward",
    "sgd",
    "sigmoid",
    "simplified_gru_backward",
    "simplified_gru_forward",
    "softmax_cross_entropy",
    "sum_of_squares",
    "tanh",
    "zeros",
]


def _products() -> tuple[Any, str]:
    """The module of matrix products, and what it is, in words."""
    try:
        from rnnlab.ops import fused_blas
    except MklUnavailableError as reason:
        return numpy_ops, f"NumPy's BLAS for matrix products (not MKL: {reason})"
    mkl = fused_blas.MKL
    return fused_blas, f"MKL {mkl.version} for matrix products, threads: {mkl.threads}"


_blas, _description = _products()
affine, matmul, packed = _blas.affine, _blas.matmul, _blas.packed
matmul_add, matmul_into = _blas.matmul_add, _blas.matmul_into

DESCRIPTION = f"kernels compiled by numba {numba.__version__}, threads: {THREADS}; {_description}"
