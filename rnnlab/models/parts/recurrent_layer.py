"""Recurrent layers as parts of a model: any cell with any regularisation.

The parameters are Wx, the cell's own, and b. In a model with several layers each layer's names have a prefix.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from rnnlab.layers import Regularisation, recurrent_backward, recurrent_forward
from rnnlab.layers.recurrent.cell import Cell, cell_for
from rnnlab.layers.recurrent.decoding import RecurrentStep
from rnnlab.ops import ops_for
from rnnlab.parameters import scoped
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

    def backward(
        self, dh: Array, cache: Any, grads: Params, *, whole_dh: Array | None = None
    ) -> tuple[Array, State]:
        """Add the parameters' gradients; return the gradients of the inputs and of the initial state.

        The total gradient of each hidden state is written into ``whole_dh`` (N, T, H), if it is given.
        """
        dx, dstate, _ = recurrent_backward(dh, cache, into=grads, whole_dh=whole_dh)
        return dx, dstate

    def decoding_step(self, params: Params, like: Array) -> RecurrentStep:
        """The step function for inference, for states of the dtype and library of ``like`` (N, H)."""
        return RecurrentStep(self.cell, params, like, self.regularisation)


class StackedLayers:
    """Stacked recurrent layers: h_k = layer_k(h_{k-1}), h_0 = x, with initial states of zeros.

    The parameters of several layers have the prefixes "layer1_", "layer2_", ...; one layer has no prefix.

    Parameters
    ----------
    recurrence : Recurrence
    input_dim, hidden_dim : int
    num_layers : int
    """

    def __init__(self, recurrence: Recurrence, input_dim: int, hidden_dim: int, num_layers: int = 1) -> None:
        self._layers = {
            "" if num_layers == 1 else f"layer{k + 1}_": RecurrentLayer(
                recurrence, hidden_dim if k else input_dim, hidden_dim
            )
            for k in range(num_layers)
        }

    def shapes(self) -> Shapes:
        """The parameters of all layers."""
        return {
            name: shape
            for prefix, layer in self._layers.items()
            for name, shape in scoped(prefix, layer.shapes()).items()
        }

    def forward(self, params: Any, x: Array, lengths: Array | None, rng: Random = None) -> tuple[Array, Any]:
        """Inputs (N, T, D) to the last layer's states (N, T, H)."""
        caches = []
        for prefix, layer in self._layers.items():
            x, cache = layer.forward(params.scope(prefix), x, layer.zero_state(x), lengths, rng)
            caches.append(cache)
        return x, caches

    def backward(self, dh: Array, caches: Any, grads: Any, *, whole_dh: Array | None = None) -> Array:
        """Add the parameters' gradients; return the gradient of the inputs, (N, T, D).

        ``dh`` and ``whole_dh`` (N, T, H) are gradients of the last layer's states, as in
        :class:`RecurrentLayer`.
        """
        for (prefix, layer), cache in zip(reversed(self._layers.items()), reversed(caches), strict=True):
            dh, _ = layer.backward(dh, cache, grads.scope(prefix), whole_dh=whole_dh)
            whole_dh = None
        return dh
