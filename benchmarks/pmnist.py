"""Permuted sequential MNIST: an epoch of an LSTM that reads an image pixel by pixel, Adam included.

The last hidden state is classified. An epoch has 938 batches of 64 images. A few are timed, and the time of
the epoch is extrapolated from them. The pixels are random numbers. Most gradients vanish over the steps and
become subnormal, which both sides treat as zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from benchmarks.gpu import Plan
from benchmarks.pytorch import DEVICES, load, load_lstm
from benchmarks.side import milliseconds
from benchmarks.steps import training_steps

Array = Any


class Sizes(NamedTuple):
    """The sizes of the model and of its data."""

    batches: int  # per call
    N: int  # images in a batch
    T: int  # pixels
    H: int  # hidden units
    classes: int


BATCHES = 4
EPOCH = 938  # batches: 60,000 images, 64 in each
CASES = {f"an epoch, projected from {BATCHES} batches": Sizes(BATCHES, 64, 784, 128, 10)}
SIDES = ("rnnlab", "torch", "torch time-first")
TARGETS = {case: {"torch": 1.2} for case in CASES}
GPU = Plan(CASES, (*SIDES, "rnnlab graphs", "rnnlab graphs tf32x3"), TARGETS)
UNIT = "s"
PER_MILLISECOND = EPOCH / BATCHES / 1000  # seconds of an epoch
WARM_UP = 1


def measure(work: Callable[[], object]) -> float:
    """Seconds for an epoch."""
    return PER_MILLISECOND * milliseconds(work)


def prepare(side: str, sizes: Sizes, device: str = "cpu") -> Callable[[], list[float]]:
    """Return the losses of the batches."""
    _, N, T, H, classes = sizes
    rng = np.random.default_rng(0)
    x = rng.random((sizes.batches, N, T, 1), np.float32)
    y = rng.integers(0, classes, (sizes.batches, N))
    shapes = {"Wx": (1, 4 * H), "Wh": (H, 4 * H), "b": (4 * H,)}
    shapes |= {"W_class": (H, classes), "b_class": (classes,)}
    weights = {name: rng.uniform(-0.08, 0.08, shape).astype(np.float32) for name, shape in shapes.items()}
    if side.startswith("rnnlab"):
        return _rnnlab(x, y, weights, device, graphs="graphs" in side)
    return _torch(x, y, weights, device, time_first=side.endswith("time-first"))


def _rnnlab(
    x: Array, y: Array, weights: dict[str, Array], device: str, *, graphs: bool
) -> Callable[[], list[float]]:
    from rnnlab.models import SequenceClassifier

    H, classes = weights["W_class"].shape
    model = SequenceClassifier(classes, 1, H, "lstm")
    model.params.update(weights)
    step = training_steps(model, [*zip(x, y, strict=True)], device=device, graphs=graphs)
    return lambda: [step(number) for number in range(len(x))]


def _torch(
    x: Array, y: Array, weights: dict[str, Array], device: str, *, time_first: bool
) -> Callable[[], list[float]]:
    import torch
    from torch import nn

    H, classes = weights["W_class"].shape
    lstm = load_lstm(
        nn.LSTM(1, H, batch_first=not time_first), *(weights[name] for name in ("Wx", "Wh", "b"))
    )
    output = load(nn.Linear(H, classes), weights["W_class"], weights["b_class"])
    lstm, output = lstm.to(DEVICES[device]), output.to(DEVICES[device])
    adam = torch.optim.Adam([*lstm.parameters(), *output.parameters()], fused=True)
    arrays = x.swapaxes(1, 2).copy() if time_first else x, y
    images, classes_of = (torch.from_numpy(array).to(DEVICES[device]) for array in arrays)

    def step(pixels: Array, labels: Array) -> float:
        adam.zero_grad()
        final_h = lstm(pixels)[1][0][0]
        loss = nn.functional.cross_entropy(output(final_h), labels)
        loss.backward()
        adam.step()
        return loss.item()

    def work() -> list[float]:
        torch.set_flush_denormal(True)  # as in rnnlab's kernels; PyTorch's default is many times slower here
        try:
            return [step(pixels, labels) for pixels, labels in zip(images, classes_of, strict=True)]
        finally:
            torch.set_flush_denormal(False)

    return work
