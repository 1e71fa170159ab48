"""Encoders of images: features to an initial state, an image vector or a memory for the decoder.

The backward of an encoder has the option ``input_gradient``. Without it, the gradient of the inputs is not
computed, and None is returned.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias, get_args

from rnnlab.layers import (
    affine_backward,
    affine_forward,
    dropout_backward,
    dropout_forward,
    tanh_backward,
    tanh_forward,
)
from rnnlab.models.parts.features import Features
from rnnlab.models.parts.values import Source
from rnnlab.ops import ops_for
from rnnlab.parameters import Parameters
from rnnlab.types import Array, Random, Shapes

ImageInput: TypeAlias = Literal["initial_state", "first_input", "every_step", "second_layer"]
StateActivation: TypeAlias = Literal["none", "tanh"]

IMAGE_INPUTS = get_args(ImageInput)


def _identity_forward(x: Array) -> tuple[Array, None]:  # a named function, because a lambda cannot be pickled
    return x, None


def _identity_backward(dout: Array, cache: None) -> Array:
    return dout


ACTIVATIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "none": (_identity_forward, _identity_backward),
    "tanh": (tanh_forward, tanh_backward),
}


class InitialStateEncoder:
    """The decoder's initial state is a projection of the features: h0 = act(features W_proj + b_proj).

    The cell state of an LSTM starts at zero, or, with ``project_cell``, at act(features W_proj_c + b_proj_c).
    """

    def __init__(
        self,
        input_dim: int,
        hidden_dim: int,
        num_states: int,
        *,
        activation: str = "none",
        project_cell: bool = False,
        dropout: float = 0.0,
    ) -> None:
        self.input_dim, self.hidden_dim, self.dropout = input_dim, hidden_dim, dropout
        self.activate, self.activate_backward = ACTIVATIONS[activation]
        self.projections = ("_proj", "_proj_c") if project_cell else ("_proj",)
        self.num_states = num_states

    def shapes(self) -> Shapes:
        """W_proj and b_proj, and W_proj_c and b_proj_c if the cell state is projected."""
        return {
            name: shape
            for suffix in self.projections
            for name, shape in (
                (f"W{suffix}", (self.input_dim, self.hidden_dim)),
                (f"b{suffix}", (self.hidden_dim,)),
            )
        }

    def forward(self, params: Parameters, features: Array, *, rng: Random = None) -> tuple[Source, Any]:
        """Features (N, D) to a state of arrays (N, H)."""
        features, dropped = dropout_forward(features, self.dropout, rng=rng)
        state, caches = [], []
        for suffix in self.projections:
            a, projected = affine_forward(features, params[f"W{suffix}"], params[f"b{suffix}"])
            h, activated = self.activate(a)
            state.append(h)
            caches.append((projected, activated))
        state += [ops_for(h).zeros(h.shape, h.dtype)] * (self.num_states - len(state))
        return Source(tuple(state)), (dropped, caches)

    def backward(
        self, dsource: Source, cache: Any, grads: Parameters, *, input_gradient: bool = True
    ) -> Array:
        """Add the parameters' gradients; if ``input_gradient``, return that of the features, (N, D)."""
        dropped, caches = cache
        dfeatures: Any = None
        for suffix, dh, (projected, activated) in zip(self.projections, dsource.state, caches, strict=False):
            da = self.activate_backward(dh, activated)
            into = grads[f"W{suffix}"], grads[f"b{suffix}"]
            dx, _, _ = affine_backward(da, projected, into=into, input_gradient=input_gradient)
            dfeatures = dx if dfeatures is None else operator.iadd(dfeatures, dx)
        return dropout_backward(dfeatures, dropped) if input_gradient else None


