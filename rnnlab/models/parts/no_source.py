"""The encoder of a language model, whose sentences have no source."""

from __future__ import annotations

from rnnlab.models.parts.values import Source
from rnnlab.ops import ops_for
from rnnlab.parameters import Parameters
from rnnlab.types import Array, Random, Shapes


class NoSource:
    """The decoder starts at a state of zeros, one for each sentence."""

    def __init__(self, hidden_dim: int, num_states: int) -> None:
        self.hidden_dim, self.num_states = hidden_dim, num_states

    def shapes(self) -> Shapes:
        """No parameters."""
        return {}

    def forward(self, params: Parameters, sentences: Array, *, rng: Random = None) -> tuple[Source, None]:
        """N sentences, whose tokens are not read, to a state of zeros, arrays (N, H)."""
        zeros = ops_for(params.flat).zeros((len(sentences), self.hidden_dim), params.dtype)
        return Source((zeros,) * self.num_states, zero_state=True), None

    def backward(
        self, dsource: Source, cache: None, grads: Parameters, *, input_gradient: bool = True
    ) -> None:
        """Nothing: neither parameters nor an input have a gradient."""
