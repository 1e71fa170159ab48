"""A small set of captioned photographs, and an encoder for it."""

import json
from types import SimpleNamespace

import numpy as np
from PIL import Image

from .. import quick_runs

RECIPE = """
[data]
kind = "karpathy"
annotations = "{annotations}"
features = "{features}"
min_count = 1
[model]
hidden_dim = 16
wordvec_dim = 8
[training]
num_epochs = 10
optim_config.learning_rate = 6e-2
[decoding]
max_length = 6
[evaluation]
metrics = ["BLEU"]
"""


def write_photographs(folder):
    """A folder of photographs, their captions in Karpathy's JSON, and a network."""
    from ..data.photographs.networks import write_network

    (folder / "photographs").mkdir(parents=True)
    rng, images = np.random.default_rng(0), []
    for number in range(16):
        name, colour = f"photo_{number}.png", ("red", "blue")[number % 2]
        pixels = rng.integers(0, 256, (12, 8 + number, 3), np.uint8)
        pixels[..., 0 if colour == "red" else 2] //= 4
        Image.fromarray(pixels).save(folder / "photographs" / name)
        split = "train" if number < 10 else "val" if number < 13 else "test"
        images.append({"filename": name, "split": split, "sentences": [{"raw": f"a {colour} photo"}]})
    (folder / "captions.json").write_text(json.dumps({"images": images}))
    return SimpleNamespace(
        folder=folder,
        photographs=folder / "photographs",
        annotations=folder / "captions.json",
        network=write_network(folder / "network.onnx"),
    )


def train(album, features, out, *changes):
    """Train a model on features of the photographs."""
    recipe = album.folder / f"{out.name}.toml"
    recipe.write_text(RECIPE.format(annotations=album.annotations, features=features))
    return quick_runs.train(recipe, out, *changes)
