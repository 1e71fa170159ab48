"""Numeric gradients, and checks of analytic gradients against them.

From the most thorough to the cheapest:

- :func:`eval_numerical_gradient_array` and :func:`eval_numerical_gradient` perturb each element in turn, with
  two evaluations per element. Use them for layers, and for models of a few hundred parameters.
- :func:`grad_check_sparse` perturbs a few elements drawn at random.
- :func:`projected_check` perturbs all elements at once along one random direction, with two evaluations.

:func:`~rnnlab.gradcheck.check_model` checks all parameters of a model in the first way and prints a
table, one row per parameter.

All of them need float64, because in float32 rounding dominates the differences. Other dtypes raise TypeError.
If products are computed in reduced precision (:mod:`rnnlab.ops.precision`), all of them raise ValueError.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rnnlab.errors import InputError, InputTypeError
from rnnlab.gradcheck.precision import check_full_precision
from rnnlab.layers.checks import as_generator
from rnnlab.types import Array

# Truncation errors above this are not expected: a gradient that differs by more is wrong.
_TRUNCATION = 1e-3


def rel_error(x: Array, y: Array) -> float:
    """The largest elementwise relative error, ``max |x - y| / max(1e-8, |x| + |y|)``; 0 for empty arrays.

    Arrays of other types are converted to float64.
    A gradient whose exact value is close to zero has a large relative error from rounding alone. To decide
    whether a gradient is right, use :func:`relative_distance`.

    Raises
    ------
    ValueError
        If the shapes of the arrays differ.
    """
    x, y = _in_float64(x), _in_float64(y)
    if x.shape != y.shape:
        raise InputError(f"rel_error: x has shape {x.shape} and y {y.shape}, expected the same")
    return float(np.max(np.abs(x - y) / np.maximum(1e-8, np.abs(x) + np.abs(y)), initial=0.0))


def relative_distance(x: Array, y: Array) -> float:
    """The norm of x - y divided by the sum of the norms of x and y; 0 where that sum is at most 1e-10.

    So small a gradient cannot be distinguished from rounding. The distance is that of whole arrays, so that
    rounding in elements close to zero does not matter. Arrays of other types are converted to float64. The
    result is NaN if an element is not finite.

    Raises
    ------
    ValueError
        If the shapes of the arrays differ.
    """
    if np.shape(x) != np.shape(y):
        raise InputError(
            f"relative_distance: x has shape {np.shape(x)} and y {np.shape(y)}, expected the same"
        )
    x, y = _in_float64(x), _in_float64(y)
    size = float(np.linalg.norm(x) + np.linalg.norm(y))
    return 0.0 if size <= 1e-10 else float(np.linalg.norm(x - y)) / size


def _in_float64(x: Any) -> Array:
    """The array in float64, so that differences neither wrap around (integers) nor overflow early."""
    array = x if hasattr(x, "dtype") else np.asarray(x)
    return array.astype(np.result_type(array.dtype, np.float64), copy=False)


def eval_numerical_gradient(
    f: Callable[[Array], float], x: Array, verbose: bool = True, h: float = 1e-5
) -> Array:
    """The gradient of a scalar function by central differences.

    Parameters
    ----------
    f : callable
        ``f(x)`` is a number. x is perturbed in place, so that f may ignore its argument and read x elsewhere.
    x : array of float64
        Where to take the gradient. It is perturbed in place, and restored.
    verbose : bool
        Print each index with its derivative.
    h : float
        The step.

    Returns
    -------
    grad : array of the shape of x

    Raises
    ------
    TypeError
        If x is not an array of float64.
    ValueError
        If products are not computed in full precision.
    """
    _check_exact("eval_numerical_gradient", x)
    grad = np.zeros(x.shape, np.float64)
    for index in np.ndindex(*x.shape):
        grad[index] = _difference(lambda: f(x), x, index, h) / (2 * h)
        if verbose:
            print(index, grad[index])
    return grad


def eval_numerical_gradient_array(f: Callable[[Array], Array], x: Array, df: Array, h: float = 1e-5) -> Array:
    """The gradient of sum(f(x) * df), for a function whose value is an array.

    Parameters
    ----------
    f : callable
        ``f(x)`` is an array (or a number).
    x : array of float64
        Where to take the gradient. It is perturbed in place, and restored.
    df : array of the shape of f(x), or a number
        The upstream gradient.
    h : float
        The step.

    Returns
    -------
    grad : array of the shape of x

    Raises
    ------
    TypeError
        If x is not an array of float64.
    ValueError
        If ``df`` is an array of another shape than f(x), or products are not computed in full precision.
    """
    _check_exact("eval_numerical_gradient_array", x)
    grad = np.zeros(x.shape, np.float64)
    for index in np.ndindex(*x.shape):
        difference = _difference(lambda: np.array(f(x), copy=True), x, index, h)
        if np.ndim(df) and np.shape(df) != difference.shape:
            raise InputError(
                f"eval_numerical_gradient_array: df has shape {np.shape(df)}, expected that of f(x), "
                f"{difference.shape}"
            )
        grad[index] = np.sum(difference * df) / (2 * h)
    return grad


def grad_check_sparse(
    f: Callable[[Array], float],
    x: Array,
    analytic_grad: Array,
    num_checks: int = 10,
    h: float = 1e-5,
    *,
    rng: np.random.Generator | int = 0,
    verbose: bool = True,
) -> float:
    """Check a few elements of a gradient, drawn at random, against central differences.

    Parameters
    ----------
    f : callable
        ``f(x)`` is a number.
    x : array of float64
    analytic_grad : array of the shape of x
    num_checks : int
        The number of elements to draw.
    h : float
        The step.
    rng : numpy Generator or seed
    verbose : bool
        Print a line for each element.

    Returns
    -------
    float
        The largest relative error.

    Raises
    ------
    TypeError
        If x is not an array of float64.
    ValueError
        If x is empty, the shapes differ, or products are not computed in full precision.
    """
    _check_exact("grad_check_sparse", x, analytic_grad)
    if not x.size:
        raise InputError(f"grad_check_sparse: x has shape {x.shape}, expected at least one element")
    rng = as_generator("grad_check_sparse", rng)
    worst = 0.0
    for _ in range(num_checks):
        index = tuple(int(rng.integers(size)) for size in x.shape)
        numerical = float(_difference(lambda: f(x), x, index, h)) / (2 * h)
        analytic = float(analytic_grad[index])
        error = abs(numerical - analytic) / max(1e-8, abs(numerical) + abs(analytic))
        worst = float(np.maximum(worst, error))  # max() would lose a NaN
        if verbose:
            print(f"numerical: {numerical:f} analytic: {analytic:f}, relative error: {error:e}")
    return worst


def projected_check(
    f: Callable[[], float], x: Array, grad: Array, *, h: float = 1e-5, rng: np.random.Generator | int = 0
) -> float:
    """Check a whole gradient along one random direction with two evaluations.

    Parameters
    ----------
    f : callable
        ``f()`` is a number that depends on ``x``, which is perturbed in place.
    x, grad : arrays of one shape, x of float64
        Such as a model's ``params.flat`` and ``grads.flat``. x is restored.
    h : float
        The step.
    rng : numpy Generator or seed
        Draws the direction, N(0, 1) in each element.

    Returns
    -------
    float
        The difference of the two directional derivatives, divided by the norm of the gradient. The norm is
        the typical size of a projection, while the projection itself may happen to be near zero.

    Raises
    ------
    TypeError
        If x is not an array of float64.
    ValueError
        If the shapes differ, or products are not computed in full precision.
    """
    _check_exact("projected_check", x, grad)
    rng = as_generator("projected_check", rng)
    direction = rng.standard_normal(x.shape)  # random signs may cancel and hide a constant error
    saved = x.copy()
    try:
        x[...] = saved + h * direction
        above = f()
        x[...] = saved - h * direction
        below = f()
    finally:
        x[...] = saved
    numerical, analytic = (above - below) / (2 * h), float(np.sum(grad * direction))
    return abs(numerical - analytic) / max(1e-8, float(np.linalg.norm(grad)))


def compared(
    grad: Array, numerical: Callable[[float], Array], h: float, tolerance: float
) -> tuple[float, Array]:
    """The :func:`relative_distance` of a gradient and central differences, and the latter.

    Differences with a step have a truncation error, which grows with its square. If they differ from the
    gradient, those of twice the step remove it (Richardson's extrapolation): a function with large third
    derivatives, such as a layer normalisation, would look wrong otherwise. A wrong gradient stays wrong.

    Parameters
    ----------
    grad : array
    numerical : callable
        The numeric gradient for a step.
    h, tolerance : float
        The step, and the largest distance that needs no second look.
    """
    found = numerical(h)
    error = relative_distance(grad, found)
    if not tolerance < error < _TRUNCATION:
        return error, found
    extrapolated = (4 * found - numerical(2 * h)) / 3
    better = relative_distance(grad, extrapolated)
    return (better, extrapolated) if better < error else (error, found)


def _check_exact(function: str, x: Array, grad: Array | None = None) -> None:
    """Check that x can be perturbed in float64, and that a gradient has its shape."""
    check_full_precision(function)
    if getattr(x, "dtype", None) != np.float64:
        found = f"has dtype {x.dtype}" if hasattr(x, "dtype") else f"is a {type(x).__name__}"
        raise InputTypeError(f"{function}: x {found}, expected an array of float64")
    if grad is not None and np.shape(grad) != x.shape:
        raise InputError(f"{function}: the gradient has shape {np.shape(grad)}, expected {x.shape} as x")


def _difference(f: Callable[[], Any], x: Array, index: tuple[int, ...], h: float) -> Any:
    """f with x[index] one step higher, minus f with x[index] one step lower."""
    saved = x[index]
    try:
        x[index] = saved + h
        above = f()
        x[index] = saved - h
        below = f()
    finally:
        x[index] = saved
    return above - below
