"""Training steps as CUDA graphs: one for each shape of a batch, captured at its second time.

At a shape's first batch the kernels are launched one by one, which compiles them; at its second the step is
captured, and from then on the graph is launched. Batches are padded (:mod:`rnnlab.models.parts.padding`), so
that there are few shapes. A graph reads arrays of its own, into which each batch is copied. It keeps the
precision of products of its capture, which is the same for all steps of a solver.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rnnlab.models.parts.padding import Padded
from rnnlab.ops import gpu_training

Batch = Sequence[Padded]

MOST = 64  # graphs; batches of further shapes are launched piece by piece


class StepGraphs:
    """Runs steps on batches in padded parts, which are on the device.

    Parameters
    ----------
    step : callable
        Runs one step on such a batch. Its kernels follow from the shapes; only dropout masks and the numbers
        of the update rule change from call to call.
    """

    def __init__(self, step: Callable[[Batch], None]) -> None:
        self._step = step
        self._memory = gpu_training().GraphMemory()
        self._batches: dict[tuple[Any, ...], Batch] = {}
        self._graphs: dict[tuple[Any, ...], Any] = {}

    def __call__(self, batch: Batch, rng: np.random.Generator, tell: Callable[[], None]) -> None:
        """Run a step.

        Parameters
        ----------
        batch : sequence of Padded
        rng : numpy Generator
            Draws the seeds of dropout.
        tell : callable
            Called before a graph is launched: sets the update rule's numbers, which change from step to step.
        """
        shape = tuple(part.shape for part in batch)
        if shape not in self._batches:
            # The copies come first: if there is no memory for them, no step has been made.
            copies = [part.on(lambda array: array.copy()) for part in batch if len(self._batches) < MOST]
            self._step(batch)
            if copies:
                self._batches[shape] = copies
            return
        own = self._batches[shape]
        for part, place in zip(batch, own, strict=True):
            for name, array in part.arrays.items():
                place.arrays[name][...] = array
        if shape not in self._graphs:
            self._graphs[shape] = gpu_training().Graph(lambda: self._step(own), self._memory)
        self._graphs[shape].launch(rng, tell)
