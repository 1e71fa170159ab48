"""A model and data small enough that a whole training run takes milliseconds."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from rnnlab.parameters import Parameters


class LinearModel:
    """Least squares with input dropout: 0.5 |x W + b - y|^2 / N."""

    def __init__(self, inputs=5, outputs=3, dropout=0.2, dtype="float64"):
        self._config = {"inputs": inputs, "outputs": outputs, "dropout": dropout, "dtype": dtype}
        self.dropout = dropout
        self.params = Parameters({"W": (inputs, outputs), "b": (outputs,)}, dtype)
        self.params["W"] = np.random.default_rng(7).standard_normal((inputs, outputs))

    def config(self):
        return dict(self._config)

    @classmethod
    def from_config(cls, config):
        return cls(**config)

    def loss(self, x, y, *, rng=None, grads=None):
        grads = self.params.zeros_like() if grads is None else grads
        if rng is not None:
            x = x * (rng.random(x.shape) >= self.dropout)
        error = x @ self.params["W"] + self.params["b"] - y
        grads["W"] = x.T @ error / len(x)
        grads["b"] = error.mean(axis=0)
        return 0.5 * float((error**2).sum()) / len(x), grads

    def nll(self, x, y):
        error = x @ self.params["W"] + self.params["b"] - y
        return 0.5 * float((error**2).sum()), error.size


class LinearData:
    """Noisy linear targets; 50 training examples and 20 to validate on."""

    def __init__(self, splits=("train", "val"), words=None):
        rng = np.random.default_rng(11)
        W = rng.standard_normal((5, 3))
        self.splits = {}
        for split, n in zip(("train", "val"), (50, 20), strict=True):
            x = rng.standard_normal((n, 5))
            self.splits[split] = (x, x @ W + 0.1 * rng.standard_normal((n, 3)))
        self.splits = {split: self.splits[split] for split in splits}
        if words is not None:
            self.vocabulary = SimpleNamespace(idx_to_word=words)

    def epoch(self, split, batch_size, rng):
        order = np.arange(len(self.splits[split][0]))
        if rng is not None:
            rng.shuffle(order)
        return [order[start : start + batch_size] for start in range(0, len(order), batch_size)]

    def batch(self, split, indices):
        x, y = self.splits[split]
        return x[indices], y[indices]

    def num_tokens(self, batch):
        return batch[1].size


@pytest.fixture
def model():
    return LinearModel()


@pytest.fixture
def data():
    return LinearData()


@pytest.fixture
def make_model():
    return LinearModel


@pytest.fixture
def make_data():
    return LinearData
