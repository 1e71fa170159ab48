"""Encoders: what a source gives a decoder, an image vector, a memory to attend to, an initial state.

A part declares its parameters and has two methods. The gradient of a parameter is added into a named view, so
that shared weights need no special case.

    part.shapes() -> {name: shape}
    part.forward(params, *inputs, rng) -> outputs, cache             noise only where rng is given
    part.backward(doutputs, cache, grads) -> dinputs                 adds into grads[name]
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from rnnlab.layers import (
    affine_backward,
    affine_forward,
    dropout_backward,
    dropout_forward,
    tanh_backward,
    tanh_forward,
)
from rnnlab.ops import ops_for
from rnnlab.parameters import Parameters
from rnnlab.types import Array, Shapes, State

Random = np.random.Generator | None


class Source(NamedTuple):
    """What an encoder gives a decoder, or its gradient; None where there is no such thing."""

    state: State  # arrays (N, H), where the decoder starts
    image: Array | None = None  # (N, P), an input of the decoder
    memory: Array | None = None  # (N, L, C), what it attends to
    mask: Array | None = None  # (N, L), true for the real rows of the memory
    zero_state: bool = False  # whether the state is zeros, with nothing of the source in it


ACTIVATIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "none": (lambda x: (x, None), lambda dout, cache: dout),
    "tanh": (tanh_forward, tanh_backward),
}


class InitialStateEncoder:
    """The image is the decoder's initial state: h0 = act(features W_proj + b_proj).

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
        if activation not in ACTIVATIONS:
            raise ValueError(f"state_activation is {activation!r}, expected one of {', '.join(ACTIVATIONS)}")
        if project_cell and num_states == 1:
            raise ValueError(
                "project_cell is true, but the state of this cell is h alone: it needs a cell state, as an LSTM has"
            )
        self.input_dim, self.hidden_dim, self.dropout = input_dim, hidden_dim, dropout
        self.activate, self.activate_backward = ACTIVATIONS[activation]
        self.projections = ("_proj", "_proj_c") if project_cell else ("_proj",)
        self.states = num_states

    def shapes(self) -> Shapes:
        """W_proj and b_proj, and W_proj_c and b_proj_c where the cell state is projected."""
        return {
            name: shape
            for key in self.projections
            for name, shape in (
                (f"W{key}", (self.input_dim, self.hidden_dim)),
                (f"b{key}", (self.hidden_dim,)),
            )
        }

    def forward(self, params: Parameters, features: Array, *, rng: Random = None) -> tuple[Source, Any]:
        """Features (N, D) to a state of arrays (N, H)."""
        features, dropped = dropout_forward(features, self.dropout, rng=rng)
        state, caches = [], []
        for key in self.projections:
            a, projected = affine_forward(features, params[f"W{key}"], params[f"b{key}"])
            h, activated = self.activate(a)
            state.append(h)
            caches.append((projected, activated))
        state += [ops_for(h).zeros(h.shape, h.dtype)] * (self.states - len(state))
        return Source(tuple(state)), (dropped, caches)

    def backward(self, dsource: Source, cache: Any, grads: Parameters) -> Array:
        """Add the parameters' gradients; return that of the features, (N, D)."""
        dropped, caches = cache
        dfeatures: Any = None
        for key, dh, (projected, activated) in zip(self.projections, dsource.state, caches, strict=False):
            da = self.activate_backward(dh, activated)
            dx, _, _ = affine_backward(da, projected, into=(grads[f"W{key}"], grads[f"b{key}"]))
            dfeatures = dx if dfeatures is None else operator.iadd(dfeatures, dx)
        return dropout_backward(dfeatures, dropped)


class ImageVectorEncoder:
    """The image is a vector that the decoder takes as an input, v = features W_proj + b_proj.

    That is eq. 4 of Chen, Dong and Li (2016). The decoder's initial state is zero.
    """

    def __init__(
        self, input_dim: int, vector_dim: int, hidden_dim: int, states: int, *, dropout: float = 0.0
    ) -> None:
        self.input_dim, self.vector_dim, self.dropout = input_dim, vector_dim, dropout
        self.hidden_dim, self.states = hidden_dim, states

    def shapes(self) -> Shapes:
        """W_proj and b_proj."""
        return {"W_proj": (self.input_dim, self.vector_dim), "b_proj": (self.vector_dim,)}

    def forward(self, params: Parameters, features: Array, *, rng: Random = None) -> tuple[Source, Any]:
        """Features (N, D) to an image vector (N, P) and a state of zeros (N, H)."""
        features, dropped = dropout_forward(features, self.dropout, rng=rng)
        image, projected = affine_forward(features, params["W_proj"], params["b_proj"])
        zeros = ops_for(image).zeros((image.shape[0], self.hidden_dim), image.dtype)
        return Source((zeros,) * self.states, image, zero_state=True), (dropped, projected)

    def backward(self, dsource: Source, cache: Any, grads: Parameters) -> Array:
        """Add the parameters' gradients; return that of the features, (N, D)."""
        dropped, projected = cache
        dfeatures, _, _ = affine_backward(dsource.image, projected, into=(grads["W_proj"], grads["b_proj"]))
        return dropout_backward(dfeatures, dropped)


class RegionEncoder:
    """The image's regions are a memory to attend to; their mean, or a global vector, is the initial state.

    The state comes from either as from a feature vector in :class:`InitialStateEncoder` (Xu et al. 2015,
    section 3.1.2, for the mean; Chen et al. 2018 for the global vector). Features are data: they get no
    gradient.

    Parameters
    ----------
    initial_state : InitialStateEncoder
        With dropout of its own for a global vector, without for the mean of what dropout left.
    dropout : float
        Of the regions' features.
    """

    def __init__(self, initial_state: InitialStateEncoder, *, dropout: float = 0.0) -> None:
        self.initial_state, self.dropout = initial_state, dropout

    def shapes(self) -> Shapes:
        """As of :class:`InitialStateEncoder`."""
        return self.initial_state.shapes()

    def forward(
        self, params: Parameters, features: Array | tuple[Array, Array], *, rng: Random = None
    ) -> tuple[Source, Any]:
        """Features (N, L, D), or with global ones (N, G), to a memory (N, L, D) and a state of (N, H)."""
        regions, vector = features if isinstance(features, tuple) else (features, None)
        regions, _ = dropout_forward(regions, self.dropout, rng=rng)
        if vector is None:
            vector = regions.mean(axis=1)
        source, cache = self.initial_state.forward(params, vector, rng=rng)
        return source._replace(memory=regions), cache

    def backward(self, dsource: Source, cache: Any, grads: Parameters) -> None:
        """Add the parameters' gradients."""
        self.initial_state.backward(dsource, cache, grads)
