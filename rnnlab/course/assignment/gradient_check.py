"""Numeric gradients."""

from rnnlab.cs231n.gradient_check import (
    eval_numerical_gradient,
    eval_numerical_gradient_array,
    grad_check_sparse,
    rel_error,
)

__all__ = ["eval_numerical_gradient", "eval_numerical_gradient_array", "grad_check_sparse", "rel_error"]
