"""Captions of the built-in data can be learned from its features, and cannot without them."""

from dataclasses import replace

import numpy as np
import pytest

from rnnlab.data import open_shapes, tokenize
from rnnlab.data.shapes import write_shapes
from rnnlab.decoding import greedy
from rnnlab.models import CaptioningRNN
from rnnlab.training import Solver


def trained(data, hidden_dim, num_epochs, batch_size, learning_rate):
    model = CaptioningRNN(
        data.vocabulary.word_to_idx,
        data.num_features,
        wordvec_dim=hidden_dim // 2,
        hidden_dim=hidden_dim,
        cell_type="lstm",
        state_activation="tanh",
        project_cell=True,
    )
    solver = Solver(
        model,
        data,
        optim_config={"learning_rate": learning_rate},
        schedule={"name": "exponential", "decay": 0.75},
        num_epochs=num_epochs,
        batch_size=batch_size,
        verbose=False,
    )
    solver.train()
    return model, solver.history[-1]["val_loss"]


def blinded(data):
    """The same data with every feature zero."""
    blind = open_shapes(data.image_dir.parent)
    for name, split in blind.splits.items():
        blind.splits[name] = replace(split, features=np.zeros_like(split.features))
    return blind


@pytest.mark.slow
def test_captions_need_the_picture(tmp_path):
    write_shapes(tmp_path / "shapes", {"train": 600, "val": 60})
    data = open_shapes(tmp_path / "shapes")
    _, seeing = trained(data, 64, 5, 32, 0.01)
    _, blind = trained(blinded(data), 64, 5, 32, 0.01)
    assert seeing < 0.75
    assert blind > seeing + 0.25


@pytest.mark.long
def test_bleu_of_unseen_scenes(tmp_path):
    bleu = pytest.importorskip("pycocoevalcap.bleu.bleu")
    write_shapes(tmp_path / "shapes")
    data = open_shapes(tmp_path / "shapes")

    def score(data):
        model, _ = trained(data, 128, 8, 64, 4e-3)
        test = data.split("test")
        found = {n: [data.vocabulary.decode(h.tokens)] for n, (h,) in enumerate(greedy(model, test.features))}
        references = {
            n: [" ".join(tokenize(s)) for s in sentences] for n, sentences in enumerate(test.references)
        }
        return bleu.Bleu(4).compute_score(references, found, verbose=0)[0][3]

    assert score(data) > 0.70
    assert score(blinded(data)) < 0.35
