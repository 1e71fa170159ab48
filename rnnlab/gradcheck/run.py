"""Every layer and every model checked against numeric gradients: the work of ``rnnlab gradcheck``.

A :class:`~rnnlab.gradcheck.cases.Case` holds a layer's forward, its backward, and inputs drawn from a seeded
generator. The check computes the numeric gradient of sum(out * dout) in float64 with respect to each input,
and compares the inputs, dout and the cache before and after the backward.
"""

from __future__ import annotations

import functools
import multiprocessing
import os
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from rnnlab.environment import environment
from rnnlab.gradcheck.cases import Case
from rnnlab.gradcheck.layer_cases import layer_cases
from rnnlab.gradcheck.model import check_model
from rnnlab.gradcheck.model_cases import ModelCase, model_cases
from rnnlab.gradcheck.names import matching
from rnnlab.gradcheck.numeric import compared, eval_numerical_gradient_array, relative_distance
from rnnlab.gradcheck.precision import check_full_precision
from rnnlab.gradcheck.recurrent_cases import cell_cases
from rnnlab.gradcheck.side_effects import check_untouched
from rnnlab.ops import ops_for, ops_on
from rnnlab.pools import map_in_processes
from rnnlab.types import Array


class Row(NamedTuple):
    """The result of one case."""

    name: str
    error: float  # the largest relative distance from the numeric gradients that rounding does not explain
    worst: str  # the input or parameter of that gradient
    wrong: list[str]  # all inputs and parameters whose gradients fail
    touched: list[str]  # arrays of others that the forward or the backward wrote into
    passed: bool


def case_names(only: str | None = None, *, seed: int = 0, cell: str | None = None) -> list[str]:
    """The names of the layers and then of the models that are checked.

    Parameters
    ----------
    only : str, optional
        Those that contain this pattern, with the wildcards ``*``, ``?`` and ``[...]``; all if left out.
    cell : str, optional
        A custom cell, by a registered name or "package.module:Name": it is checked instead of the
        library, over sequences, with regularisation and attention, and in every model.

    Raises
    ------
    ValueError
        If no name matches ``only``.
    """
    return matching([case.name for case in _cases(seed, cell)], only, "only")


def check_all(
    *,
    only: str | None = None,
    jobs: int = 1,
    tolerance: float = 1e-7,
    seed: int = 0,
    device: str = "cpu",
    cell: str | None = None,
) -> Iterator[Row]:
    """Check every layer and every model; yield one row each, in the order of :func:`case_names`.

    Parameters
    ----------
    only : str, optional
        As for :func:`case_names`.
    jobs : int
        The number of processes, on the CPU. Above 1 a script needs ``if __name__ == "__main__"``, as for
        :mod:`multiprocessing`.
    tolerance : float
        The largest relative distance that passes.
    seed : int
        Draws the inputs and the dropout. A row depends on it, and not on the other rows.
    device : str
        Where the analytic gradients are computed. Numeric gradients of layers use forward passes on this
        device. On a GPU the gradients of models are compared with those of the CPU.
    cell : str, optional
        As for :func:`case_names`.

    Raises
    ------
    ValueError
        If no name matches ``only``, or products are not computed in full precision.
    """
    check_full_precision("check_all")
    ops_on(device)
    wanted = set(case_names(only, seed=seed, cell=cell))
    indices = [index for index, case in enumerate(_cases(seed, cell)) if case.name in wanted]
    check = functools.partial(_check, tolerance=tolerance, seed=seed, device=device, cell=cell)
    jobs = min(jobs, len(indices)) if device == "cpu" else 1
    if jobs <= 1:
        yield from map(check, indices)
        return
    yield from _in_processes(check, indices, jobs)


def _in_processes(check: Any, indices: list[int], jobs: int) -> Iterator[Row]:
    """Start the processes, each with one thread for its kernels, and distribute the cases among them."""
    start = functools.partial(_announce_once, multiprocessing.get_context("spawn").Semaphore(1))
    with environment(RNNLAB_NUM_THREADS="1"):
        return map_in_processes(check, indices, jobs=jobs, method="spawn", start=start)


def _announce_once(announces: Any) -> None:
    """Let only the process that acquires a semaphore of 1 report that kernels are being compiled."""
    if not announces.acquire(block=False):
        os.environ["RNNLAB_KERNELS_ANNOUNCED"] = "1"


