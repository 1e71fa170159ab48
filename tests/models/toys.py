"""Small captioning models and a batch with all that a batch may hold, shared by the models' tests."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rnnlab.models import CaptioningRNN
from rnnlab.models.captioning import IMAGE_INPUTS
from rnnlab.models.cells import CELLS

WORDS = ["<NULL>", "<START>", "<END>", "a", "b", "c"]
WORD_TO_IDX = {word: index for index, word in enumerate(WORDS)}
NULL, START, END = 0, 1, 2
D, W, H, V = 3, 2, 4, len(WORDS)
L = 3  # regions of an image

DROPOUT = {"feature_dropout": 0.2, "word_dropout": 0.3, "output_dropout": 0.4}

ARCHITECTURES: list[dict[str, Any]] = [
    {"cell_type": cell, "image_input": image_input} for cell in CELLS for image_input in IMAGE_INPUTS
]
ARCHITECTURES += [{"cell_type": cell, "state_activation": "tanh"} for cell in CELLS]
ARCHITECTURES += [
    {"cell_type": "lstm", "project_cell": True, "state_activation": activation}
    for activation in ("none", "tanh")
]
PLAIN = list(ARCHITECTURES)
ATTENDING: list[dict[str, Any]] = [
    {"cell_type": cell, "attention": "additive", "target_attention": target, "output": output}
    for cell in CELLS
    for target in (False, True)
    for output in ("linear", "deep")
]
ATTENDING += [{"cell_type": cell, "target_attention": True, "output": "deep"} for cell in CELLS]
ATTENDING += [
    {"cell_type": "lstm", "attention": "bilinear", "selector": True, "output": "deep"},
    {"cell_type": "gru", "attention": "additive", "attention_dim": 3},
    {"cell_type": "lstm", "attention": "additive", "project_cell": True, "state_activation": "tanh"},
    {"cell_type": "gru", "output": "deep"},
    {"cell_type": "gru", "image_input": "every_step", "output": "deep"},
]
ARCHITECTURES += ATTENDING
PENALISED = [
    {"cell_type": "lstm", "attention": "additive", "doubly_stochastic": 0.5},
    {"cell_type": "gru", "attention": "additive", "target_attention": True, "doubly_stochastic": 0.5},
]
RECONSTRUCTING = [options | {"reconstruction": 0.3, "reconstructor_dim": 3} for options in ARCHITECTURES]


def name_of(options: dict[str, Any]) -> str:
    return "-".join(
        key if value is True else str(value) for key, value in options.items() if value not in ("none", False)
    )


every_architecture = pytest.mark.parametrize("options", ARCHITECTURES, ids=name_of)


def build(**options: Any) -> CaptioningRNN:
    """A float64 model whose gradients are of ordinary size."""
    model = CaptioningRNN(WORD_TO_IDX, D, W, H, **{"dtype": np.float64} | options)
    # biases too, which would start at zero, so that a wrong one shows
    model.params.flat[...] = np.random.default_rng(5).uniform(-0.8, 0.8, model.params.flat.size)
    return model


def batch(rng: np.random.Generator, **options: Any) -> tuple[np.ndarray, np.ndarray]:
    """Features for a model, and captions: full, short, <NULL> inside, no <END>, and nothing but padding."""
    captions = [
        [START, 3, 4, 3, 5, END],
        [START, 4, END, NULL, NULL, NULL],
        [START, 3, NULL, 5, END, NULL],
        [START, 5, 5, NULL, NULL, NULL],
        [NULL, NULL, NULL, NULL, NULL, NULL],
    ]
    regions = (L,) if options.get("attention") else ()
    return rng.standard_normal((len(captions), *regions, D)), np.array(captions, dtype=np.int32)
