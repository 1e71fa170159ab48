"""Captions of 1,000 images by greedy decoding and by beam search, and the same searches in PyTorch.

Both have the same weights and the same rules: those of :func:`rnnlab.decoding.beam_search`. The weights are
random and so large that the likeliest word has a probability of about a third. The bias for <END> gives
captions of all lengths, of 13 words (greedy) and 9 (beam 3) on average. A batch may have 100, 250 or 1,000
images; the fastest size counts, on both sides.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from benchmarks import captioning
from benchmarks.gpu import Plan
from benchmarks.pytorch import DEVICES

Array = Any


class Sizes(NamedTuple):
    """The sizes of a case."""

    images: int
    beam: int  # 1: greedy
    words: int  # maximum number in a caption
    model: captioning.Sizes


MODEL = captioning.Sizes(N=1000, T=21, D=512, W=256, H=512, V=2541)
CASES = {
    "greedy, 1,000 images, H=512 V=2541": Sizes(1000, 1, 20, MODEL),
    "beam 3, 1,000 images, H=512 V=2541": Sizes(1000, 3, 20, MODEL),
}
_BATCHES = (1000, 250, 100)
SIDES = tuple(f"{library} {size}" for library in ("rnnlab", "torch") for size in _BATCHES)
TARGETS = {case: {"torch": 1.2} for case in CASES}
WARM_UP = 1
_GPU_CASE = "beam 5, 1,000 images, H=512 V=2541"
GPU = Plan(
    {_GPU_CASE: Sizes(1000, 5, 20, MODEL)}, (*SIDES, "rnnlab 1000 tf32x3"), {_GPU_CASE: {"torch": 3.0}}
)
ROUNDS = 4
END, END_BIAS = 2, 7


def prepare(side: str, sizes: Sizes, device: str = "cpu") -> Callable[[], list[tuple[int, ...]]]:
    """Return the captions, without <START> and <END>."""
    library, batch = side.split()[:2]
    features, _ = captioning.batch(sizes.model._replace(N=sizes.images))
    caption = (_rnnlab if library == "rnnlab" else _torch)(sizes, device)
    starts = range(0, sizes.images, int(batch))
    return lambda: [tokens for start in starts for tokens in caption(features[start : start + int(batch)])]


def _weights(sizes: captioning.Sizes) -> dict[str, Array]:
    """The weights of the captioning model, scaled to make some words much likelier than others."""
    weights = captioning.weights(sizes)
    for name, factor in {"W_embed": 12, "W_vocab": 20, "Wx": 1.5, "Wh": 1.5}.items():
        weights[name] *= np.float32(factor)
    weights["b_vocab"][END] += END_BIAS
    return weights


def _rnnlab(sizes: Sizes, device: str) -> Callable[[Array], list[tuple[int, ...]]]:
    from rnnlab.decoding import beam_search, greedy

    model = captioning.model(sizes.model, _weights(sizes.model)).to(device)

    def caption(features: Array) -> list[tuple[int, ...]]:
        if sizes.beam == 1:
            found = greedy(model, features, max_length=sizes.words)
        else:
            found = beam_search(model, features, beam_size=sizes.beam, max_length=sizes.words)
        return [hypotheses[0].tokens for hypotheses in found]

    return caption


def _torch(sizes: Sizes, device: str) -> Callable[[Array], list[tuple[int, ...]]]:
    import torch

    from benchmarks.torch_search import Captioner, beam_search, greedy

    parts = captioning.modules(sizes.model, _weights(sizes.model)).to(DEVICES[device])
    model = Captioner(**parts, start_token=1, end_token=END)

    def caption(features: Array) -> list[tuple[int, ...]]:
        x = torch.from_numpy(features).to(DEVICES[device])
        if sizes.beam == 1:
            tokens, _ = greedy(model, x, sizes.words)
        else:
            tokens, _ = beam_search(model, x, sizes.words, sizes.beam)
        return [tuple(row[: row.index(END)] if END in row else row) for row in tokens.tolist()]

    return caption
