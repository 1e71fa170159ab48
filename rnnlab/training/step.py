"""One training step: the gradient of a batch, in parts, on all ranks; clipping, and the rule's update."""

from __future__ import annotations

import operator
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from rnnlab.errors import InputError, InputTypeError
from rnnlab.options import described
from rnnlab.training.carried_state import REASON, check_takes_state, joined
from rnnlab.training.distributed import ALONE, Communicator
from rnnlab.training.gradient_monitor import NO_TERMS, Recorded, Terms, gradient_monitor
from rnnlab.training.gradient_sum import GradientSum
from rnnlab.training.options import Options
from rnnlab.training.parameter_groups import ParameterGroups
from rnnlab.training.preparation import Part, Prepared, padded
from rnnlab.training.protocols import Model, Objective, Rollout, averages_tokens, check_takes, results_of
from rnnlab.training.state import TrainingState
from rnnlab.training.step_graphs import StepGraphs, uses_graphs
from rnnlab.types import State


def check_sampled(model: Model, scheduled_sampling: Mapping[str, Any] | None) -> None:
    """Raise TypeError if scheduled sampling is set and the model's loss takes no ``sampling``."""
    if scheduled_sampling is not None:
        check_takes(model, "sampling", "scheduled_sampling is given")


def check_objective(model: Model, options: Options, objective: Objective) -> None:
    """Raise ValueError or TypeError if a model cannot be trained for an objective."""
    if options.scheduled_sampling is not None:
        raise InputError(
            "scheduled_sampling is given, expected none with an objective, which samples whole sentences"
        )
    objective.check(model)


def check_carried(model: Model, objective: Objective | None) -> None:
    """Raise ValueError or TypeError if a model cannot be trained on batches that continue each other."""
    check_takes_state(model, "loss")
    if objective is not None:
        raise InputError(f"objective is given, expected none: {REASON}, and an objective makes other ones")


