"""Random parameters for a part of a model, and the check of its gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rnnlab.layers import Regularisation
from rnnlab.layers.recurrent.cell import cell_for
from rnnlab.models.parts.recurrent_layer import Recurrence
from rnnlab.parameters import Parameters

from ...layers.reference import assert_gradients

N, T, D, W, H, P, V = 3, 4, 6, 7, 5, 2, 8
LENGTHS = np.array([4, 2, 0])


def recurrence(cell: str, **regularisation: Any) -> Recurrence:
    """A built-in cell."""
    return Recurrence(cell_for("recurrence", cell), Regularisation(**regularisation))


def random_parameters(part: Any, rng: np.random.Generator) -> Parameters:
    """Parameters of the part's shapes."""
    params = Parameters(part.shapes(), np.float64)
    params.flat[...] = rng.uniform(-0.8, 0.8, params.flat.size)
    return params


def dropout_rng() -> np.random.Generator:
    """The same generator for each call of a forward."""
    return np.random.default_rng(1)


def assert_part(
    part: Any,
    forward: Callable[..., tuple[Any, ...]],
    backward: Callable[..., tuple[Any, ...]],
    inputs: dict[str, Any],
    rng: np.random.Generator,
) -> None:
    """Check the gradients of inputs and parameters; those of parameters are added to what ``grads`` holds.

    ``forward(params, **inputs) -> *outs, cache``; ``backward(*douts, cache, grads) -> dinputs``.
    """
    params = random_parameters(part, rng)

    def run(**arrays: Any) -> tuple[Any, ...]:
        return forward(params, **{name: arrays[name] for name in inputs})

    def run_back(*douts: Any) -> tuple[Any, ...]:
        *douts, cache = douts
        grads = params.zeros_like()
        grads.flat[...] = 1
        dinputs = backward(*douts, cache, grads)
        return *dinputs, *(grads[name] - 1 for name in params)

    assert_gradients(run, run_back, {**inputs, **params}, rng, directions=1)


def assert_decodes(part, source, rng):
    """Steps of decoding give the outputs and the attention of a whole sequence."""
    params, words = random_parameters(part, rng), rng.standard_normal((N, T, W))
    decoded, _ = part.forward(params, words, source, None)
    state = part.start(params, source)
    for t in range(T):
        step, state = part.advance(words[:, t], state)
        np.testing.assert_allclose(step.hidden, decoded.hidden[:, t], rtol=1e-12)
        if part.context_dim:
            np.testing.assert_allclose(step.contexts, decoded.contexts[:, t], rtol=1e-12)
        if part.attends_to_source:
            np.testing.assert_allclose(part.attention(state), decoded.weights["source"][:, t], rtol=1e-12)
