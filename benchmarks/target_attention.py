"""The cost of attention to the decoder's own past in beam search, compared with the model without it.

Xia et al. (2017) report 1.17 times the time; the last case has the sizes of their model. The weights of the
contexts are zero, so that both models write the same sentences, of the given length; all arithmetic is done.
A ratio of 0.85 is 1.17 times the time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import translation
from benchmarks.attentive_decoding import Sizes, search, telling

PAPER = translation.Sizes(10, 620, 1000, 1000, 1000, 30000, 30000, mean=25)
CASES = {
    f"beam {beam}, {sources} sentences of {words} words": Sizes(
        beam, words, words, translation.MULTI30K._replace(N=sources)
    )
    for beam, sources, words in ((1, 100, 13), (5, 100, 13), (10, 10, 13), (10, 10, 25))
} | {"beam 10, 10 sentences of 25 words, H=1000 V=30000": Sizes(10, 25, 25, PAPER)}
SIDES = ("rnnlab", "without")
TARGETS = {case: {"without": 1 / 1.17} for case in CASES}
WARM_UP = 1


def prepare(side: str, sizes: Sizes) -> Callable[[], list[tuple[int, ...]]]:
    """Return the sentences, without <START> and <END>."""
    source, _ = translation.batch(sizes.model)
    write = search(model(sizes.model, attends=side == "rnnlab"), sizes)
    return lambda: write(source)


def model(sizes: translation.Sizes, *, attends: bool) -> Any:
    """The model of ``attentive_decoding``, with or without attention to its own past."""
    weights = telling(translation.weights(sizes))
    if attends:
        H, A, W = sizes.H, sizes.A, sizes.W
        weights |= translation.draw(
            {"target_Wq": (H, A), "target_Wm": (H, A), "target_b": (A,), "target_v": (A,)}
        )
        weights["Wt"] = np.zeros_like(weights["Wh"])
        weights["W_deep_z"] = np.concatenate([weights["W_deep_z"], np.zeros((H, W), np.float32)])
    return translation.model(sizes, weights, target_attention=attends)
