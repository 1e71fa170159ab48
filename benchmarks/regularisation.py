"""The cost of recurrent dropout and of zoneout in a training step, compared with the step without them.

The steps are those of the captioning model at the size of Flickr8k, Adam included, and of an LSTM that reads
an image pixel by pixel, forward and backward alone. A ratio of 0.95 is 5 % more time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from benchmarks import captioning, lstm
from benchmarks.steps import training_step

FLICKR8K = next(iter(captioning.CASES.values()))
PIXELS = lstm.Sizes(64, 784, 1, 128)
VARIANTS: dict[str, dict[str, Any]] = {
    "zoneout of h and c": {"zoneout_h": 0.1, "zoneout_c": 0.3},
    "recurrent dropout, state": {"recurrent_dropout": 0.25},
    "recurrent dropout, candidate": {"recurrent_dropout": 0.25, "recurrent_dropout_on": "candidate"},
    "DropConnect": {"weight_dropout": 0.5},
}


class Sizes(NamedTuple):
    """The sizes and options of a case."""

    options: dict[str, Any]
    model: Any  # captioning.Sizes or lstm.Sizes


CASES = {
    f"{name}, {case}": Sizes(options, sizes)
    for case, sizes in (("flickr8k step", FLICKR8K), ("LSTM over 784 pixels", PIXELS))
    for name, options in VARIANTS.items()
}
SIDES = ("rnnlab", "without")
TARGETS: dict[str, dict[str, float | None]] = {
    case: {"without": None if case.startswith("DropConnect") else 1 / 1.05} for case in CASES
}


def prepare(side: str, sizes: Sizes) -> Callable[[], object]:
    """The step of one side."""
    options = sizes.options if side == "rnnlab" else {}
    if isinstance(sizes.model, captioning.Sizes):
        model = captioning.model(sizes.model, captioning.weights(sizes.model), regularisation=options)
        return training_step(model, *captioning.batch(sizes.model))
    return _layer(sizes.model, options)


def _layer(sizes: lstm.Sizes, options: dict[str, Any]) -> Callable[[], object]:
    from rnnlab.layers import recurrent_backward, recurrent_forward

    rng = np.random.default_rng(1)
    x, h0, Wx, Wh, b, dh = lstm.arrays(sizes, 4)
    params = {"Wx": Wx, "Wh": Wh, "b": b}
    state = h0, np.zeros_like(h0)

    def step() -> object:
        *_, cache = recurrent_forward(x, state, params, cell="lstm", regularisation=options, rng=rng)
        return recurrent_backward(dh, cache)

    return step
