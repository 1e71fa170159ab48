"""The reviewer as a part of a model: between the encoder and the decoder, or absent.

    reviewer.forward(params, source, rng) -> reviewed, cache
    reviewer.backward(dsource, dthoughts, cache, grads) -> the gradient of the encoder's source

The decoder attends to the last block's thought vectors and starts from the reviewer's last state.
:mod:`rnnlab.layers.review` has the equations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from rnnlab.errors import InputError, InputTypeError
from rnnlab.layers.review import review_backward, review_forward, review_shapes
from rnnlab.models.parts.initialisation import FanIns
from rnnlab.models.parts.values import Source
from rnnlab.ops import ops_for
from rnnlab.options import Count, Probability, annotations_of, check_option
from rnnlab.parameters import Parameters, scoped
from rnnlab.types import Array, Random, Shapes

PREFIX = "reviewer_"


class ReviewerOptions(NamedTuple):
    """The structure of a reviewer; Review Net is ``blocks=1`` and ``intra=False``.

    Attributes
    ----------
    blocks : int, optional
        B, blocks of the reviewer. If it is left out, the model has no reviewer.
    steps : int
        L, steps of a block, and the number of its thought vectors.
    inter : bool
        Whether a block attends to the thought vectors of all earlier blocks as well as to the encoder's
        memory, or to that memory alone, which needs 2 blocks or more.
    intra : bool
        Whether a step reads all earlier states of its block, or the last one alone, which needs 2 steps or
        more.
    dropout : float
        Probability of dropping an element of a thought vector.
    """

    blocks: Count | None = None
    steps: Count = 8
    inter: bool = True
    intra: bool = True
    dropout: Probability = 0.0

    @classmethod
    def of(cls, model: str, options: Mapping[str, Any] | Self | None) -> Self:
        """Make the options from a mapping; None is no reviewer.

        Raises
        ------
        TypeError, ValueError
            If ``options`` has another type, a name is unknown, a value is out of range, or there are options
            but no ``blocks``.
        """
        if not isinstance(options, Mapping | cls | None):
            raise InputTypeError(f"{model}: reviewer is {options!r}, expected a mapping or ReviewerOptions")
        given: dict[str, Any] = dict(options._asdict() if isinstance(options, cls) else options or {})  # type: ignore[arg-type]
        if unknown := [name for name in given if name not in cls._fields]:
            raise InputError(f"{model}: reviewer has {', '.join(unknown)}, expected {', '.join(cls._fields)}")
        for name, annotation in annotations_of(cls).items():
            if name in given:
                check_option(model, f"reviewer.{name}", annotation, given[name])
        made = cls(**given)
        if made.blocks is None and made != cls():
            defaults = cls()._asdict().items()
            others = ", ".join(name for name, default in defaults if getattr(made, name) != default)
            raise InputError(
                f"{model}: reviewer has {others} but no blocks, expected reviewer.blocks of at least 1; "
                "for a model without a reviewer leave out all of its options: reviewer = {}"
            )
        return made


class Reviewed(NamedTuple):
    """The outputs of a reviewer."""

    source: Source  # for the decoder
    thoughts: tuple[Array, ...] = ()  # thought vectors of each block, (N, L, H)
    weights: tuple[tuple[Array, ...], ...] = ()  # by block and memory, (N, L, slots)


class Reviewer:
    """A Recurrent Nested Model, or a Review Net.

    Parameters
    ----------
    options : ReviewerOptions
    memory_dim : int
        Size of a vector of the encoder's memory.
    hidden_dim, attention_dim : int
        Units of the LSTMs, which must be the decoder's, and of the attentions.
    num_states : int
        Number of arrays in the decoder's state. If the decoder has no cell state, the reviewer's is not used;
        arrays after the second start at zero.
    """

    num_states = 2  # number of states that the encoder must give: h0 and c0

    def __init__(
        self,
        options: ReviewerOptions,
        *,
        memory_dim: int,
        hidden_dim: int,
        attention_dim: int,
        num_states: int,
    ) -> None:
        blocks, self.steps, inter, intra, self._dropout = options
        self.blocks = blocks or 0
        self._connections: dict[str, Any] = {
            "blocks": self.blocks, "steps": self.steps, "inter": inter, "intra": intra
        }  # fmt: skip
        self._shapes = scoped(
            PREFIX,
            review_shapes(
                memory_dim=memory_dim,
                hidden_dim=hidden_dim,
                attention_dim=attention_dim,
                **self._connections,
            ),
        )
        self._encoder_dim, self.memory_dim = memory_dim, hidden_dim
        self._decoder_states = num_states

    def shapes(self) -> Shapes:
        """As in :func:`~rnnlab.layers.review.review_shapes`, with the prefix "reviewer_"."""
        return self._shapes

    def fan_ins(self) -> FanIns:
        """The fan-ins of stacked weights of several memories: those of the rows of Wm, and of v."""
        found: dict[str, int | np.ndarray] = {}
        for name, shape in self._shapes.items():
            if name.endswith("_Wm"):
                D, A = shape
                sizes = [self._encoder_dim, *[self.memory_dim] * ((D - self._encoder_dim) // self.memory_dim)]
                found[name] = np.repeat(sizes, sizes)[:, None]
                found[f"{name.removesuffix('Wm')}v"] = A
        return found

    def forward(self, params: Parameters, source: Source, *, rng: Random = None) -> tuple[Reviewed, Any]:
        """Memory (N, M, C) and state (h0, c0) to thought vectors (N, L, H) and the decoder's state."""
        thoughts, state, weights, cache = review_forward(
            source.memory,
            source.state,
            params.scope(PREFIX),
            memory_mask=source.mask,
            dropout=self._dropout,
            rng=rng,
            **self._connections,
        )
        zeros = [ops_for(state[0]).zeros(state[0].shape, state[0].dtype)] * (self._decoder_states - 2)
        state = (*state[: self._decoder_states], *zeros)
        memory, alignment = thoughts[-1], weights[-1][0]
        reviewed = Reviewed(Source(state, memory=memory, alignment=alignment), thoughts, weights)
        return reviewed, (cache, source.memory_gradient)

    def backward(
        self, dsource: Source, dthoughts: Sequence[Array | None], cache: Any, grads: Parameters
    ) -> Source:
        """Add the parameters' gradients; return the gradient of the encoder's source.

        ``dthoughts`` are the gradients of each block's thought vectors, except those that come from the
        decoder.
        """
        review, memory_gradient = cache
        last = dsource.memory if dthoughts[-1] is None else dthoughts[-1] + dsource.memory
        dstate = (*dsource.state[:2], *[None] * (2 - len(dsource.state)))
        dmemory, dstate, _ = review_backward(
            [*dthoughts[:-1], last],
            dstate,
            review,
            into=grads.scope(PREFIX),
            memory_gradient=memory_gradient,
        )
        return Source(dstate, memory=dmemory)


