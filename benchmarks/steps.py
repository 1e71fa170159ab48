"""A training step of one of our models on one batch, as the solver does it, Adam included."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Array = Any


class OneBatch:
    """Data that are one batch."""

    splits = ("train",)

    def __init__(self, batch: tuple[Array, ...]) -> None:
        self._batch = batch

    def epoch(self, split: str, batch_size: int, rng: np.random.Generator | None) -> list[np.ndarray]:
        """The one batch there is."""
        return [np.arange(len(self._batch[-1]))]

    def batch(self, split: str, indices: np.ndarray) -> tuple[Array, ...]:
        """It."""
        return self._batch

    def num_tokens(self, batch: tuple[Array, ...]) -> int:
        """The real tokens after the first of each sentence, or the number of classes."""
        sentences = batch[-1]
        return len(sentences) if sentences.ndim == 1 else int((sentences[:, 1:] != 0).sum())


def training_step(
    model: Any, *batch: Array, device: str = "cpu", graphs: bool = False
) -> Callable[[], float]:
    """A step on a batch that is ready on the device, which waits for its loss; a graph by its second call."""
    step = training_steps(model, [batch], device=device, graphs=graphs)
    return lambda: step(0)


def training_steps(
    model: Any, batches: Sequence[tuple[Array, ...]], *, device: str = "cpu", graphs: bool = False
) -> Callable[[int], float]:
    """The same with several batches; a step takes the number of one."""
    return _on_the_cpu(model, batches) if device == "cpu" else _on_a_gpu(model, batches, device, graphs)


def _on_the_cpu(model: Any, batches: Sequence[tuple[Array, ...]]) -> Callable[[int], float]:
    from rnnlab.training import gradient_norm, make_update_rule

    rule, rng, grads = make_update_rule("adam"), np.random.default_rng(0), None

    def step(number: int) -> float:
        nonlocal grads
        loss, grads = model.loss(*batches[number], rng=rng, grads=grads)
        gradient_norm(grads)  # what the solver does against numbers that are not finite
        rule.step(model.params.flat, grads.flat)
        return loss

    return step


def _on_a_gpu(
    model: Any, batches: Sequence[tuple[Array, ...]], device: str, graphs: bool
) -> Callable[[int], float]:
    from rnnlab.training import Solver
    from rnnlab.training.state import TrainingState
    from rnnlab.training.step import Update

    data = OneBatch(batches[0])
    options = Solver(model, data, device=device, graphs=graphs, verbose=False, print_every=1).options
    update, state = Update(model, options), TrainingState(options, data)
    prepared = [update.prepared({0: batch}, data.num_tokens(batch), len(batch[-1])) for batch in batches]

    def step(number: int) -> float:
        update(prepared[number], state)
        state.count(averaged_over=1, tokens=1, seconds=0.0)
        state.read(update.read(state.iteration))
        return state.losses[-1]

    return step
