"""Captions of 250 images and translations of 250 sentences by the models with attention, with a beam of 5.

Both sides have the same weights and the same rules, those of :func:`rnnlab.decoding.beam_search`. The weights
are random and chosen such that sentences have at least 8 words and 12 on average. In PyTorch the sentences of
a source share its memory, so that no step copies it. A batch may have 50, 100 or 250 sources; the fastest
size counts, on both sides.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from benchmarks import attention, translation

Array = Any


class Sizes(NamedTuple):
    """The sizes of a case."""

    beam: int
    least: int  # words in a sentence
    most: int
    model: Any  # attention.Sizes or translation.Sizes, whose N is the number of sources


IMAGES = attention.Sizes("lstm", 49, 512, attention.CAPTIONS._replace(N=250))
SENTENCES = translation.MULTI30K._replace(N=250)
CASES = {
    "beam 5, 250 images, L=49 H=512 V=2541": Sizes(5, 8, 20, IMAGES),
    "beam 5, 250 sentences, H=512 V=7700": Sizes(5, 8, 50, SENTENCES),
}
_BATCHES = (250, 100, 50)
SIDES = tuple(f"{library} {size}" for library in ("rnnlab", "torch") for size in _BATCHES)
TARGETS = {case: {"torch": 1.2} for case in CASES}
WARM_UP = 1
ROUNDS = 4
END, END_BIAS = 2, 7


def prepare(side: str, sizes: Sizes) -> Callable[[], list[tuple[int, ...]]]:
    """Return the sentences, without <START> and <END>."""
    library, size = side.split()
    suite: Any = attention if isinstance(sizes.model, attention.Sizes) else translation
    source, _ = suite.batch(sizes.model)
    weights = telling(suite.weights(sizes.model))
    if library == "rnnlab":
        write = search(suite.model(sizes.model, weights), sizes)
    else:
        write = _torch_search(suite.torch_model(sizes.model, weights), sizes)
    parts = [source[start : start + int(size)] for start in range(0, len(source), int(size))]
    return lambda: [tokens for part in parts for tokens in write(part)]


def telling(weights: dict[str, Array]) -> dict[str, Array]:
    """Scale weights: some words become much likelier than others, and sentences depend on sources."""
    factors = {"W_embed": 12, "W_source": 12, "W_vocab": 12, "Wx": 1.5, "Wh": 1.5}
    factors |= {"W_proj": 8, "W_proj_c": 8, "W_init": 8, "W_deep_z": 3}
    for name in factors.keys() & weights.keys():
        weights[name] *= np.float32(factors[name])
    weights["W_vocab"][:, END] *= 2
    weights["b_vocab"][END] += END_BIAS
    return weights


def search(model: Any, sizes: Sizes) -> Callable[[Array], list[tuple[int, ...]]]:
    """A function that decodes sources with our model by beam search."""
    from rnnlab.decoding import beam_search

    options = {"beam_size": sizes.beam, "min_length": sizes.least, "max_length": sizes.most}
    return lambda source: [hypotheses[0].tokens for hypotheses in beam_search(model, source, **options)]


def _torch_search(model: Any, sizes: Sizes) -> Callable[[Array], list[tuple[int, ...]]]:
    import torch

    from benchmarks.torch_search import beam_search

    model.eval()

    def write(source: Array) -> list[tuple[int, ...]]:
        tokens, _ = beam_search(model, torch.from_numpy(source), sizes.most, sizes.beam, sizes.least)
        return [tuple(row[: row.index(END)] if END in row else row) for row in tokens.tolist()]

    return write
