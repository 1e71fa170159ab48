"""Every layer and every model held against numeric gradients: the work of ``rnnlab gradcheck``.

A layer's :class:`Case` names its forward, its backward and inputs drawn from a seeded generator. The check
takes the numeric gradient of sum(out * dout) in float64 with respect to each input, and watches that neither
direction writes into what it was given.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from rnnlab.gradcheck.cases import Case, layer_cases, model_cases
from rnnlab.gradcheck.numeric import (
    check_model,
    check_untouched,
    eval_numerical_gradient_array,
    relative_distance,
)
from rnnlab.ops import ops_for, ops_on
from rnnlab.types import Array


class Row(NamedTuple):
    """How one case went."""

    name: str
    error: float  # the worst of its gradients' distances from the numeric ones
    worst: str  # whose it was
    touched: list[str]  # what forward or backward wrote into
    passed: bool


def check_layers(*, tolerance: float = 1e-7, seed: int = 0, device: str = "cpu") -> Iterator[Row]:
    """Check every case of :func:`layer_cases` on a device, one row each."""
    rng, ops = np.random.default_rng(seed), ops_on(device)
    for case in layer_cases(rng):
        yield check_case(case if device == "cpu" else on_device(case, ops), tolerance=tolerance, rng=rng)


def check_models(*, tolerance: float = 1e-7, seed: int = 0, device: str = "cpu") -> Iterator[Row]:
    """Check every case of :func:`model_cases`, one row each.

    Numeric gradients are those of the CPU; on another device the gradients are held against the CPU's.
    """
    ops_on(device)
    for name, model, batch in model_cases(np.random.default_rng(seed)):
        if device != "cpu":
            yield _check_against_cpu(name, model, batch, tolerance=tolerance, seed=seed, device=device)
            continue
        rows = check_model(model, batch, tolerance=tolerance, seed=seed, verbose=False)
        worst = max(rows, key=lambda row: (not row.passed, row.error))  # a NaN is the worst
        yield Row(name, worst.error, worst.name, [], worst.passed)


def _check_against_cpu(
    name: str, model: Any, batch: tuple[Array, ...], *, tolerance: float, seed: int, device: str
) -> Row:
    """The same loss and the same gradients, under the same noise."""
    expected_loss, expected = model.loss(*batch, rng=np.random.default_rng(seed))
    loss, grads = model.to(device).loss(*batch, rng=np.random.default_rng(seed))
    asnumpy = ops_for(grads.flat).asnumpy
    errors = {key: relative_distance(asnumpy(grads[key]), expected[key]) for key in expected}
    errors["the loss"] = abs(loss - expected_loss) / max(abs(expected_loss), 1e-8)
    worst = max(errors, key=lambda key: (not errors[key] <= tolerance, errors[key]))
    return Row(name, errors[worst], worst, [], errors[worst] <= tolerance)


def on_device(case: Case, ops: Any) -> Case:
    """A case that takes and gives NumPy's arrays, while its work is done elsewhere."""

    def forward(**inputs: Array) -> tuple[Any, ...]:
        *outs, cache = case.forward(**{name: ops.asarray(array) for name, array in inputs.items()})
        return *(ops.asnumpy(out) if hasattr(out, "shape") else out for out in outs), cache

    def backward(*arguments: Any) -> tuple[Array, ...]:
        *douts, cache = arguments
        found = case.backward(*map(ops.asarray, douts), cache)
        return tuple(map(ops.asnumpy, found if isinstance(found, tuple) else (found,)))

    return case._replace(forward=forward, backward=backward)


def check_case(case: Case, *, tolerance: float, rng: np.random.Generator) -> Row:
    """Hold one layer's gradients against numeric ones."""
    *outs, cache = case.forward(**case.inputs)
    douts = [rng.standard_normal(np.shape(out)) for out in outs]
    touched = check_untouched(case.forward, case.backward, case.inputs, tuple(douts))
    grads = case.backward(*douts, cache)
    grads = grads if isinstance(grads, tuple) else (grads,)
    errors = {}
    for (name, array), grad in zip(case.inputs.items(), grads, strict=True):
        numerical = eval_numerical_gradient_array(
            lambda _: _joined(case.forward(**case.inputs)[:-1]), array, _joined(douts)
        )
        errors[name] = relative_distance(numerical, grad)
    worst = max(errors, key=lambda name: (not errors[name] <= tolerance, errors[name]))  # a NaN is the worst
    return Row(case.name, errors[worst], worst, touched, errors[worst] <= tolerance and not touched)


def _joined(outs: Iterable[Array]) -> Array:
    return np.concatenate([np.ravel(out) for out in outs])
