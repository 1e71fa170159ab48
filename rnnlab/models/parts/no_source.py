"""The encoder of a language model, whose sentences have no source."""

from __future__ import annotations

from typing import NamedTuple

from rnnlab.models.parts.values import Source
from rnnlab.ops import ops_for
from rnnlab.parameters import Parameters
from rnnlab.types import Random, Shapes, State


class Beginning(NamedTuple):
    """Where a number of rows of text begin."""

    rows: int  # N
    state: State | None = None  # arrays (N, H), those of each layer in turn; None for a state of zeros


class NoSource:
    """The decoder starts at a state of zeros, or at one that the text before has left.

    No gradient flows into that state.

    Parameters
    ----------
    hidden_dim : int
    num_states : int
        The number of arrays of a layer's state.
    """

    def __init__(self, hidden_dim: int, num_states: int) -> None:
        self.hidden_dim, self.num_states = hidden_dim, num_states

    def shapes(self) -> Shapes:
        """No parameters."""
        return {}

    def forward(self, params: Parameters, inputs: Beginning, *, rng: Random = None) -> tuple[Source, None]:
        """The beginnings of N rows to initial states, arrays (N, H)."""
        rows, state = inputs
        if state is None:
            zeros = ops_for(params.flat).zeros((rows, self.hidden_dim), params.dtype)
            return Source((zeros,) * self.num_states, zero_state=True), None
        lowest, *above = (
            state[first : first + self.num_states] for first in range(0, len(state), self.num_states)
        )
        return Source(lowest, above=tuple(above)), None

    def backward(
        self, dsource: Source, cache: None, grads: Parameters, *, input_gradient: bool = True
    ) -> None:
        """Nothing: neither parameters nor an input have a gradient."""
