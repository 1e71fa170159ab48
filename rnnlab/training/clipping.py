"""Gradient clipping over the flat buffer.

The sum of squares takes one pass over the gradient. It gives the norm, and it is finite only if all elements
are. The update rule applies the factor that clips by norm, because it reads the gradient anyway.
"""

from __future__ import annotations

import math

from rnnlab.ops import ops_for
from rnnlab.options import Positive, check_option
from rnnlab.parameters import Parameters, check_parameters


def gradient_norm(grads: Parameters) -> float:
    """The Euclidean norm of all gradients together; not finite if and only if an element is not finite."""
    check_parameters("gradient_norm", "grads", grads)
    flat = grads.flat
    ops = ops_for(flat)
    squares = float(ops.sum_of_squares(flat))
    if not math.isfinite(squares) and ops.first_non_finite(flat) is None:  # the sum overflowed
        largest = float(abs(flat).max())
        return largest * math.sqrt(float(ops.sum_of_squares(flat / largest)))
    return math.sqrt(squares)


def norm_scale(norm: float, max_norm: float | None) -> float:
    """The factor that scales a gradient of this norm to at most ``max_norm``; 1 if that is None."""
    return 1.0 if max_norm is None or norm <= max_norm else max_norm / norm


def clip_by_norm(grads: Parameters, max_norm: float) -> float:
    """Scale all gradients by one factor, in place, so that their norm is at most ``max_norm``.

    Pascanu, Mikolov and Bengio (2013), algorithm 1.

    Returns
    -------
    float
        The norm before clipping.

    Raises
    ------
    ValueError
        If ``max_norm`` is not a positive number. Infinity is one, which changes nothing.
    """
    check_parameters("clip_by_norm", "grads", grads)
    if max_norm != math.inf:
        check_option("clip_by_norm", "max_norm", Positive, max_norm)
    norm = gradient_norm(grads)
    if norm > max_norm:
        flat = grads.flat
        flat *= norm_scale(norm, max_norm)
    return norm


def clip_by_value(grads: Parameters, bound: float) -> None:
    """Clip every element of every gradient to [-bound, bound], in place.

    Raises
    ------
    ValueError
        If ``bound`` is not a positive number.
    """
    check_parameters("clip_by_value", "grads", grads)
    check_option("clip_by_value", "bound", Positive, bound)
    ops_for(grads.flat).clip_values(grads.flat, bound)
