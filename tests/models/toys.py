"""Small captioning models and a batch with all that a batch may hold, shared by the models' tests."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rnnlab.gradcheck.cases import CELLS
from rnnlab.models import CaptioningRNN
from rnnlab.models.captioning import IMAGE_INPUTS

WORDS = ["<NULL>", "<START>", "<END>", "a", "b", "c"]
WORD_TO_IDX = {word: index for index, word in enumerate(WORDS)}
NULL, START, END = 0, 1, 2
D, G, W, H, V = 3, 5, 2, 4, len(WORDS)
L = 3  # regions of an image

DROPOUT = {"feature_dropout": 0.2, "word_dropout": 0.3, "output_dropout": 0.4}

ARCHITECTURES: list[dict[str, Any]] = [
    {"cell_type": cell, "image_input": image_input} for cell in CELLS for image_input in IMAGE_INPUTS
]
ARCHITECTURES += [{"cell_type": cell, "state_activation": "tanh"} for cell in CELLS]
ARCHITECTURES += [
    {"cell_type": cell, "decoder_layers": layers, "image_input": image_input}
    for (cell, image_input), layers in zip(zip(CELLS, IMAGE_INPUTS, strict=True), (2, 3, 2, 3), strict=True)
]
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
    {"cell_type": cell, "decoder_layers": 2, "layer_dropout": 0.3, "attention": "additive", "output": output}
    for cell, output in (("lstm", "linear"), ("gru", "deep"))
]
ATTENDING += [
    {"cell_type": "lstm", "attention": "bilinear", "selector": True, "output": "deep"},
    {"cell_type": "gru", "attention": "additive", "attention_dim": 3},
    {"cell_type": "lstm", "attention": "additive", "reviewer": {"blocks": 2, "steps": 2}},
    {
        "cell_type": "gru",
        "attention": "additive",
        "output": "deep",
        "target_attention": True,
        "reviewer": {"blocks": 1, "steps": 3, "intra": False, "dropout": 0.2},
    },
    {"cell_type": "lstm", "attention": "additive", "project_cell": True, "state_activation": "tanh"},
    {"cell_type": "gru", "attention": "additive", "global_dim": G, "target_attention": True},
    {"cell_type": "rnn", "target_attention": True, "target_delay": 3},
    {
        "cell_type": "lstm",
        "attention": "bilinear",
        "output": "deep",
        "target_attention": True,
        "target_delay": 2,
    },
    {
        "cell_type": "lstm",
        "attention": "dot",
        "global_dim": G,
        "project_cell": True,
        "output": "deep",
        "hidden_dim": D,
    },
    {"cell_type": "gru", "output": "deep"},
    {"cell_type": "rnn", "output": "concat"},
    {"cell_type": "lstm", "attention": "additive", "selector": True, "output": "concat"},
    {"cell_type": "gru", "attention": "dot", "hidden_dim": D, "target_attention": True, "output": "concat"},
    {"cell_type": "gru", "target_attention": True, "output": "concat"},
    {"cell_type": "lstm", "image_input": "every_step", "decoder_layers": 2, "output": "concat"},
    {"cell_type": "gru", "hidden_dim": W, "tied_embeddings": True},
    {"cell_type": "lstm", "attention": "additive", "output": "deep", "tied_embeddings": True},
    {"cell_type": "gru", "image_input": "every_step", "output": "deep"},
]
REGULARISED: list[dict[str, Any]] = [
    {"cell_type": "lstm", "regularisation": {"zoneout_h": 0.2, "zoneout_c": 0.4}},
    {"cell_type": "gru", "regularisation": {"recurrent_dropout": 0.3, "zoneout_h": 0.2}},
    {
        "cell_type": "simplified_gru",
        "image_input": "second_layer",
        "regularisation": {"recurrent_dropout": 0.3, "recurrent_dropout_on": "candidate"},
    },
    {"cell_type": "rnn", "image_input": "first_input", "regularisation": {"weight_dropout": 0.3}},
    {
        "cell_type": "lstm",
        "decoder_layers": 3,
        "layer_dropout": 0.3,
        "target_attention": True,
        "regularisation": {"zoneout_h": 0.2, "recurrent_dropout": 0.3, "weight_dropout": 0.2},
    },
    {
        "cell_type": "lstm",
        "attention": "additive",
        "target_attention": True,
        "regularisation": {
            "zoneout_h": 0.2,
            "zoneout_c": 0.4,
            "recurrent_dropout": 0.3,
            "recurrent_dropout_on": "candidate",
            "weight_dropout": 0.2,
        },
    },
]
ARCHITECTURES += ATTENDING + REGULARISED
PENALISED = [
    {"cell_type": "lstm", "attention": "additive", "doubly_stochastic": 0.5},
    {"cell_type": "gru", "attention": "additive", "target_attention": True, "doubly_stochastic": 0.5},
    {"cell_type": "lstm", "label_smoothing": 0.1},
    {"cell_type": "gru", "attention": "additive", "doubly_stochastic": 0.5, "label_smoothing": 0.2},
]
RECONSTRUCTING = [options | {"reconstruction": 0.3, "reconstructor_dim": 3} for options in ARCHITECTURES]


def name_of(options: dict[str, Any]) -> str:
    return "-".join(
        key if value is True else "+".join(value) if isinstance(value, dict) else str(value)
        for key, value in options.items()
        if value not in ("none", False)
    )


every_architecture = pytest.mark.parametrize("options", ARCHITECTURES, ids=name_of)


def build(**options: Any) -> CaptioningRNN:
    """A float64 model whose gradients are of ordinary size."""
    model = CaptioningRNN(WORD_TO_IDX, D, W, **{"hidden_dim": H, "dtype": np.float64} | options)
    # biases too, which would start at zero, so that a wrong one shows
    model.params.flat[...] = np.random.default_rng(5).uniform(-0.8, 0.8, model.params.flat.size)
    return model


def batch(rng: np.random.Generator, **options: Any) -> tuple[Any, np.ndarray]:
    """Features for a model, and captions: full, short, <NULL> inside, no <END>, and nothing but padding."""
    captions = [
        [START, 3, 4, 3, 5, END],
        [START, 4, END, NULL, NULL, NULL],
        [START, 3, NULL, 5, END, NULL],
        [START, 5, 5, NULL, NULL, NULL],
        [NULL, NULL, NULL, NULL, NULL, NULL],
    ]
    return features_of(rng, len(captions), **options), np.array(captions, dtype=np.int32)


def features_of(rng: np.random.Generator, N: int, **options: Any) -> Any:
    """Features of N images for a model: vectors, regions, or a tuple of regions and vectors."""
    regions = (L,) if options.get("attention") else ()
    features: Any = rng.standard_normal((N, *regions, D))
    return (features, rng.standard_normal((N, G))) if options.get("global_dim") else features


def rows_of(features: Any, rows: Any) -> Any:
    """Some rows of a batch's features."""
    return tuple(each[rows] for each in features) if isinstance(features, tuple) else features[rows]
