"""A training step of a model of rnnlab on one batch, as in the solver, Adam included."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Array = Any


class OneBatch:
    """Training data that consist of one batch."""

    splits = ("train",)

    def __init__(self, batch: tuple[Array, ...]) -> None:
        self._batch = batch

    def epoch(self, split: str, batch_size: int, rng: np.random.Generator | None) -> list[np.ndarray]:
        """The indices of the batch."""
        return [np.arange(len(self._batch[-1]))]

    def batch(self, split: str, indices: np.ndarray) -> tuple[Array, ...]:
        """The batch, or some of its rows."""
        if len(indices) == len(self._batch[-1]):
            return self._batch
        return tuple(array[indices] for array in self._batch)

    def num_tokens(self, batch: tuple[Array, ...]) -> int:
        """The real tokens after the first of each sentence, or the number of classes."""
        sentences = batch[-1]
        return len(sentences) if sentences.ndim == 1 else int((sentences[:, 1:] != 0).sum())


def training_step(
    model: Any, *batch: Array, device: str = "cpu", graphs: bool = False
) -> Callable[[], float]:
    """A training step on a batch that is on the device; it waits for the loss.

    With ``graphs`` a step is captured as a CUDA graph, and later calls launch the graph.
    """
    step = training_steps(model, [batch], device=device, graphs=graphs)
    return lambda: step(0)


def training_steps(
    model: Any, batches: Sequence[tuple[Array, ...]], *, device: str = "cpu", graphs: bool = False
) -> Callable[[int], float]:
    """Training steps on several batches. The function takes the number of a batch."""
    return _on_the_cpu(model, batches) if device == "cpu" else _on_a_gpu(model, batches, device, graphs)


def _on_the_cpu(model: Any, batches: Sequence[tuple[Array, ...]]) -> Callable[[int], float]:
    from rnnlab.training import gradient_norm, make_update_rule

    rule, rng, grads = make_update_rule("adam"), np.random.default_rng(0), None

    def step(number: int) -> float:
        nonlocal grads
        loss, grads = model.loss(*batches[number], rng=rng, grads=grads)
        gradient_norm(grads)  # the solver computes it to detect numbers that are not finite
        rule.step(model.params.flat, grads.flat)
        return loss

    return step


def _on_a_gpu(
    model: Any, batches: Sequence[tuple[Array, ...]], device: str, graphs: bool
) -> Callable[[int], float]:
    from rnnlab.training import Solver
    from rnnlab.training.options import rules_of
    from rnnlab.training.preparation import Preparation
    from rnnlab.training.state import TrainingState
    from rnnlab.training.step import Update

    data = OneBatch(batches[0])
    options = Solver(model, data, device=device, graphs=graphs, verbose=False, print_every=1).options
    update, state = Update(model, options), TrainingState(options, rules_of(options), data)
    prepared = [
        Preparation(model, OneBatch(batch), options, graphs=update.graphs)(np.arange(len(batch[-1])))
        for batch in batches
    ]

    def step(number: int) -> float:
        update(prepared[number], state)
        state.count(averaged_over=1, tokens=1, seconds=0.0)
        state.read(update.read(state.iteration))
        return state.losses[-1]

    return step
