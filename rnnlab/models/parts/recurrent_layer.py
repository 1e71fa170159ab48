"""A recurrent layer as a part of a model: any cell with any regularisation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from rnnlab.layers import Regularisation, recurrent_backward, recurrent_forward
from rnnlab.layers.recurrent.cell import Cell, cell_for
from rnnlab.layers.recurrent.decoding import RecurrentStep
from rnnlab.ops import ops_for
from rnnlab.types import Array, Params, Random, Shapes, State


class Recurrence(NamedTuple):
    """The cell of a model's recurrent layers, and their regularisation."""

    cell: Cell
    regularisation: Regularisation

    @classmethod
    def of(cls, model: str, options: Mapping[str, Any]) -> Recurrence:
        """From the options ``cell_type`` and ``regularisation`` of a model.

        Raises
        ------
        ValueError, TypeError
            If there is no such cell, or the cell does not allow the regularisation.
        """
        cell = cell_for(model, options["cell_type"], "cell_type")
        regularisation = Regularisation.of(model, options["regularisation"])
        regularisation.check(model, cell)
        return cls(cell, regularisation)


class RecurrentLayer:
    """One recurrent layer.

    Parameters
    ----------
    recurrence : Recurrence
    input_dim, hidden_dim : int
    """

    def __init__(self, recurrence: Recurrence, input_dim: int, hidden_dim: int) -> None:
        self.cell, self.regularisation = recurrence
        self.input_dim, self.hidden_dim = input_dim, hidden_dim
        self.num_states = self.cell.num_states

    def shapes(self) -> Shapes:
        """Wx, the cell's own parameters, and b."""
        return self.cell.shapes(self.input_dim, self.hidden_dim)

    def zero_state(self, like: Array) -> State:
        """A state of zeros, each (N, H), for inputs (N, ...)."""
        zeros = ops_for(like).zeros((like.shape[0], self.hidden_dim), like.dtype)
        return (zeros,) * self.num_states

    def forward(
        self, params: Params, x: Array, state: State, lengths: Array | None, rng: Random = None
    ) -> tuple[Array, Any]:
        """Inputs (N, T, D) and an initial state of arrays (N, H) to hidden states (N, T, H)."""
        h, _, cache = recurrent_forward(
            x, state, params, cell=self.cell, lengths=lengths, regularisation=self.regularisation, rng=rng
        )
        return h, cache

    def last_state(self, cache: Any) -> State:
        """The state after each sequence's last real step, from the cache of :meth:`forward`."""
        return cache.last_state

    def backward(
        self, dh: Array, cache: Any, grads: Params, *, total_dh: Array | None = None
    ) -> tuple[Array, State]:
        """Add the parameters' gradients; return the gradients of the inputs and of the initial state.

        The total gradient of each hidden state is written into ``total_dh`` (N, T, H), if it is given.
        """
        dx, dstate, _ = recurrent_backward(dh, cache, into=grads, total_dh=total_dh)
        return dx, dstate

    def decoding_step(self, params: Params, like: Array) -> RecurrentStep:
        """The step function for inference, for states of the dtype and library of ``like`` (N, H)."""
        return RecurrentStep(self.cell, params, like, self.regularisation)
