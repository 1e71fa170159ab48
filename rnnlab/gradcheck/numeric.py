"""Is that backward right? Gradients by finite differences, held against the ones written by hand.

Four tools, from the most thorough to the cheapest:

- :func:`eval_numerical_gradient_array` and :func:`eval_numerical_gradient` perturb every number in turn, two
  evaluations for each: for layers, and for models of a few hundred parameters;
- :func:`grad_check_sparse` perturbs a few numbers drawn at random;
- :func:`projected_check` perturbs all of them at once along one random direction: two evaluations, however
  many parameters there are;
- :func:`check_untouched` finds a forward or a backward that writes into what it was given.

:func:`check_model` puts a whole model through the first and prints a table, parameter by parameter.

All of them want float64: in float32 the differences drown in rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from rnnlab.types import Array


def rel_error(x: Array, y: Array) -> float:
    """The largest relative difference of two arrays, max |x - y| / max(1e-8, |x| + |y|); 0 for empty ones.

    Raises
    ------
    ValueError
        If the arrays differ in shape: a gradient of the wrong shape is not right.
    """
    x, y = np.asarray(x), np.asarray(y)
    if x.shape != y.shape:
        raise ValueError(f"rel_error: x has shape {x.shape} and y {y.shape}, expected the same")
    return float(np.max(np.abs(x - y) / np.maximum(1e-8, np.abs(x) + np.abs(y)), initial=0.0))


def relative_distance(x: Array, y: Array) -> float:
    """The norm of the difference of two arrays over the sum of their norms; 0 where both vanish.

    It measures an array as a whole, which single numbers close to zero, where rounding rules, cannot spoil.
    NaN where a number is not finite.
    """
    size = float(np.linalg.norm(x) + np.linalg.norm(y))
    return 0.0 if size <= 1e-10 else float(np.linalg.norm(np.subtract(x, y))) / size


def eval_numerical_gradient(
    f: Callable[[Array], float], x: Array, verbose: bool = True, h: float = 1e-5
) -> Array:
    """The gradient of a scalar function by central differences.

    Parameters
    ----------
    f : callable
        ``f(x)`` is a number. Since x is perturbed in place, f may ignore its argument and read x elsewhere.
    x : array of floats
        Where to take the gradient; as it was when the function returns.
    verbose : bool
        Print each index with its derivative.
    h : float
        The step.

    Returns
    -------
    grad : array of the shape of x
    """
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
    x : array of floats
        Where to take the gradient; as it was when the function returns.
    df : array of the shape of f(x)
        The gradient that comes from above.
    h : float
        The step.

    Returns
    -------
    grad : array of the shape of x
    """
    grad = np.zeros(x.shape, np.float64)
    for index in np.ndindex(*x.shape):
        difference = _difference(lambda: np.array(f(x), copy=True), x, index, h)
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
    """Hold a few numbers of a gradient, drawn at random, against central differences.

    Parameters
    ----------
    f : callable
        ``f(x)`` is a number.
    x : array of floats
    analytic_grad : array of the shape of x
    num_checks : int
        How many numbers to draw.
    h : float
        The step.
    rng : numpy Generator or seed
    verbose : bool
        Print a line for each.

    Returns
    -------
    float
        The largest relative error.
    """
    rng = np.random.default_rng(rng)
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
    """Hold a whole gradient against two evaluations, along one random direction, N(0, 1) in each number.

    Parameters
    ----------
    f : callable
        ``f()`` is a number that depends on ``x``, which is perturbed in place.
    x, grad : arrays of one shape
        A model's ``params.flat`` and ``grads.flat``, say. x is as it was when the function returns.
    h : float
        The step.
    rng : numpy Generator or seed
        Where the direction comes from.

    Returns
    -------
    float
        The difference of the two directional derivatives, relative to the gradient's norm: that is the size a
        random projection has, while the projection itself may happen to be near zero.
    """
    rng = np.random.default_rng(rng)
    direction = rng.standard_normal(x.shape)  # of signs alone half may be each, and hide a constant error
    kept = x.copy()
    try:
        x[...] = kept + h * direction
        above = f()
        x[...] = kept - h * direction
        below = f()
    finally:
        x[...] = kept
    numerical, analytic = (above - below) / (2 * h), float(np.sum(grad * direction))
    return abs(numerical - analytic) / max(1e-8, float(np.linalg.norm(grad)))


