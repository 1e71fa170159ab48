"""ARNet as a part of a model: the loss of reconstructing hidden states, and its gradients.

decoder               ARNet reads h_1 .. h_T; the first target is h_0, if that depends on the source
encoder, classifier   ARNet reads the states of the top layer; each direction has its own, in its order
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rnnlab.layers.arnet import arnet_backward, arnet_forward, arnet_shapes
from rnnlab.models.parts.stacked_layers import StackedLayers, concatenated, in_order
from rnnlab.parameters import Parameters, scoped
from rnnlab.types import Array, Shapes


class Reconstructor:
    """An ARNet over the hidden states of one recurrent layer; :mod:`rnnlab.layers.arnet` has the equations.

    Parameters
    ----------
    hidden_dim : int
        Units of the layer.
    reconstructor_dim : int
        Units of ARNet.
    detach_target : bool
        Whether the states to reconstruct are treated as constants.
    prefix : str
        Prefix of the names of its parameters.

    Attributes
    ----------
    size : int
        Units of ARNet.
    """

    def __init__(
        self, hidden_dim: int, reconstructor_dim: int, *, detach_target: bool, prefix: str = "arnet_"
    ) -> None:
        self._shapes = scoped(prefix, arnet_shapes(hidden_dim, reconstructor_dim))
        self._detach_target, self._prefix = detach_target, prefix
        self.size = reconstructor_dim

    def shapes(self) -> Shapes:
        """As in :func:`~rnnlab.layers.arnet.arnet_shapes`, with the prefix."""
        return self._shapes

    def loss(
        self,
        params: Parameters,
        hidden: Array,
        first: Array | None,
        lengths: Array,
        *,
        weight: float,
        grads: Parameters,
        mask: Array | None = None,
    ) -> tuple[float, Array, Array | None]:
        """The loss, and ``weight`` times the gradients of the hidden states.

        Parameters
        ----------
        hidden : (N, T, H)
        first : (N, H) or None
            The state before the first step; None if it is zero.
        lengths : (N,) integers
            Number of steps to compute.
        weight : float
        grads : Parameters
            ``weight`` times the gradients of the parameters is added to them.
        mask : (N, T), optional
            On the device, 1 for the states that the loss includes.

        Returns
        -------
        loss : float
        dhidden : (N, T, H)
        dfirst : (N, H) or None
        """
        own = params.scope(self._prefix)
        loss, cache = arnet_forward(hidden, first, own, lengths=lengths, loss_mask=mask)
        dhidden, dfirst, _ = arnet_backward(
            weight, cache, detach_target=self._detach_target, into=grads.scope(self._prefix)
        )
        return loss, dhidden, dfirst


class StackReconstructor:
    """An ARNet for each direction of the last of some stacked layers.

    Parameters
    ----------
    layers : StackedLayers
    reconstructor_dim : int
        Units of each ARNet.
    detach_target : bool
    prefix : callable
        The prefix of the names of the parameters of a direction.

    Attributes
    ----------
    size : int
        Units of each ARNet.
    """

    def __init__(
        self,
        layers: StackedLayers,
        reconstructor_dim: int,
        *,
        detach_target: bool,
        prefix: Callable[[str], str],
    ) -> None:
        self._layers, self.size = layers, reconstructor_dim
        self._each = [
            Reconstructor(
                layers.hidden_dim, reconstructor_dim, detach_target=detach_target, prefix=prefix(direction)
            )
            for direction in layers.directions
        ]

    def shapes(self) -> Shapes:
        """Those of the ARNets of all directions."""
        return {name: shape for each in self._each for name, shape in each.shapes().items()}

    def loss(
        self,
        params: Parameters,
        states: Array,
        lengths: Array,
        *,
        weight: float,
        grads: Parameters,
        mask: Array | None = None,
        reverse: Array | None = None,
    ) -> tuple[float, Array]:
        """The loss of all states, and ``weight`` times their gradient.

        Parameters
        ----------
        states : (N, T, H) or (N, T, 2H)
        lengths, weight, grads, mask
            As in :meth:`Reconstructor.loss`.
        reverse : (N T,), optional
            As in :meth:`StackedLayers.forward`.
        """
        total, parts = 0.0, []
        for k, (direction, each) in enumerate(zip(self._layers.directions, self._each, strict=True)):
            h = in_order(self._layers.of_direction(states, k), direction, reverse)
            loss, dh, _ = each.loss(params, h, None, lengths, weight=weight, grads=grads, mask=mask)
            total += loss
            parts.append(in_order(dh, direction, reverse))
        return total, concatenated(parts)


def decoder_reconstructor(options: Mapping[str, Any]) -> Reconstructor | None:
    """The ARNet of the decoder from a model's options, None if they have none."""
    units = _units("", options, options["hidden_dim"])
    if units is None:
        return None
    return Reconstructor(options["hidden_dim"], units, detach_target=options["detach_target"])


def encoder_reconstructor(encoder: Any, options: Mapping[str, Any]) -> StackReconstructor | None:
    """The ARNets of a token encoder from a model's options, None if they have none."""
    if "encoder_reconstruction" not in options:
        return None
    return _of_stack(encoder.layers, options, "encoder_", "encoder_arnet_{}_".format)


def classifier_reconstructor(layers: StackedLayers, options: Mapping[str, Any]) -> StackReconstructor | None:
    """The ARNets of a classifier from its options, None if they have none."""
    both = len(layers.directions) == 2
    return _of_stack(layers, options, "", "arnet_{}_".format if both else lambda direction: "arnet_")


def _of_stack(
    layers: StackedLayers, options: Mapping[str, Any], part: str, prefix: Callable[[str], str]
) -> StackReconstructor | None:
    units = _units(part, options, layers.hidden_dim)
    if units is None:
        return None
    return StackReconstructor(layers, units, detach_target=options["detach_target"], prefix=prefix)


def _units(part: str, options: Mapping[str, Any], hidden_dim: int) -> int | None:
    weight, units = options[f"{part}reconstruction"], options[f"{part}reconstructor_dim"]
    return hidden_dim if units is None and weight else units