class Update:
    """Updates the parameters of a model, batch after batch; owns the workspace of the gradient.

    Parameters
    ----------
    model : Model
    options : Options
    objective : Objective, optional
        Makes the batches of the loss from those of the data.
    communicator : Communicator, optional
        The ranks that compute the gradient together.
    carries_state : bool
        Whether the batches of the data continue each other.

    Attributes
    ----------
    grads : Parameters
        The gradient of the last update, which the next one overwrites.
    graphs : bool
        Whether updates are launched as CUDA graphs.

    Raises
    ------
    ValueError
        If ``trains``, ``weight_decay`` or ``learning_rate_factors`` has a pattern that matches no parameter,
        or CUDA graphs are asked for but impossible.
    TypeError
        If scheduled sampling is set and the model's loss takes no ``sampling``, there are several parts and
        it takes no ``part_of``, or the batches continue each other and it takes no ``state``.
    """

    def __init__(
        self,
        model: Model,
        options: Options,
        objective: Objective | None = None,
        communicator: Communicator = ALONE,
        *,
        carries_state: bool = False,
    ) -> None:
        self._communicator = communicator
        self._groups = ParameterGroups.of(model.params, options)
        check_sampled(model, options.scheduled_sampling)
        if options.accumulate > 1:
            check_takes(model, "part_of", f"accumulate is {options.accumulate}")
        if objective is not None:
            check_objective(model, options, objective)
        if communicator.size > 1:
            check_takes(model, "part_of", f"communicator has {communicator.size} ranks")
        if carries_state:
            check_carried(model, objective)
        self.graphs = uses_graphs(model, options, communicator.size, carries_state=carries_state)
        self._model, self._options, self._objective = model, options, objective
        self.grads = model.params.zeros_like()
        self._sum = GradientSum(communicator, self.grads) if communicator.size > 1 else None
        self._announces = getattr(model.loss, "announces_gradients", False)
        self._gradient_monitor = gradient_monitor(model.params, self.grads, options)
        self._graphs: StepGraphs | None = None
        self._graphs_of: tuple[Any, ...] = ()

    @property
    def read_every(self) -> int:
        """The maximum number of updates between two calls of :meth:`read`."""
        return self._gradient_monitor.read_every

    @property
    def loss(self) -> Any:
        """The loss of the last update: a float, or an array () on the GPU."""
        return self._gradient_monitor.loss

    def __call__(
        self, batch: Prepared, state: TrainingState, hold: Callable[[], None] = lambda: None
    ) -> Prepared:
        """Make one update. Returns the batch, with the numbers of examples and tokens over all ranks.

        With an objective, the returned batch is the one that the objective has computed. ``hold`` is called
        before the parameters change.

        Raises
        ------
        NonFiniteError
            On a CPU, if the loss or the gradient is not finite. Nothing is updated then.
        MemoryError
            If the batch is too large. The message lists the options that reduce memory. Nothing is updated
            then.

        Notes
        -----
        After an error the generator and the count of updates are as before. If the error occurred in the
        update rule, a part of the parameters may have been changed.
        """
        restore = state.snapshot()
        try:
            if self._objective is not None:
                batch = self._rolled_out(batch, state.rng)
            batch, all_have_rows = self._of_all_ranks(batch)
            if self._objective is not None:
                batch = self._averaged_over_sentences(batch)
                batch = padded(self._model, batch) if self.graphs else batch
            if batch.padded is None:
                loss, terms, after = self._gradient(batch, state, all_have_rows)
                hold()
                self._apply(loss, terms, state)
                if state.carried is not None:
                    state.carried.arrays = after
            else:
                hold()
                self._in_a_graph(batch.padded, state)
        except MemoryError as error:
            restore()
            self._gradient_monitor.drop_after(state.unread)
            raise self._out_of_memory(batch, state, error) from error
        except BaseException:
            restore()
            with suppress(Exception):  # after an error, any further call to a GPU may fail
                self._gradient_monitor.drop_after(state.unread)
            raise
        self._gradient_monitor.keep_alive(batch)
        if state.average is not None:
            state.average.update(self._model.params.flat, state.iteration)
        return batch

    def read(self, first: int) -> list[Recorded]:
        """The records of the updates since the last call, the first of which is ``first``.

        Raises
        ------
        NonFiniteError
            On a GPU, if one is not finite. Nothing has been updated from that iteration on.
        """
        return self._gradient_monitor.read(first)

    def _rolled_out(self, batch: Prepared, rng: np.random.Generator) -> Prepared:
        """The parts of the loss's batch, which the objective computes from parts of a batch of the data."""
        assert self._objective is not None
        rollouts = [
            (part.number, self._objective(self._model, part.arrays, own))
            for part, own in zip(batch.parts, self._generators(batch.parts, rng), strict=True)
        ]
        name = type(self._objective).__name__
        for _, made in rollouts:
            if not isinstance(made, Rollout):
                raise InputTypeError(f"the objective {name} returned {described(made)}, expected a Rollout")
            if "sentence_weights" not in made.options:
                raise InputError(f"the objective {name} returned options without sentence_weights")
        return Prepared(
            [Part(number, made.arrays, made.options) for number, made in rollouts],
            sum(made.examples for _, made in rollouts),
            sum(made.tokens for _, made in rollouts),
            means=_mean((made.examples, made.means) for _, made in rollouts),
        )

    def _of_all_ranks(self, batch: Prepared) -> tuple[Prepared, bool]:
        """The batch with its sizes and means over all ranks, and whether every rank has rows.

        The model gets the loss weights of rank 0.
        """
        own = dict(_loss_weights(self._model))
        ranks = self._communicator.gather((batch.examples, batch.tokens, batch.means, own))
        examples, tokens, _, weights = zip(*ranks, strict=True)
        for name, weight in weights[0].items() if self._communicator.rank else ():
            if weight != own.get(name):  # a callback, which rank 0 alone calls, has changed it
                setattr(self._model, name, weight)
        means = _mean((rows, means) for rows, _, means, _ in ranks)
        return batch._replace(examples=sum(examples), tokens=sum(tokens), means=means), all(examples)

    def _averaged_over_sentences(self, batch: Prepared) -> Prepared:
        """Scale the weights of sentences so that a model that divides by tokens computes a mean over them."""
        if not averages_tokens(self._model):
            return batch
        factor, parts = batch.tokens / batch.examples, []
        for part in batch.parts:
            weights = {"sentence_weights": part.options["sentence_weights"] * factor}
            parts.append(part._replace(options={**part.options, **weights}))
        return batch._replace(parts=parts)

    def _gradient(
        self, batch: Prepared, state: TrainingState, all_have_rows: bool
    ) -> tuple[Any, Terms, State | None]:
        """Compute the gradient of a batch, on all ranks and in parts.

        Returns
        -------
        loss : float, or an array () on the GPU
        terms : mapping of str to the same
        after : tuple of (N, H) arrays, or None
            The model's state at the end of all rows, if the batches of the data continue each other.
        """
        options: dict[str, Any] = {"grads": self.grads}
        if state.sampling is not None:
            options["sampling"] = state.sampling
        if self._in_parts:
            options["part_of"] = (batch.examples, batch.tokens)
            self.grads.flat[...] = 0
        losses: list[tuple[Any, Terms]] = []
        states: list[State] = []
        rng = self._dropout_rng(state.rng)
        generators = [None] * len(batch.parts) if rng is None else self._generators(batch.parts, rng)
        for part, rng in zip(batch.parts, generators, strict=True):
            if self._sum is not None:
                self._sum.may_begin = self._announces and all_have_rows and part is batch.parts[-1]
            names, of_part = "loss, grads", dict(part.options)
            if state.carried is not None:
                names += ", state"
                of_part |= {"state": state.carried.of(part.rows), "return_state": True}
            returned = self._model.loss(*part.arrays, rng=rng, **of_part, **options)
            loss, grads, *last = results_of(self._model, "loss", returned, names)
            states += last
            if grads is not self.grads:
                raise InputTypeError(
                    f"the loss of this {type(self._model).__name__} returned other gradients than the grads "
                    "that it was given, expected it to write into grads and to return them"
                )
            losses.append(self._with_terms(loss))
        found = _added(losses)
        if self._sum is not None:
            self._sum.end()
            found = _added(self._communicator.gather(_as_floats(*found)))
        return *found, None if state.carried is None else joined(states, self._communicator)

    @property
    def _in_parts(self) -> bool:
        """Whether the loss is computed for parts of a batch."""
        return self._options.accumulate > 1 or self._communicator.size > 1

    def _generators(self, parts: Sequence[Part], rng: np.random.Generator) -> Sequence[np.random.Generator]:
        """The generators of some parts of a batch, from that of the run.

        An undivided batch uses the generator of the run. Each part uses its own generator, seeded by that
        generator and the number of the part, so that it does not matter which rank computes it.
        """
        if not self._in_parts:
            return [rng for _ in parts]
        seed = int(rng.integers(2**63))
        return [np.random.default_rng([seed, part.number]) for part in parts]

    def _dropout_rng(self, rng: np.random.Generator) -> np.random.Generator | None:
        """The generator, None if the objective asks for a loss without dropout."""
        return rng if self._objective is None or self._objective.dropout else None

    def _with_terms(self, loss: Any) -> tuple[Any, Terms]:
        """The loss that the model has just computed, and its terms."""
        return loss, getattr(self._model, "last_terms", NO_TERMS)

    def _apply(self, loss: Any, terms: Terms, state: TrainingState) -> None:
        """Record and clip the gradient, and call the update rule."""
        self._groups.clear_frozen(self.grads)
        self._gradient_monitor.record_and_clip(state.iteration + 1, loss, terms)
        self._step(state)

    def _step(self, state: TrainingState) -> None:
        params, rule = self._model.params, state.rule
        scale, multiplier = self._gradient_monitor.scale, state.multiplier
        self._groups.decay(params.flat, rule.learning_rate * multiplier, scale)
        rule.step(params.flat, self.grads.flat, scale=scale, multiplier=multiplier, parts=self._groups.rates)

    def _in_a_graph(self, parts: Any, state: TrainingState) -> None:
        """Launch the step of padded parts as a CUDA graph."""
        graphs_of = self._model.params.flat, state
        if self._graphs is None or any(map(operator.is_not, graphs_of, self._graphs_of)):
            this, model = weakref.ref(self), self._model  # no cycle, so that graphs end with their solver
            self._graphs = StepGraphs(
                lambda parts: this()._padded_step(parts, state),  # type: ignore[union-attr]
                lambda: _loss_weights(model),
            )
            self._graphs_of = graphs_of
        self._graphs(parts, state.rng, lambda: self._step(state))

    def _padded_step(self, parts: Sequence[Any], state: TrainingState) -> None:
        """The whole step on padded parts, without waiting for the device."""
        model: Any = self._model
        grads, rng = self.grads, self._dropout_rng(state.rng)
        grads.flat[...] = 0
        losses = (model.padded_loss(part, rng=rng, grads=grads) for part in parts)
        self._apply(*_added(map(self._with_terms, losses)), state)

    def _out_of_memory(self, batch: Prepared, state: TrainingState, error: MemoryError) -> MemoryError:
        """The error with the sizes that determine the memory and the options that reduce it."""
        flat, slots = self._model.params.flat, 2 + len(state.rule.slots) + (state.average is not None)
        return MemoryError(
            f"iteration {state.iteration + 1}: out of memory: {error}; parameters, gradients and the update "
            f"rule's state are {slots * flat.nbytes / 1e6:,.0f} MB, and the batch has {batch.examples} "
            f"examples and {batch.tokens} tokens, in {self._options.accumulate} parts: a smaller batch_size "
            "needs less, and a larger accumulate computes the gradient in more parts"
            + ("; graphs take memory of their own, which graphs=False saves" * self.graphs)
        )