class NoReviewer:
    """The decoder reads the encoder's outputs."""

    blocks = 0

    def __init__(self, memory_dim: int, num_states: int) -> None:
        self.memory_dim, self.num_states = memory_dim, num_states

    def shapes(self) -> Shapes:
        """No parameters."""
        return {}

    def fan_ins(self) -> FanIns:
        """None."""
        return {}

    def forward(self, params: Parameters, source: Source, *, rng: Random = None) -> tuple[Reviewed, None]:
        """The source itself."""
        return Reviewed(source), None

    def backward(
        self, dsource: Source, dthoughts: Sequence[Array | None], cache: None, grads: Parameters
    ) -> Source:
        """The gradient itself."""
        return dsource


def build_reviewer(
    model: str, options: Mapping[str, Any], *, memory_dim: int, num_states: int
) -> Reviewer | NoReviewer:
    """The reviewer from a model's options, or a :class:`NoReviewer`.

    Parameters
    ----------
    model : str
        The name of the model's class, for the errors.
    options : mapping
        The options of the model.
    memory_dim : int
        Size of a vector of the encoder's memory.
    num_states : int
        Number of arrays in the decoder's state.

    Raises
    ------
    ValueError, TypeError
        If an option does not fit.
    """
    reviewer = ReviewerOptions.of(model, options.get("reviewer"))
    if reviewer.blocks is None:
        return NoReviewer(memory_dim, num_states)
    return Reviewer(
        reviewer,
        memory_dim=memory_dim,
        hidden_dim=options["hidden_dim"],
        attention_dim=options["attention_dim"] or options["hidden_dim"],
        num_states=num_states,
    )
