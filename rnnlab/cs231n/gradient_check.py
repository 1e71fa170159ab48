"""The course's ``gradient_check``."""

from rnnlab.gradcheck.numeric import (
    eval_numerical_gradient,
    eval_numerical_gradient_array,
    grad_check_sparse,
    rel_error,
)

__all__ = ["eval_numerical_gradient", "eval_numerical_gradient_array", "grad_check_sparse", "rel_error"]