def check_untouched(
    forward: Callable[..., Any], backward: Callable[..., Any], inputs: dict[str, Array], dout: Any
) -> list[str]:
    """Find what a forward or a backward writes into that is not its own.

    Parameters
    ----------
    forward : callable
        ``forward(**inputs)`` returns a tuple that ends with the cache.
    backward : callable
        ``backward(*dout, cache)``.
    inputs : dict of str to array
    dout : array or tuple of arrays

    Returns
    -------
    list of str
        The inputs, gradients and cache fields that changed; empty if all is well.
    """
    douts = dout if isinstance(dout, tuple) else (dout,)
    before = {f"input {name}": array.copy() for name, array in inputs.items()}
    *_, cache = forward(**inputs)
    touched = [
        name for name, kept in before.items() if not np.array_equal(kept, inputs[name[6:]], equal_nan=True)
    ]
    watched = {f"cache {path}": array for path, array in _arrays(cache)}
    watched |= {f"dout {k}": array for k, array in enumerate(douts)}
    kept_arrays = {name: array.copy() for name, array in watched.items()}
    backward(*douts, cache)
    return touched + [
        name
        for name, array in watched.items()
        if not np.array_equal(kept_arrays[name], array, equal_nan=True)
    ]


class ParameterCheck(NamedTuple):
    """How one parameter's gradient compares with the numeric one."""

    name: str
    shape: tuple[int, ...]
    error: float  # see check_model
    grad_norm: float
    passed: bool


def check_model(
    model: Any,
    batch: tuple[Any, ...],
    *,
    h: float = 1e-5,
    tolerance: float = 1e-7,
    floor: float = 1e-10,
    seed: int | None = None,
    verbose: bool = True,
) -> list[ParameterCheck]:
    """Hold every parameter's gradient of ``model.loss`` against central differences, and print a table.

    Parameters
    ----------
    model : a model
        With ``params`` (float64) and ``loss(*batch) -> loss, grads``. Make it small: two evaluations a
        number.
    batch : tuple
        What ``model.loss`` takes.
    h : float
        The step.
    tolerance : float
        The largest error that passes.
    floor : float
        A difference of so small a norm passes whatever the error: differences of losses are rounded to about
        1e-16 / h, which is all there is of a gradient that is next to zero, as some are of a model as it is
        made. Draw larger parameters to see more of it.
    seed : int, optional
        Check with the noise (dropout) that this seed gives, the same in every evaluation; none if left out.
    verbose : bool
        Print the table.

    Returns
    -------
    list of ParameterCheck
        In the order of the parameters; the error is their :func:`relative_distance`.

    Raises
    ------
    TypeError
        If the model's parameters are not float64.
    """
    if model.params.dtype != np.float64:
        raise TypeError(f"check_model: the model's parameters are {model.params.dtype}, expected float64")

    def loss() -> tuple[float, Any]:
        return model.loss(*batch, rng=None if seed is None else np.random.default_rng(seed))

    grads = {name: np.array(grad) for name, grad in loss()[1].items()}
    rows = []
    for name, grad in grads.items():
        numerical = eval_numerical_gradient(lambda _: loss()[0], model.params[name], verbose=False, h=h)
        error = relative_distance(grad, numerical)
        passed = error <= tolerance or float(np.linalg.norm(grad - numerical)) <= floor
        rows.append(ParameterCheck(name, grad.shape, error, float(np.linalg.norm(grad)), passed))
    if verbose:
        print(format_checks(rows))
    return rows


def format_checks(rows: list[ParameterCheck]) -> str:
    """A table of :class:`ParameterCheck`, a line each."""
    width = max([len("parameter"), *(len(row.name) for row in rows)])
    lines = [f"{'parameter':{width}}  {'shape':>14}  {'|gradient|':>10}  {'error':>8}"]
    for row in rows:
        verdict = "ok" if row.passed else "WRONG"
        lines.append(
            f"{row.name:{width}}  {row.shape!s:>14}  {row.grad_norm:10.3e}  {row.error:8.1e}  {verdict}"
        )
    return "\n".join(lines)


def _difference(f: Callable[[], Any], x: Array, index: tuple[int, ...], h: float) -> Any:
    """f with x[index] a step above, minus f with it a step below."""
    kept = x[index]
    try:
        x[index] = kept + h
        above = f()
        x[index] = kept - h
        below = f()
    finally:
        x[index] = kept
    return above - below


def _arrays(value: Any, path: str = "") -> Iterator[tuple[str, Array]]:
    if isinstance(value, np.ndarray):
        yield path or "itself", value
    elif hasattr(value, "_asdict"):
        for name, field in value._asdict().items():
            yield from _arrays(field, f"{path}.{name}" if path else name)
    elif isinstance(value, tuple | list):
        for k, item in enumerate(value):
            yield from _arrays(item, f"{path}[{k}]")
