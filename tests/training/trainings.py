"""Small trainings of several kinds of models, by one process or by ranks, and their comparison."""

from __future__ import annotations

import numpy as np
import pytest

from rnnlab.data import ArrayData, ParallelData, PixelData, RunningText
from rnnlab.models import CaptioningRNN, LanguageModel, Seq2Seq, SequenceClassifier
from rnnlab.training.solver import Solver

WORDS = {word: index for index, word in enumerate(["<NULL>", "<START>", "<END>", "a", "b", "c", "d"])}


class Captions:
    """19 captions of different lengths, so that the last batch of 6 has one row."""

    in_memory = True

    def __init__(self):
        rng = np.random.default_rng(4)
        captions = np.zeros((19, 11), np.int32)
        for row, length in zip(captions, rng.integers(1, 10, 19), strict=True):
            row[: length + 2] = [1, *rng.integers(3, 7, length), 2]
        features = rng.standard_normal((19, 3, 4))
        self.splits = {"train": (features, captions), "val": (features[:7], captions[:7])}
        self.read = []

    def epoch(self, split, batch_size, rng):
        order = np.arange(len(self.splits[split][1]))
        if rng is not None:
            rng.shuffle(order)
        return [order[start : start + batch_size] for start in range(0, len(order), batch_size)]

    def row_lengths(self, split, indices):
        return np.count_nonzero(self.splits[split][1][indices], axis=1)

    def batch(self, split, indices):
        self.read.append((split, len(indices)))
        return tuple(array[indices] for array in self.splits[split])

    def num_tokens(self, batch):
        return int(np.count_nonzero(batch[1][:, 1:]))


def sentence_pairs():
    rng = np.random.default_rng(6)
    pairs = [(list("abcd"[: rng.integers(1, 5)]), list("xyz") * int(rng.integers(1, 4))) for _ in range(19)]
    return ParallelData({"train": pairs, "val": pairs[:4]})


def pixels():
    rng = np.random.default_rng(8)
    images, labels = rng.integers(0, 256, (19, 3, 3), dtype=np.uint8), rng.integers(0, 3, 19)
    return PixelData({"train": (images, labels), "val": (images[:5], labels[:5])}, num_classes=3)


def captioner(**options):
    return CaptioningRNN(WORDS, 4, 3, 4, dtype=np.float64, rng=2, **options)


NOISE = {"word_dropout": 0.2, "output_dropout": 0.3}
SAMPLING = {"scheduled_sampling": {"name": "constant", "value": 0.4}}
ARNET = {"reconstruction": 0.3, "reconstructor_dim": 3}
SIZES = [("train", 14), ("val", 5)]  # lines of a running text
ATTENTIVE = {"cell_type": "lstm", "attention": "additive", **NOISE}


def attentive():
    return captioner(doubly_stochastic=0.5, label_smoothing=0.1, **ATTENTIVE), Captions(), SAMPLING


def arnet():
    return (
        captioner(loss_average="token", regularisation={"zoneout_h": 0.2}, **ATTENTIVE, **ARNET),
        Captions(),
        {},
    )


def reviewer():
    options = {"reviewer": {"blocks": 2, "steps": 2, "dropout": 0.2}, "discriminative": 0.3}
    return captioner(**options, **ATTENTIVE), Captions(), SAMPLING


def translator():
    data = sentence_pairs()
    sizes = data.source_vocabulary.word_to_idx, data.vocabulary.word_to_idx, 3, 4
    return Seq2Seq(*sizes, dtype=np.float64, loss_average="token", rng=2, **NOISE), data, SAMPLING


def language():
    sentences = Captions().splits["train"][1]
    data = ArrayData({"train": (sentences,), "val": (sentences[:7],)}, null_token=0)
    return LanguageModel(WORDS, 3, 4, dtype=np.float64, rng=2, **NOISE, **ARNET), data, SAMPLING


def running():
    rng = np.random.default_rng(6)
    lines = {split: [list(rng.choice(list("abcd"), 9)) for _ in range(count)] for split, count in SIZES}
    data = RunningText(lines, window=5, tokenizer="characters")
    options = {"decoder_layers": 2, "layer_dropout": 0.2, **NOISE, **ARNET}
    return (
        LanguageModel(data.vocabulary.word_to_idx, 3, 4, dtype=np.float64, rng=2, **options),
        data,
        SAMPLING,
    )


def classifier():
    return SequenceClassifier(3, 1, 4, dtype=np.float64, output_dropout=0.3, rng=2, **ARNET), pixels(), {}


OPTIONS = {
    "num_epochs": 2,
    "batch_size": 6,
    "optim_config": {"learning_rate": 0.01},
    "clip_norm": 1.0,
    "verbose": False,
}


def trained(make, communicator=None, **changes):
    model, data, options = make()
    solver = Solver(model, data, communicator=communicator, **OPTIONS | options | changes)
    solver.train()
    return solver


def assert_same(solver, expected):
    """The same losses, history and parameters up to rounding."""
    np.testing.assert_allclose(solver.loss_history, expected.loss_history, rtol=1e-9)
    for row, other in zip(solver.history, expected.history, strict=True):
        assert row.keys() == other.keys()
        for name in row.keys() - {"seconds", "tokens_per_second"}:
            assert row[name] == pytest.approx(other[name], rel=1e-9), name
    flat = expected.model.params.flat
    np.testing.assert_allclose(solver.model.params.flat, flat, rtol=0, atol=1e-7 * np.abs(flat).max())
