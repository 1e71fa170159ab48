"""Permuted sequential MNIST: an epoch of an LSTM that reads an image pixel by pixel, Adam included.

The last hidden state is classified. An epoch has 938 batches of 64 images; a few are timed, and the time of
all is projected from theirs. The pixels are random numbers: the time does not depend on them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from benchmarks.pytorch import load, load_lstm
from benchmarks.side import milliseconds

Array = Any


class Sizes(NamedTuple):
    """Of the model and of its data."""

    batches: int  # a call
    N: int  # images in a batch
    T: int  # pixels
    H: int  # hidden units
    classes: int


BATCHES = 4
EPOCH = 938  # batches: 60,000 images, 64 a time
CASES = {f"an epoch, projected from {BATCHES} batches": Sizes(BATCHES, 64, 784, 128, 10)}
SIDES = ("rnnlab", "torch", "torch time-first")
TARGETS = {case: {"torch": 1.2} for case in CASES}
UNIT = "s"
WARM_UP = 1


def measure(work: Callable[[], object]) -> float:
    """Seconds for an epoch."""
    return milliseconds(work) / 1000 * EPOCH / BATCHES


def prepare(side: str, sizes: Sizes) -> Callable[[], list[float]]:
    """Return the losses of the batches."""
    _, N, T, H, classes = sizes
    rng = np.random.default_rng(0)
    x = rng.random((sizes.batches, N, T, 1), np.float32)
    y = rng.integers(0, classes, (sizes.batches, N))
    shapes = {"Wx": (1, 4 * H), "Wh": (H, 4 * H), "b": (4 * H,)}
    shapes |= {"W_class": (H, classes), "b_class": (classes,)}
    weights = {name: rng.uniform(-0.08, 0.08, shape).astype(np.float32) for name, shape in shapes.items()}
    return (_rnnlab if side == "rnnlab" else _torch)(x, y, weights, time_first=side.endswith("time-first"))


def _rnnlab(x: Array, y: Array, weights: dict[str, Array], *, time_first: bool) -> Callable[[], list[float]]:
    from rnnlab.models import SequenceClassifier
    from rnnlab.training import make_update_rule

    H, classes = weights["W_class"].shape
    model = SequenceClassifier(classes, 1, H, "lstm")
    model.params.update(weights)
    grads, rule = model.params.zeros_like(), make_update_rule("adam")

    def step(pixels: Array, labels: Array) -> float:
        loss, _ = model.loss(pixels, labels, grads=grads)
        rule.step(model.params.flat, grads.flat)
        return loss

    return lambda: [step(pixels, labels) for pixels, labels in zip(x, y, strict=True)]


def _torch(x: Array, y: Array, weights: dict[str, Array], *, time_first: bool) -> Callable[[], list[float]]:
    import torch
    from torch import nn

    H, classes = weights["W_class"].shape
    lstm = load_lstm(
        nn.LSTM(1, H, batch_first=not time_first), *(weights[name] for name in ("Wx", "Wh", "b"))
    )
    output = load(nn.Linear(H, classes), weights["W_class"], weights["b_class"])
    adam = torch.optim.Adam([*lstm.parameters(), *output.parameters()], fused=True)
    images, classes_of = torch.from_numpy(x.swapaxes(1, 2).copy() if time_first else x), torch.from_numpy(y)

    def step(pixels: Array, labels: Array) -> float:
        adam.zero_grad()
        final_h = lstm(pixels)[1][0][0]
        loss = nn.functional.cross_entropy(output(final_h), labels)
        loss.backward()
        adam.step()
        return loss.item()

    return lambda: [step(pixels, labels) for pixels, labels in zip(images, classes_of, strict=True)]
