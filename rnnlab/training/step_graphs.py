"""Training steps as CUDA graphs: one for each shape of a batch, captured when the shape occurs again.

At the first batch of a shape the kernels are launched one by one, which compiles them. At the second batch
the step is captured, and from then on the graph is launched. Batches are padded
(:mod:`rnnlab.models.parts.padding`), so that there are few shapes. A graph reads its own arrays, into which
each batch is copied. A graph has the loss weights of its capture, so other weights need other graphs. A step
at which the weights change is launched kernel by kernel, so that weights that change at every step do not
fill the memory with graphs. A graph also has the precision of products of its capture, which is the same for
all steps of a solver.

Code that waits for the device cannot be captured. Code from outside the library may wait, so a model or a
cell of a user's class is captured only if the user asks for graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from rnnlab.errors import InputError, InputTypeError
from rnnlab.importing import is_built_in
from rnnlab.layers.recurrent.cell import cell_for
from rnnlab.models.parts.padding import Padded
from rnnlab.ops import device_of, gpu_training
from rnnlab.training.optim import runs_on_device
from rnnlab.training.options import Options
from rnnlab.training.protocols import Model

Batch = Sequence[Padded]

MOST = 64  # graphs; batches of further shapes are launched kernel by kernel


def uses_graphs(model: Model, options: Options, ranks: int, *, carries_state: bool = False) -> bool:
    """Whether steps are launched as CUDA graphs: as the option says, and by default wherever possible.

    Parameters
    ----------
    model : Model
    options : Options
    ranks : int
        How many processes train together.
    carries_state : bool
        Whether the batches of the data continue each other.

    Raises
    ------
    ValueError, TypeError
        If graphs are asked for but impossible. The message gives the reason.
    """
    if options.graphs is False:
        return False
    obstacle = _obstacle(model, options, ranks, carries_state)
    if options.graphs and obstacle is not None:
        raise obstacle
    return obstacle is None and (bool(options.graphs) or _is_of_built_in_classes(model))


def obstacle_of_place(device: str, ranks: int) -> InputError | None:
    """The error if a device or several ranks rule out CUDA graphs; None if they do not."""
    if device == "cpu":
        return InputError(
            "graphs is true, but the model is on the CPU: CUDA graphs need a GPU, device='gpu' or "
            "--device gpu; a run that had them resumes without them with graphs=False or --no-graphs"
        )
    if ranks > 1:
        return InputError(
            f"communicator has {ranks} ranks, and graphs is true: a graph holds the whole step of one "
            "process; set graphs=False or --no-graphs"
        )
    return None


def obstacle_of_options(options: Any) -> InputError | None:
    """The error if options of a solver or of a table [training] rule out CUDA graphs; None if they do not."""
    if not runs_on_device(options.update_rule):
        return InputError(
            f"graphs is true, but update_rule is {options.update_rule!r}: only built-in rules take their "
            "learning rate from the device, set graphs=False or --no-graphs"
        )
    if options.scheduled_sampling is not None:
        return InputError(
            "graphs is true, but scheduled_sampling is given, which reads the model's words back; set "
            "graphs=False or --no-graphs"
        )
    return None


def _obstacle(
    model: Model, options: Options, ranks: int, carries_state: bool
) -> InputError | InputTypeError | None:
    """The error if the model, the data or the options rule out CUDA graphs; None if they do not."""
    found = obstacle_of_place(device_of(model.params.flat), ranks) or obstacle_of_options(options)
    if found is not None:
        return found
    if carries_state:
        return InputError(
            "graphs is true, but the batches of the data continue each other, and a padded batch has no "
            "state; set graphs=False or --no-graphs"
        )
    missing = [name for name in ("padded", "padded_loss", "prefetch_padded") if not hasattr(model, name)]
    if missing:
        return InputTypeError(f"graphs is true, but this {type(model).__name__} has no {', '.join(missing)}")
    if _overrides_loss_alone(type(model)):
        return InputTypeError(
            f"graphs is true, but this {type(model).__name__} has a loss of its own and no padded_loss of "
            "its own, which is what graphs compute"
        )
    return None


def _overrides_loss_alone(model: type) -> bool:
    """Whether a user's class overrides ``loss`` but not the corresponding ``padded_loss``."""
    for each in model.__mro__:
        if "padded_loss" in vars(each) or is_built_in(each):
            return False
        if "loss" in vars(each):
            return True
    return False


def _is_of_built_in_classes(model: Model) -> bool:
    """Whether the classes of a model and of its cell are the library's own."""
    return is_built_in(type(model)) and is_built_in(type(cell_for("Solver", model.config()["cell_type"])))


class StepGraphs:
    """Runs steps on batches in padded parts, which are on the device.

    Parameters
    ----------
    step : callable
        Runs one step on such a batch. The shapes and the loss weights determine its kernels; only dropout
        masks and the numbers of the update rule change from call to call.
    loss_weights : callable
        The model's current loss weights: they may change between two steps, and a graph keeps those of its
        capture.
    """

    def __init__(
        self, step: Callable[[Batch], None], loss_weights: Callable[[], Mapping[str, float]]
    ) -> None:
        self._step, self._loss_weights = step, loss_weights
        self._weights = dict(loss_weights())  # weights of the last step
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
        weights = dict(self._loss_weights())
        if weights != self._weights:
            self._weights = weights
            self._step(batch)
            return
        shape = *weights.values(), *(part.shape for part in batch)
        if shape not in self._batches:
            # The copies come first, so that no step has been made if there is no memory for them.
            kept = batch if len(self._batches) < MOST else ()
            copies = [part.on(lambda array: array.copy()) for part in kept]
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
