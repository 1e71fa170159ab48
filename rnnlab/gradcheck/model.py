"""The gradient of each parameter of a model, checked element by element against central differences."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from rnnlab.errors import InputError, InputTypeError
from rnnlab.gradcheck.names import matching
from rnnlab.gradcheck.numeric import compared, eval_numerical_gradient, relative_distance
from rnnlab.gradcheck.precision import check_full_precision
from rnnlab.types import Array, Shapes

_WHOLE = 1_000_000  # examples and tokens of a batch that a small one may be part of


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
        If left out, it is an estimate of the rounding in the losses, 2e-16 loss sqrt(elements) / h, and at
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

            def numeric(step: float, name: str = name) -> Array:
                return eval_numerical_gradient(evaluate, model.params[name], verbose=False, h=step)

            (error, numerical), norm = compared(grad, numeric, h, tolerance), float(np.linalg.norm(grad))
            rounding = np.finfo(float).eps * abs(float(value)) * np.sqrt(grad.size) / h
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
    arguments = inspect.signature(model.loss).parameters
    takes_all = any(each.kind is each.VAR_KEYWORD for each in arguments.values())
    if "grads" not in arguments and not takes_all:
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
    if "part_of" in arguments or takes_all:
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