def _as_floats(loss: Any, terms: Terms) -> tuple[float | None, Terms]:
    """A loss and its terms, which may be on a GPU, as floats."""
    return None if loss is None else float(loss), {name: float(term) for name, term in terms.items()}


def _added(losses: Iterable[tuple[Any, Terms]]) -> tuple[Any, Terms]:
    """The sums of the losses and of the terms of parts, in order; None if there is no part."""
    total: Any = None
    terms: dict[str, Any] = {}
    for loss, some in losses:
        if loss is not None:
            total = loss if total is None else total + loss
        for name, term in some.items():
            terms[name] = terms[name] + term if name in terms else term
    return total, terms


def _mean(parts: Iterable[tuple[int, Mapping[str, float]]]) -> Mapping[str, float]:
    """The means over a batch, from the means over its parts and their numbers of examples.

    Raises
    ------
    ValueError
        If the parts have means of different names.
    """
    parts = [(examples, means) for examples, means in parts if examples]
    if len(parts) == 1:
        return parts[0][1]
    total = sum(examples for examples, _ in parts)
    names = parts[0][1] if parts else {}
    for _, means in parts:
        if means.keys() != names.keys():
            raise InputError(
                f"the objective returned means {sorted(means)} for one part of a batch and {sorted(names)} "
                "for another, expected the same names"
            )
    return {name: sum(examples * means[name] for examples, means in parts) / total for name in names}


def _loss_weights(model: Model) -> Mapping[str, Any]:
    """The current weights of a model's losses, if it has any: the kernels of a step depend on them."""
    found = getattr(model, "loss_weights", {})
    return found if isinstance(found, Mapping) else {}
