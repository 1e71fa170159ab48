"""ARNet as a part of a model: the loss of reconstructing hidden states, and its gradients.

decoder    ARNet reads h_1 .. h_T; the first target is h_0, if that depends on the source
encoder    ARNet reads the states of the top layer; each direction has its own, which reads in its order
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rnnlab.layers.arnet import arnet_backward, arnet_forward, arnet_shapes
from rnnlab.models.parts.token_encoder import SourceBatch, TokenEncoder
from rnnlab.ops import ops_for
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
        loss, cache = arnet_forward(hidden, first, params.scope(self._prefix), lengths=lengths, mask=mask)
        dhidden, dfirst, _ = arnet_backward(
            weight, cache, detach_target=self._detach_target, into=grads.scope(self._prefix)
        )
        return loss, dhidden, dfirst


class EncoderReconstructor:
    """An ARNet for each direction of a token encoder's top layer, of ``size`` units."""

    def __init__(self, encoder: TokenEncoder, reconstructor_dim: int, *, detach_target: bool) -> None:
        self._each = {
            direction: Reconstructor(
                encoder.hidden_dim,
                reconstructor_dim,
                detach_target=detach_target,
                prefix=f"encoder_arnet_{direction}_",
            )
            for direction in encoder.directions
        }
        self.size = reconstructor_dim

    def shapes(self) -> Shapes:
        """Those of each direction, with prefixes such as ``encoder_arnet_forward_``."""
        return {name: shape for each in self._each.values() for name, shape in each.shapes().items()}

    def loss(
        self, params: Parameters, memory: Array, batch: SourceBatch, *, weight: float, grads: Parameters
    ) -> tuple[float, Array]:
        """The loss of the memory (N, L, H) or (N, L, 2H), and ``weight`` times the memory's gradient."""
        (N, L, columns), ops = memory.shape, ops_for(memory)
        H = columns // len(self._each)
        total, dmemory = 0.0, ops.empty(memory.shape, memory.dtype)
        for k, (direction, each) in enumerate(self._each.items()):
            columns_here = slice(k * H, (k + 1) * H)
            h = ops.empty((N, L, H), memory.dtype)
            h[...] = memory[:, :, columns_here]
            backward = direction == "backward"
            loss, dh, _ = each.loss(
                params,
                batch.reversed_in_time(h) if backward else h,
                None,
                batch.lengths,
                weight=weight,
                grads=grads,
                mask=batch.float_mask,
            )
            total += loss
            dmemory[:, :, columns_here] = batch.reversed_in_time(dh) if backward else dh
        return total, dmemory


def decoder_reconstructor(options: Mapping[str, Any]) -> Reconstructor | None:
    """The ARNet of the decoder from a model's options, None if they have none."""
    units = _units("", options, options["hidden_dim"])
    if units is None:
        return None
    return Reconstructor(options["hidden_dim"], units, detach_target=options["detach_target"])


def encoder_reconstructor(encoder: TokenEncoder, options: Mapping[str, Any]) -> EncoderReconstructor | None:
    """The ARNets of the encoder from a model's options, None if they have none."""
    units = _units("encoder_", options, encoder.hidden_dim)
    if units is None:
        return None
    return EncoderReconstructor(encoder, units, detach_target=options["detach_target"])


def _units(part: str, options: Mapping[str, Any], hidden_dim: int) -> int | None:
    weight, units = options[f"{part}reconstruction"], options[f"{part}reconstructor_dim"]
    return hidden_dim if units is None and weight else units
