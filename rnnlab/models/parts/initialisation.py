"""Initial parameters."""

from __future__ import annotations

import re

import numpy as np

from rnnlab.parameters import Parameters

INITIALISATIONS = ("course", "uniform")

_WEIGHT = re.compile(r"^W|_W|_[vw]$")  # Wx, W_vocab; source_Wq; source_v, selector_w


def initialise(params: Parameters, kind: str, *, scale: float, rng: np.random.Generator) -> None:
    """Fill parameters in place: weights, which have names in W, w or v, at random; biases become zero.

    Parameters
    ----------
    params : Parameters
    kind : "course" or "uniform"
        Weights from N(0, 1) / sqrt(fan-in), word vectors from N(0, 1) / 100 (cs231n); or both from U(-scale,
        scale).
    scale : float > 0
    rng : numpy Generator

    Raises
    ------
    ValueError
        If ``kind`` is not one of the two, or the scale is not positive.
    """
    if kind not in INITIALISATIONS:
        raise ValueError(f"initialisation is {kind!r}, expected one of {', '.join(INITIALISATIONS)}")
    if not scale > 0:
        raise ValueError(f"init_scale is {scale}, expected a number above 0")
    for name, view in params.items():
        if not _WEIGHT.search(name):
            view[...] = 0
        elif kind == "uniform":
            view[...] = rng.uniform(-scale, scale, view.shape)
        elif name in ("W_embed", "W_source"):
            view[...] = rng.standard_normal(view.shape) / 100
        else:
            view[...] = rng.standard_normal(view.shape) / np.sqrt(view.shape[0])
