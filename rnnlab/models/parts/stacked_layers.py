"""Stacked recurrent layers as a part of a model, in one direction or in both."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from rnnlab.layers import dropout_backward, dropout_forward
from rnnlab.layers.copying import copy_of
from rnnlab.layers.recurrent.reversal import reordered
from rnnlab.models.parts.recurrent_layer import Recurrence, RecurrentLayer
from rnnlab.ops import ops_for
from rnnlab.parameters import scoped
from rnnlab.types import Array, Random, Shapes

DIRECTIONS = ("forward", "backward")


class StackedLayers:
    """Stacked recurrent layers, in one direction or in both, with initial states of zeros.

        h_k = [layer_k(y_k), its backward layer(y_k)],   y_k = dropout(h_{k-1}),   h_0 = x

    Parameters
    ----------
    recurrence : Recurrence
    input_dim, hidden_dim : int
    num_layers : int
    bidirectional : bool
        Whether each layer has a second one that reads the sequences from their ends.
    dropout : float in [0, 1)
        Probability of dropping an element of the input of layers 2 and higher.
    scope : callable, optional
        The prefix of the names of the parameters of a layer, from 1, and a direction. By default one layer of
        one direction has none; others have "layer1_", "forward_" or "layer1_forward_", for example.

    Attributes
    ----------
    directions : tuple of str
        "forward", and "backward" if it is bidirectional.
    hidden_dim, output_dim : int
        H, the units of one direction, and those of all.
    """

    def __init__(
        self,
        recurrence: Recurrence,
        input_dim: int,
        hidden_dim: int,
        num_layers: int = 1,
        *,
        bidirectional: bool = False,
        dropout: float = 0.0,
        scope: Callable[[int, str], str] | None = None,
    ) -> None:
        def default(layer: int, direction: str) -> str:
            of_layer = f"layer{layer}_" if num_layers > 1 else ""
            return of_layer + (f"{direction}_" if bidirectional else "")

        self.directions = DIRECTIONS if bidirectional else DIRECTIONS[:1]
        self.hidden_dim, self.output_dim = hidden_dim, hidden_dim * len(self.directions)
        self._dropout, scope = dropout, scope or default
        first = RecurrentLayer(recurrence, input_dim, hidden_dim)
        further = RecurrentLayer(recurrence, self.output_dim, hidden_dim)
        self._layers = [
            (further if k else first, [scope(k + 1, direction) for direction in self.directions])
            for k in range(num_layers)
        ]

    def shapes(self) -> Shapes:
        """The parameters of all layers."""
        return {
            name: shape
            for layer, scopes in self._layers
            for scope in scopes
            for name, shape in scoped(scope, layer.shapes()).items()
        }

    def forward(
        self,
        params: Any,
        x: Array,
        lengths: Array | None,
        rng: Random = None,
        *,
        reverse: Array | None = None,
    ) -> tuple[Array, Any]:
        """Inputs (N, T, D) to the last layer's states, (N, T, H) or (N, T, 2H).

        ``reverse`` (N T,) are the rows that reverse each sequence
        (:func:`~rnnlab.layers.recurrent.reversal.reversed_rows`), for layers in both directions.
        """
        caches = []
        for k, (layer, scopes) in enumerate(self._layers):
            dropped = None
            if k:
                x, dropped = dropout_forward(x, self._dropout, rng=rng)
            states, runs = [], []
            for direction, scope in zip(self.directions, scopes, strict=True):
                inputs = in_order(x, direction, reverse)
                h, run = layer.forward(params.scope(scope), inputs, layer.zero_state(x), lengths, rng)
                states.append(in_order(h, direction, reverse))
                runs.append(run)
            x = concatenated(states)
            caches.append((dropped, runs))
        return x, (caches, reverse)

    def backward(self, dh: Array, cache: Any, grads: Any, *, total_dh: Array | None = None) -> Array:
        """Add the parameters' gradients; return the gradient of the inputs, (N, T, D).

        ``dh`` and ``total_dh`` have the shape of the last layer's states and are their gradients, as in
        :class:`RecurrentLayer`.
        """
        caches, reverse = cache
        for (layer, scopes), (dropped, runs) in zip(reversed(self._layers), reversed(caches), strict=True):
            dx: Any = None
            for k, (direction, scope, run) in enumerate(zip(self.directions, scopes, runs, strict=True)):
                own = in_order(self.of_direction(dh, k), direction, reverse)
                whole = None if total_dh is None else ops_for(own).empty(own.shape, own.dtype)
                added, _ = layer.backward(own, run, grads.scope(scope), total_dh=whole)
                added = in_order(added, direction, reverse)
                dx = added if dx is None else operator.iadd(dx, added)
                if total_dh is not None:
                    total_dh[:, :, self.columns(k)] = in_order(whole, direction, reverse)
            dh, total_dh = dx if dropped is None else dropout_backward(dx, dropped), None
        return dh

    def columns(self, k: int) -> slice:
        """The units of direction k in the states of all."""
        return slice(k * self.hidden_dim, (k + 1) * self.hidden_dim)

    def of_direction(self, states: Array, k: int) -> Array:
        """The states of direction k, (N, T, H), of those of all."""
        return states if len(self.directions) == 1 else copy_of(states[:, :, self.columns(k)])


def in_order(x: Array, direction: str, reverse: Array | None) -> Array:
    """Inputs or states in the order in which a direction reads them, or back in that of the batch.

    ``reverse`` as in :meth:`StackedLayers.forward`.
    """
    if direction == "forward":
        return x
    assert reverse is not None, "layers in both directions need the rows that reverse a sequence"
    return reordered(x, reverse)


def concatenated(parts: list[Array]) -> Array:
    """The states of all directions, (N, T, H) each, as one array (N, T, 2H) or (N, T, H)."""
    if len(parts) == 1:
        return parts[0]
    (N, T, H), ops = parts[0].shape, ops_for(*parts)
    out = ops.empty((N, T, H * len(parts)), parts[0].dtype)
    for k, part in enumerate(parts):
        out[:, :, k * H : (k + 1) * H] = part
    return out
