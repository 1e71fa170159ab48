"""``python -m benchmarks lazy``: a pass over features in memory, and over the same features in a file.

The file is read lazily and is ten times as large as the cache. A pass is every batch of an epoch in shuffled
order, either only read or with a training step of a small captioning model on each. The same process has
written the file, so it comes from the system's page cache and not from the disk.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import h5py
import numpy as np

from benchmarks.commands import parser_of
from benchmarks.turns import measure, use_threads
from rnnlab.cli.arguments import positive_integer

SIDES = ("in memory", "lazy")
BATCH_SIZE = 64


class Shapes(NamedTuple):
    """The shapes of a case."""

    images: int
    shape: tuple[int, ...]  # features of an image
    stored: str  # dtype in the file; uint8 with offset and scale
    captions: int  # per image
    step: bool  # whether a model is trained


CASES = {
    "read, 5 captions": Shapes(40_000, (1280,), "float32", 5, False),
    "read, 1 caption": Shapes(40_000, (1280,), "float32", 1, False),
    "read, float16, 5 captions": Shapes(40_000, (1280,), "float16", 5, False),
    "read, grid, uint8, 5 captions": Shapes(4_000, (49, 256), "uint8", 5, False),
    "train, 1 caption": Shapes(40_000, (1280,), "float32", 1, True),
}


def prepare(side: str, shapes: Shapes) -> Callable[[], object]:
    """One pass of one side."""
    from rnnlab.data.lazy import LazyFeatures

    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name) / "features.h5"
    _write(path, shapes)
    num_bytes = 4 * shapes.images * int(np.prod(shapes.shape))
    features = LazyFeatures(path, cache_bytes=num_bytes // 10)
    image_idxs = np.repeat(np.arange(shapes.images), shapes.captions)
    in_memory = features[:] if side == "in memory" else None
    step = _training_step(shapes) if shapes.step else lambda batch: None
    rng = np.random.default_rng(0)

    def epoch() -> None:
        if in_memory is None:
            order = features.epoch_order(image_idxs, rng)
        else:
            order = rng.permutation(len(image_idxs))
        for start in range(0, len(order), BATCH_SIZE):
            images = image_idxs[order[start : start + BATCH_SIZE]]
            step(features[images] if in_memory is None else in_memory[images])
        assert folder.name  # lives as long as this function

    return epoch


def _write(path: Path, shapes: Shapes) -> None:
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 256, (100, *shapes.shape), np.uint8)
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset("features", (shapes.images, *shapes.shape), shapes.stored)
        for start in range(0, shapes.images, len(rows)):
            dataset[start : start + len(rows)] = rows
        if shapes.stored == "uint8":
            dataset.attrs["offset"] = np.zeros(shapes.shape[-1], np.float32)
            dataset.attrs["scale"] = np.full(shapes.shape[-1], 1 / 256, np.float32)


def _training_step(shapes: Shapes) -> Callable[[np.ndarray], object]:
    from rnnlab.models import CaptioningRNN
    from rnnlab.training import make_update_rule

    words = ["<NULL>", "<START>", "<END>", "<UNK>", *map(str, range(4, 500))]
    word_to_idx = {word: index for index, word in enumerate(words)}
    model = CaptioningRNN(word_to_idx, shapes.shape[-1], 32, 32, "lstm")
    rule, grads = make_update_rule("adam"), model.params.zeros_like()
    captions = np.random.default_rng(0).integers(4, 500, (BATCH_SIZE, 12))

    def step(features: np.ndarray) -> None:
        model.loss(features, captions[: len(features)], grads=grads)
        rule.step(model.params.flat, grads.flat)

    return step


def main(arguments: list[str] | None = None) -> int:
    """Print the speed of the lazy pass relative to that in memory."""
    parser = parser_of("lazy", __doc__)
    parser.add_argument("--rounds", type=positive_integer, default=5, help="turns of each side (5)")
    parser.add_argument("--threads", type=positive_integer, default=1, help="threads of each side (1)")
    options = parser.parse_args(arguments)
    use_threads(options.threads)
    print(f"{'a pass':<44}{'in memory':>12}{'lazy':>12}{'speed':>8}")
    for case in CASES:
        times = measure("lazy", case, SIDES, rounds=options.rounds).measured
        memory, lazy = (times[side] for side in SIDES)
        print(f"{case:<44}{memory:10.1f}ms{lazy:10.1f}ms{memory / lazy:7.2f}x", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
