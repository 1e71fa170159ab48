"""Gradients by finite differences, and every layer and model checked against them."""

from rnnlab.gradcheck.numeric import (
    ParameterCheck,
    check_model,
    check_untouched,
    eval_numerical_gradient,
    eval_numerical_gradient_array,
    format_checks,
    grad_check_sparse,
    projected_check,
    rel_error,
    relative_distance,
)

__all__ = [
    "ParameterCheck",
    "check_model",
    "check_untouched",
    "eval_numerical_gradient",
    "eval_numerical_gradient_array",
    "format_checks",
    "grad_check_sparse",
    "projected_check",
    "rel_error",
    "relative_distance",
]
