"""One update: the gradient of a batch, whole or in parts, looked at and clipped, and the rule's step."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from rnnlab.parameters import Parameters
from rnnlab.training.accumulation import num_examples, parts_of
from rnnlab.training.freezing import Trained
from rnnlab.training.gradient_checks import gradient_checks
from rnnlab.training.options import Options
from rnnlab.training.protocols import Array, Model
from rnnlab.training.state import TrainingState


def check_sampled(model: Model, scheduled_sampling: Mapping[str, Any] | None) -> None:
    """Raise TypeError if there is to be scheduled sampling, and the model's loss takes no ``sampling``."""
    if scheduled_sampling is not None:
        _check_takes(model, "sampling", "scheduled_sampling is given")


def _check_takes(model: Model, keyword: str, reason: str) -> None:
    """Raise TypeError if the model's loss does not take a keyword, which it needs for this reason."""
    arguments = inspect.signature(model.loss).parameters
    if keyword not in arguments and all(each.kind is not each.VAR_KEYWORD for each in arguments.values()):
        raise TypeError(f"{reason}, but the loss of this {type(model).__name__} takes no {keyword}")


class Update:
    """Updates the parameters of a model, batch after batch, with room for the gradient of its own.

    Parameters
    ----------
    model : Model
    options : Options

    Raises
    ------
    ValueError
        If ``trains`` has a pattern that matches no parameter.
    TypeError
        If there is to be scheduled sampling, and the model's loss takes no ``sampling``; or accumulation, and
        it takes no ``part_of``.
    """

    def __init__(self, model: Model, options: Options) -> None:
        self._trained = Trained(model.params, options.trains)
        check_sampled(model, options.scheduled_sampling)
        if options.accumulate > 1:
            _check_takes(model, "part_of", f"accumulate is {options.accumulate}")
        self._model, self._options = model, options
        self._grads = model.params.zeros_like()
        self._checks = gradient_checks(model.params, options)

    @property
    def waiting(self) -> int:
        """How many updates there may be until :meth:`read` is called."""
        return self._checks.waiting

    def __call__(self, batch: tuple[Array, ...], tokens: int, state: TrainingState) -> None:
        """Update by a batch of so many tokens.

        Raises
        ------
        NonFiniteError
            On a CPU, if the loss or the gradient is not finite. Nothing is updated then.
        MemoryError
            If the batch is too large; says what would need less. Nothing is updated then.
        """
        params = self._model.params
        try:
            loss, grads = self._gradient(batch, tokens, state)
        except MemoryError as error:
            raise self._out_of_memory(batch, tokens, state, error) from error
        self._trained.clear_frozen(grads)
        scale = self._checks.look(state.iteration + 1, loss, params, grads)
        rule, rate, parts = state.rule, state.multiplier, self._trained.parts
        rule.step(params.flat, grads.flat, scale=scale, rate=rate, parts=parts)

    def read(self, first: int) -> list[tuple[float, float]]:
        """Losses and norms, before clipping, of the updates since the last time; ``first`` is the first.

        Raises
        ------
        NonFiniteError
            On a GPU, if one is not finite: nothing has been updated from that iteration on.
        """
        return self._checks.read(first, self._model.params, self._grads)

    def _out_of_memory(
        self, batch: tuple[Array, ...], tokens: int, state: TrainingState, error: MemoryError
    ) -> MemoryError:
        """The same error, with the sizes that it comes of and the options that lower them."""
        flat, slots = self._model.params.flat, 2 + len(state.rule.slots)
        return MemoryError(
            f"iteration {state.iteration + 1}: out of memory: {error}; parameters, gradients and the update "
            f"rule's state are {slots * flat.nbytes / 1e6:,.0f} MB, and the batch has {num_examples(batch)} "
            f"examples and {tokens} tokens, in {self._options.accumulate} parts: a smaller batch_size needs "
            "less, and a larger accumulate makes the same gradient in more parts"
        )

    def _gradient(
        self, batch: tuple[Array, ...], tokens: int, state: TrainingState
    ) -> tuple[Any, Parameters]:
        """The loss of a batch and its gradient; in parts, if it is to be accumulated."""
        options: dict[str, Any] = {"rng": state.noise, "grads": self._grads}
        if state.sampling is not None:
            options["sampling"] = state.sampling
        if self._options.accumulate == 1:
            return self._model.loss(*batch, **options)
        options["part_of"] = (num_examples(batch), tokens)
        self._grads.flat[...] = 0
        parts = parts_of(batch, self._options.accumulate)
        return sum(self._model.loss(*part, **options)[0] for part in parts), self._grads
