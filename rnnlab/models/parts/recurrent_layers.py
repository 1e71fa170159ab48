"""Recurrent layers one above the other, in one direction: h_k = cell_k(h_{k-1}), h_0 = x."""

from __future__ import annotations

from typing import Any

from rnnlab.models.parts.cells import Cell
from rnnlab.models.parts.encoders import Random, Shapes
from rnnlab.ops import ops_for
from rnnlab.parameters import Parameters
from rnnlab.types import Array


class RecurrentLayers:
    """Layers of one kind of cell, each reading the one below it; all start at zero.

    Parameters
    ----------
    cell : Cell
    input_dim, hidden_dim : int
    num_layers : int
    """

    def __init__(self, cell: Cell, input_dim: int, hidden_dim: int, num_layers: int = 1) -> None:
        self.cell, self.input_dim, self.hidden_dim = cell, input_dim, hidden_dim
        self.names = [""] if num_layers == 1 else [str(layer) for layer in range(1, num_layers + 1)]

    def shapes(self) -> Shapes:
        """Wx, Wh and b, their names ending in the layer's number where there is more than one."""
        shapes: Shapes = {}
        for layer in self.names:
            inputs = self.hidden_dim if shapes else self.input_dim
            shapes |= self.cell.shapes(inputs, self.hidden_dim, layer)
        return shapes

    def forward(
        self, params: Parameters, x: Array, lengths: Array | None, rng: Random = None
    ) -> tuple[Array, Any]:
        """Inputs (N, T, D) to the last layer's states (N, T, H), which stand still past a sequence's end."""
        zeros = ops_for(x).zeros((x.shape[0], self.hidden_dim), x.dtype)
        caches = []
        for layer in self.names:
            weights = (params[f"{name}{layer}"] for name in ("Wx", "Wh", "b"))
            x, cache = self.cell.forward(x, (zeros,) * self.cell.states, *weights, lengths, rng)
            caches.append(cache)
        return x, caches

    def backward(self, dh: Array, caches: Any, grads: Parameters) -> None:
        """Add the parameters' gradients, given that of the last layer's states, (N, T, H)."""
        for layer, cache in zip(reversed(self.names), reversed(caches), strict=True):
            into = tuple(grads[f"{name}{layer}"] for name in ("Wx", "Wh", "b"))
            dh, *_ = self.cell.backward(dh, cache, into=into)
