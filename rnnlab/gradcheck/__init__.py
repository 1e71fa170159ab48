"""Numeric gradients, and every layer and model checked against them."""

from rnnlab.gradcheck.model import ParameterCheck, check_model, format_checks
from rnnlab.gradcheck.numeric import (
    eval_numerical_gradient,
    eval_numerical_gradient_array,
    grad_check_sparse,
    projected_check,
    rel_error,
    relative_distance,
)
from rnnlab.gradcheck.side_effects import arrays_in, check_threads, check_untouched

__all__ = [
    "ParameterCheck",
    "arrays_in",
    "check_model",
    "check_threads",
    "check_untouched",
    "eval_numerical_gradient",
    "eval_numerical_gradient_array",
    "format_checks",
    "grad_check_sparse",
    "projected_check",
    "rel_error",
    "relative_distance",
]
