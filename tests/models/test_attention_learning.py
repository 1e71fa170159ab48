"""A captioning model that attends learns to look at what it names."""

import json

import numpy as np
import pytest

from rnnlab.data import open_shapes
from rnnlab.data.shapes import shapes_directory
from rnnlab.models import CaptioningRNN
from rnnlab.training import Solver


@pytest.mark.long
def test_attention_is_on_the_shape_that_is_named():
    """The share of attention on the cells of a shape that a scene has once, against their number."""
    data = open_shapes(features="local", standardise=True)
    model = CaptioningRNN(
        data.vocabulary.word_to_idx,
        data.num_features,
        64,
        128,
        "lstm",
        attention="additive",
        attention_dim=64,
        output="deep",
        doubly_stochastic=3e-3,
    )
    Solver(
        model,
        data,
        optim_config={"learning_rate": 4e-3},
        schedule={"name": "exponential", "decay": 0.7},
        num_epochs=5,
        clip_norm=5.0,
        verbose=False,
    ).train()

    scenes = json.loads((shapes_directory() / "scenes.json").read_text())["val"]
    split = data.split("val")
    looked, chance = [], []
    for rows in np.array_split(np.arange(len(split.captions)), 10):
        captions = split.captions[rows]
        source, _ = model.encoder.forward(model.params, split.features[split.image_idxs[rows]])
        words, _ = model.embedding.forward(model.params, captions[:, :-1])
        decoded, _ = model.decoder.forward(
            model.params, words, source, np.count_nonzero(captions[:, 1:], axis=1)
        )
        for weights, caption, image in zip(
            decoded.weights["source"], captions, split.image_idxs[rows], strict=True
        ):
            for attended, token in zip(weights, caption[1:], strict=True):
                word = data.vocabulary.idx_to_word[token]
                named = [each["cells"] for each in scenes[image]["objects"] if each["shape"] == word]
                if len(named) == 1:
                    looked.append(attended[named[0]].sum())
                    chance.append(len(named[0]) / attended.size)
    assert len(looked) > 1000
    assert np.mean(looked) > 2 * np.mean(chance)
