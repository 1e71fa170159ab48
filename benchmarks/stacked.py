"""A training step of ``captioning`` with a decoder of several layers, or with tied word vectors.

The first layer starts from the image, the others at zero. In PyTorch the layers are one nn.LSTM, and the
weight of a tied output is that of the embedding. All else is as in ``captioning``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from benchmarks import captioning
from benchmarks.pytorch import load_lstm

Array = Any


class Sizes(NamedTuple):
    """The options and the sizes of a case."""

    layers: int  # layers of the decoder
    tied: bool  # whether the output's weight is the word vectors
    captions: captioning.Sizes  # all other sizes


CASES = {
    f"{name}, {layers} layers{', tied' * tied}": Sizes(layers, tied, captioning.CASES[name])
    for name, layers, tied in (
        ("flickr8k N=64 T=21 H=512 V=2541", 2, False),
        ("N=25 T=16 H=512 V=1004", 3, False),
        ("N=128 T=16 H=512 V=10516", 2, True),
    )
}
SIDES = ("rnnlab", "torch", "torch packed")
TARGETS = {case: {"torch": 1.2} for case in CASES}
MEAN_TARGETS = {"torch": 1.2}


def prepare(side: str, sizes: Sizes) -> Callable[[], object]:
    """The training step of one side; it returns the loss."""
    if side.startswith("torch"):
        step = captioning.torch_training_step
        return step(side, sizes.captions, *captioning.batch(sizes.captions), "cpu", modules(sizes))
    from benchmarks.steps import training_step

    options = {"decoder_layers": sizes.layers, "tied_embeddings": sizes.tied}
    model = captioning.model(sizes.captions, weights(sizes), **options)
    return training_step(model, *captioning.batch(sizes.captions))


def weights(sizes: Sizes) -> dict[str, Array]:
    """The parameters of the model by name."""
    drawn, H = captioning.weights(sizes.captions), sizes.captions.H
    if sizes.tied:
        del drawn["W_vocab"]
    if sizes.layers == 1:
        return drawn
    rng = np.random.default_rng(2)
    drawn = {f"layer1_{name}" if name in ("Wx", "Wh", "b") else name: drawn[name] for name in drawn}
    for layer in range(2, sizes.layers + 1):
        for name, shape in (("Wx", (H, 4 * H)), ("Wh", (H, 4 * H)), ("b", (4 * H,))):
            drawn[f"layer{layer}_{name}"] = rng.uniform(-0.08, 0.08, shape).astype(np.float32)
    return drawn


def modules(sizes: Sizes) -> Any:
    """PyTorch's modules with the same weights, as in ``captioning``."""
    from torch import nn

    own, W, H = weights(sizes), sizes.captions.W, sizes.captions.H
    layers = [f"layer{layer}_" for layer in range(1, sizes.layers + 1)] if sizes.layers > 1 else [""]
    of_layers = [own[f"{layer}{name}"] for layer in layers for name in ("Wx", "Wh", "b")]
    first = dict(zip(("Wx", "Wh", "b"), of_layers, strict=False))
    parts = captioning.modules(sizes.captions, {"W_vocab": own["W_embed"].T} | own | first)
    parts["lstm"] = load_lstm(nn.LSTM(W, H, sizes.layers, batch_first=True), *of_layers)
    if sizes.tied:
        parts["output"].weight = parts["embedding"].weight
    return parts