@functools.cache
def _cases(seed: int, cell: str | None) -> list[Case | ModelCase]:
    """The cases of layers, then those of models."""
    rng, rng_of_models = np.random.default_rng(seed), np.random.default_rng(seed)
    if cell is not None:
        return [*cell_cases(cell, rng), *model_cases(rng_of_models, (cell,))]
    return [*layer_cases(rng), *model_cases(rng_of_models)]


def _check(index: int, *, tolerance: float, seed: int, device: str, cell: str | None) -> Row:
    case = _cases(seed, cell)[index]
    if isinstance(case, Case):
        rng = np.random.default_rng([seed, index])
        return check_case(
            case if device == "cpu" else on_device(case, ops_on(device)), tolerance=tolerance, rng=rng
        )
    if device != "cpu":
        return _check_against_cpu(case, tolerance=tolerance, seed=seed, device=device)
    rows = check_model(case.model, case.batch, tolerance=tolerance, seed=seed, verbose=False)
    # a gradient close to zero passes with a larger error, due to rounding in the loss, which is not shown
    shown = [row for row in rows if not row.too_small] or rows
    errors = {row.name: row.error for row in shown}
    return _row(case.name, errors, [row.name for row in rows if not row.passed])


def _check_against_cpu(case: ModelCase, *, tolerance: float, seed: int, device: str) -> Row:
    """Compare a model's loss and gradients on a device with those on the CPU, under the same dropout."""
    name, model, batch = case
    expected_loss, expected = model.loss(*batch, rng=np.random.default_rng(seed))
    loss, grads = model.to(device).loss(*batch, rng=np.random.default_rng(seed))
    asnumpy = ops_for(grads.flat).asnumpy
    errors = {key: relative_distance(asnumpy(grads[key]), expected[key]) for key in expected}
    errors["the loss"] = abs(loss - expected_loss) / max(abs(expected_loss), 1e-8)
    return _row(name, errors, _above(tolerance, errors))


def on_device(case: Case, ops: Any) -> Case:
    """A case that takes and returns NumPy arrays, and computes on the device of ``ops``."""

    def forward(**inputs: Array) -> tuple[Any, ...]:
        *outs, cache = case.forward(**{name: ops.asarray(array) for name, array in inputs.items()})
        return *(ops.asnumpy(out) if hasattr(out, "shape") else out for out in outs), cache

    def backward(*arguments: Any) -> tuple[Array, ...]:
        *douts, cache = arguments
        found = case.backward(*map(ops.asarray, douts), cache)
        return tuple(map(ops.asnumpy, found if isinstance(found, tuple) else (found,)))

    return case._replace(forward=forward, backward=backward)


def check_case(case: Case, *, tolerance: float, rng: np.random.Generator) -> Row:
    """Check the gradients of one layer, and that it does not write into its arguments."""
    *outs, cache = case.forward(**case.inputs)
    douts = [rng.standard_normal(np.shape(out)) for out in outs]
    touched = check_untouched(case.forward, case.backward, case.inputs, tuple(douts))
    grads = case.backward(*douts, cache)
    grads = grads if isinstance(grads, tuple) else (grads,)
    errors = {}
    for (name, array), grad in zip(case.inputs.items(), grads, strict=True):

        def numeric(h: float, array: Array = array) -> Array:
            return eval_numerical_gradient_array(
                lambda _: _joined(case.forward(**case.inputs)[:-1]), array, _joined(douts), h
            )

        errors[name], _ = compared(grad, numeric, 1e-5, tolerance)
    return _row(case.name, errors, _above(tolerance, errors), touched)


def _above(tolerance: float, errors: dict[str, float]) -> list[str]:
    return [name for name, error in errors.items() if not error <= tolerance]  # also NaN


def _row(name: str, errors: dict[str, float], wrong: list[str], touched: list[str] | None = None) -> Row:
    worst = max(errors, key=lambda key: (key in wrong, errors[key]))
    touched = touched or []
    return Row(name, errors[worst], worst, wrong, touched, passed=not wrong and not touched)


def _joined(outs: Iterable[Array]) -> Array:
    return np.concatenate([np.ravel(out) for out in outs])