class ImageVectorEncoder:
    """The decoder reads an image vector v = features W_proj + b_proj (Chen, Dong and Li 2016, eq. 4).

    The decoder's initial state is zero.
    """

    def __init__(
        self, input_dim: int, vector_dim: int, hidden_dim: int, num_states: int, *, dropout: float = 0.0
    ) -> None:
        self.input_dim, self.vector_dim, self.dropout = input_dim, vector_dim, dropout
        self.hidden_dim, self.num_states = hidden_dim, num_states

    def shapes(self) -> Shapes:
        """W_proj and b_proj."""
        return {"W_proj": (self.input_dim, self.vector_dim), "b_proj": (self.vector_dim,)}

    def forward(self, params: Parameters, features: Array, *, rng: Random = None) -> tuple[Source, Any]:
        """Features (N, D) to an image vector (N, P) and a state of zeros (N, H)."""
        features, dropped = dropout_forward(features, self.dropout, rng=rng)
        image, projected = affine_forward(features, params["W_proj"], params["b_proj"])
        zeros = ops_for(image).zeros((image.shape[0], self.hidden_dim), image.dtype)
        return Source((zeros,) * self.num_states, image, zero_state=True), (dropped, projected)

    def backward(
        self, dsource: Source, cache: Any, grads: Parameters, *, input_gradient: bool = True
    ) -> Array:
        """Add the parameters' gradients; if ``input_gradient``, return that of the features, (N, D)."""
        dropped, projected = cache
        into = grads["W_proj"], grads["b_proj"]
        dfeatures, _, _ = affine_backward(dsource.image, projected, into=into, input_gradient=input_gradient)
        return dropout_backward(dfeatures, dropped) if input_gradient else None


class RegionEncoder:
    """The decoder attends to the image's regions; their mean, or a global vector, gives the initial state.

    :class:`InitialStateEncoder` projects the mean (Xu et al. 2015, section 3.1.2) or the global vector (Chen
    et al. 2018) to the initial state. The regions are data: their gradient is computed only if the model sets
    ``memory_gradient`` of the source.

    Parameters
    ----------
    initial_state : InitialStateEncoder
        It has dropout for a global vector, but not for the mean of the regions, which is computed after
        dropout.
    dropout : float in [0, 1)
        Probability of dropping an element of the regions' features.
    """

    def __init__(self, initial_state: InitialStateEncoder, *, dropout: float = 0.0) -> None:
        self.initial_state, self.dropout = initial_state, dropout

    def shapes(self) -> Shapes:
        """As in :class:`InitialStateEncoder`."""
        return self.initial_state.shapes()

    def forward(self, params: Parameters, features: Features, *, rng: Random = None) -> tuple[Source, Any]:
        """Features (N, L, D), or these and (N, G), to a memory (N, L, D) and a state of arrays (N, H)."""
        regions, vector = features if isinstance(features, tuple) else (features, None)
        regions, dropped = dropout_forward(regions, self.dropout, rng=rng)
        from_mean = vector is None
        if vector is None:
            vector = regions.mean(axis=1)
        source, cache = self.initial_state.forward(params, vector, rng=rng)
        return source._replace(memory=regions, memory_gradient=False), (dropped, from_mean, cache)

    def backward(
        self, dsource: Source, cache: Any, grads: Parameters, *, input_gradient: bool = True
    ) -> Features | None:
        """Add the parameters' gradients; if ``input_gradient``, return that of the features.

        That needs the memory's gradient in ``dsource``.
        """
        dropped, from_mean, projected = cache
        dvector = self.initial_state.backward(dsource, projected, grads, input_gradient=input_gradient)
        if not input_gradient:
            return None
        dregions: Any = dsource.memory
        if not from_mean:
            return dropout_backward(dregions, dropped), dvector
        return dropout_backward(dregions + dvector[:, None] / dregions.shape[1], dropped)


def build_image_encoder(
    num_states: int, options: Mapping[str, Any]
) -> InitialStateEncoder | ImageVectorEncoder | RegionEncoder:
    """The encoder of images that the options of a model choose."""
    dropout = options["feature_dropout"]
    if options["image_input"] == "initial_state":
        global_dim, attends = options["global_dim"], options["attention"]
        initial_state = InitialStateEncoder(
            global_dim or options["input_dim"],
            options["hidden_dim"],
            num_states,
            activation=options["state_activation"],
            project_cell=options["project_cell"],
            dropout=0.0 if attends and not global_dim else dropout,
        )
        return RegionEncoder(initial_state, dropout=dropout) if attends else initial_state
    return ImageVectorEncoder(
        options["input_dim"], options["wordvec_dim"], options["hidden_dim"], num_states, dropout=dropout
    )
