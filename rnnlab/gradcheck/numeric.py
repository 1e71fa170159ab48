"""Numeric gradients, and checks of analytic gradients against them.

From the most thorough to the cheapest:

- :func:`eval_numerical_gradient_array` and :func:`eval_numerical_gradient` perturb each element in turn, with
  two evaluations per element. Use them for layers, and for models of a few hundred parameters.
- :func:`grad_check_sparse` perturbs a few elements drawn at random.
- :func:`projected_check` perturbs all elements at once along one random direction, with two evaluations.

:func:`check_model` checks all parameters of a model in the first way and prints a table, one row per
parameter.

All of them need float64, because in float32 rounding dominates the differences. Other dtypes raise TypeError.
If products are computed in reduced precision (:mod:`rnnlab.ops.precision`), all of them raise ValueError.
"""

from __future__ import annotations

import difflib
import fnmatch
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from rnnlab.errors import InputError, InputTypeError
from rnnlab.gradcheck.precision import check_full_precision
from rnnlab.types import Array, Shapes

_WHOLE = 1_000_000  # examples and tokens of a batch that a small one may be part of


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
    """
    _check_exact("grad_check_sparse", x)
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
    """
    _check_exact("projected_check", x)
    rng = np.random.default_rng(rng)
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


class ParameterCheck(NamedTuple):
    """The comparison of one parameter's gradient with the numeric one."""

    name: str
    shape: tuple[int, ...]
    error: float  # see check_model
    grad_norm: float
    passed: bool
    too_small: bool = False  # whether it passed because the difference is within rounding


def check_model(
    model: Any,
    batch: tuple[Any, ...],
    *,
    h: float = 1e-5,
    tolerance: float = 1e-7,
    floor: float | None = None,
    seed: int | None = None,
    only: str | None = None,
    verbose: bool = True,
    progress: bool = False,
) -> list[ParameterCheck]:
    """Check every parameter's gradient of ``model.loss`` against central differences, and print a table.

    Parameters
    ----------
    model : a model
        With ``params`` (float64) and ``loss(*batch, rng=None) -> loss, grads``. Make it small: each element
        of a parameter costs two evaluations of the loss.
    batch : tuple
        The arguments of ``model.loss``.
    h : float
        The step.
    tolerance : float
        The largest error that passes.
    floor : float, optional
        A difference of at most this norm passes, whatever the error, and the table says "too small to tell".
        If left out, it is an estimate of the rounding in the losses, 1e-16 loss sqrt(elements) / h, and at
        least 1e-10. Draw larger parameters to check gradients close to zero.
    seed : int, optional
        Draw dropout with this seed, the same in every evaluation; no dropout if left out.
    only : str, optional
        Check the parameters whose names contain this pattern, such as ``"W*"``; all if left out.
    verbose : bool
        Print the table, each row as soon as its parameter is checked.
    progress : bool
        Show a bar with the time left on standard error.

    Returns
    -------
    list of ParameterCheck
        In the order of the parameters. Errors are measured by :func:`relative_distance`.

    Raises
    ------
    TypeError
        If the model's parameters are not float64, or ``batch`` is not a tuple.
    ValueError
        If ``loss`` returns gradients whose names or shapes are not the parameters'; if it takes ``grads`` or
        ``part_of`` but does not use them as the solver requires; if no parameter matches ``only``; or if
        products are not computed in full precision.
    """
    check_full_precision("check_model")
    if model.params.dtype != np.float64:
        raise InputTypeError(
            f"check_model: the model's parameters are {model.params.dtype}, expected float64"
        )

    if not isinstance(batch, tuple):
        raise InputTypeError(
            f"check_model: batch is a {type(batch).__name__}, expected a tuple of the loss's arguments"
        )

    def loss(**options: Any) -> tuple[float, Any]:
        rng = None if seed is None else np.random.default_rng(seed)
        return model.loss(*batch, rng=rng, **options)

    value, found = loss()
    grads = {name: np.array(grad) for name, grad in found.items()}
    _check_gradients({name: grad.shape for name, grad in grads.items()}, model.params.shapes)
    _check_workspace(model, loss, grads)
    grads = {name: grads[name] for name in matching(list(grads), only, "check_model: only")}
    rows: list[ParameterCheck] = []
    width = _name_width(grads)
    with tqdm(total=sum(grad.size for grad in grads.values()), unit="number", disable=not progress) as bar:
        if verbose:
            tqdm.write(_header(width))
        for name, grad in grads.items():

            def evaluate(_: Array) -> float:
                bar.update(0.5)  # two evaluations per element
                return loss()[0]

            numerical = eval_numerical_gradient(evaluate, model.params[name], verbose=False, h=h)
            error, norm = relative_distance(grad, numerical), float(np.linalg.norm(grad))
            rounding = np.finfo(float).eps / 2 * abs(float(value)) * np.sqrt(grad.size) / h
            hidden = float(np.linalg.norm(grad - numerical)) <= (
                max(1e-10, rounding) if floor is None else floor
            )
            passed = error <= tolerance
            rows.append(
                ParameterCheck(name, grad.shape, error, norm, passed or hidden, hidden and not passed)
            )
            if verbose:
                tqdm.write(_line(rows[-1], width))
    return rows


def _check_workspace(model: Any, loss: Callable[..., tuple[float, Any]], expected: dict[str, Array]) -> None:
    """If a loss takes ``grads`` and ``part_of``, check that it uses them as the solver requires."""
    taken = inspect.signature(model.loss).parameters
    if "grads" not in taken:
        return
    grads = model.params.zeros_like()
    grads.flat[...] = 1.0
    returned = loss(grads=grads)[1]
    if returned is not grads:
        raise InputError(
            "check_model: loss returned other gradients than the grads it was given, expected it to write "
            "into grads and to return them"
        )
    for name, gradient in expected.items():
        if relative_distance(grads[name], gradient) > 1e-9:
            raise InputError(
                f"check_model: grads held ones, and loss left another gradient of {name} there than without "
                "grads, expected it to overwrite what they hold"
            )
    if "part_of" in taken:
        grads.flat[...] = 0
        loss(grads=grads, part_of=(_WHOLE, _WHOLE))
        one = grads.flat.copy()
        loss(grads=grads, part_of=(2 * _WHOLE, 2 * _WHOLE))
        if relative_distance(grads.flat, 1.5 * one) > 1e-9:
            raise InputError(
                "check_model: twice the numbers in part_of did not add half the gradient to grads, expected "
                "sums divided by the numbers of part_of, and gradients added to what grads hold"
            )


def _check_gradients(found: Shapes, expected: Shapes) -> None:
    """Check the names and shapes of a model's gradients."""
    for name in {**expected, **found}:
        if name not in found:
            raise InputError(f"check_model: loss returned no gradient of {name}")
        if name not in expected:
            raise InputError(f"check_model: loss returned a gradient of {name}, which is not a parameter")
        if found[name] != (shape := tuple(expected[name])):
            raise InputError(f"check_model: the gradient of {name} has shape {found[name]}, expected {shape}")


def matching(names: Sequence[str], pattern: str | None, argument: str) -> list[str]:
    """The names that contain a pattern, in which ``*``, ``?`` and ``[...]`` are wildcards; case is ignored.

    Raises
    ------
    ValueError
        If there are none; ``argument`` names the pattern in the message.
    """
    if pattern is None:
        return list(names)
    found = [name for name in names if fnmatch.fnmatchcase(name.lower(), f"*{pattern.lower()}*")]
    if not found:
        close = difflib.get_close_matches(pattern, names, n=3, cutoff=0.3) or list(names[:3])
        raise InputError(f"{argument} is {pattern!r}, which matches no name, such as {', '.join(close)}")
    return found


def format_checks(rows: list[ParameterCheck]) -> str:
    """A table of :class:`ParameterCheck`, one line each."""
    width = _name_width(row.name for row in rows)
    return "\n".join([_header(width), *(_line(row, width) for row in rows)])


def _name_width(names: Iterable[str]) -> int:
    return max([len("parameter"), *map(len, names)])


def _header(width: int) -> str:
    return f"{'parameter':{width}}  {'shape':>14}  {'|gradient|':>10}  {'error':>8}"


def _line(row: ParameterCheck, width: int) -> str:
    verdict = "too small to tell" if row.too_small else "ok" if row.passed else "WRONG"
    return f"{row.name:{width}}  {row.shape!s:>14}  {row.grad_norm:10.3e}  {row.error:8.1e}  {verdict}"


def _check_exact(function: str, x: Array) -> None:
    check_full_precision(function)
    if x.dtype != np.float64:
        raise InputTypeError(f"{function}: x has dtype {x.dtype}, expected float64")


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
