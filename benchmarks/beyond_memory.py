"""``python -m benchmarks beyond_memory``: an epoch on features larger than memory, and many sentence pairs.

A captioner with attention is trained for an epoch on synthetic features (49 regions of 512 numbers, float32).
A few of them are read from memory and lazily, then all of them lazily, under a memory limit, from a cold page
cache and from a warm one. A cold page cache holds nothing of the file; a warm one holds the pages that the
previous run has left. The times are per image, relative to those in memory. Then synthetic sentence pairs are
opened as parallel text. Each measurement runs in a separate process.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.commands import parser_of
from benchmarks.memory import resident
from benchmarks.turns import use_threads
from rnnlab.cli.arguments import natural_number, positive_integer, positive_number

GIGABYTE = 10**9
SHAPE = (49, 512)  # features of an image
ROW_BYTES = 4 * math.prod(SHAPE)
BATCH_SIZE, WORDS, CAPTION = 64, 2500, 21
SENTENCE, DISTINCT = 13, 50_000  # words of a sentence, and of a language


class Case(NamedTuple):
    """An epoch."""

    name: str
    images: int
    lazy: bool
    cold: bool
    limit: float | None  # gigabytes


def write_features(path: Path, images: int) -> None:
    """Write the features of images: a few images repeatedly, each time with different numbers."""
    import h5py

    few = np.random.default_rng(0).standard_normal((64, *SHAPE)).astype(np.float32)
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset("features", (images, *SHAPE), np.float32)
        for start in range(0, images, len(few)):
            dataset[start : start + len(few)] = few[: images - start] + np.float32(start / images)


def write_pairs(folder: Path, pairs: int) -> None:
    """Write parallel text of two synthetic languages, whose word frequencies follow Zipf's law."""
    rng = np.random.default_rng(0)
    shares = 1 / np.arange(1, DISTINCT + 1)
    for language in ("src", "trg"):
        words = np.array([f"{language[0]}{number}" for number in range(DISTINCT)], object)
        with (folder / f"train.{language}").open("w") as file:
            for start in range(0, pairs, 10_000):
                chosen = rng.choice(DISTINCT, (min(10_000, pairs - start), SENTENCE), p=shares / shares.sum())
                file.writelines(" ".join(row) + "\n" for row in words[chosen].tolist())


def forget(path: Path) -> None:
    """Remove a file from the page cache."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def epoch(path: str, images: int, lazy: bool) -> dict[str, float]:
    """Train for an epoch; return its seconds and the peak resident memory in megabytes."""
    import h5py

    from rnnlab.data import CaptionData, CaptionSplit, LazyFeatures, Vocabulary
    from rnnlab.models import CaptioningRNN
    from rnnlab.training import Solver

    rng = np.random.default_rng(0)
    vocabulary = Vocabulary([f"w{number}" for number in range(WORDS)])
    captions = rng.integers(4, len(vocabulary), (images, CAPTION))
    captions[:, 0], captions[:, -1] = 1, 2  # <START>, <END>
    if lazy:
        features: Any = LazyFeatures(path, rows=np.arange(images))
    else:
        with h5py.File(path) as file:
            features = file["features"][:images]
    names = tuple(map(str, range(images)))
    split = CaptionSplit(features, captions, np.arange(images), names, [[]] * images)
    data = CaptionData(vocabulary, {"train": split})
    model = CaptioningRNN(
        vocabulary.word_to_idx, SHAPE[-1], 512, 512, "lstm", attention="additive", attention_dim=512
    )
    model.loss(*data.batch("train", np.arange(BATCH_SIZE)))  # loads the compiled kernels
    solver = Solver(model, data, num_epochs=1, batch_size=BATCH_SIZE, verbose=False)
    solver.train()
    return {"seconds": solver.history[0]["seconds"], "resident": resident("VmHWM")}


def opening(folder: str) -> dict[str, float]:
    """Open sentence pairs and make the first batch of an epoch; return the seconds and the megabytes."""
    from rnnlab.data import open_parallel

    before, began = resident("VmRSS"), time.perf_counter()
    data = open_parallel(folder, "src", "trg", tokenizer="spaces")
    opened = time.perf_counter()
    data.batch("train", data.epoch("train", BATCH_SIZE, np.random.default_rng(0))[0])
    first = time.perf_counter()
    data.fingerprint()
    hashed = time.perf_counter()
    return {
        "open": opened - began,
        "first batch": first - opened,
        "fingerprint": hashed - first,
        "resident": resident("VmHWM"),
        "resident before": before,
    }


def measure(function: str, *arguments: Any, limit: float | None = None) -> dict[str, float]:
    """Call a function of this module in a separate process, with at most ``limit`` gigabytes."""
    task = json.dumps([function, arguments, limit])
    command = [sys.executable, "-m", "benchmarks.beyond_memory", "--task", task]
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE)
    if done.returncode:
        raise SystemExit(f"{function} {arguments}: the process ended with status {done.returncode}")
    return json.loads(done.stdout.splitlines()[-1])


def _work(task: str) -> None:
    """Run one measurement, in its own process."""
    function, arguments, limit = json.loads(task)
    if limit is not None:
        resource.setrlimit(resource.RLIMIT_AS, (int(limit * GIGABYTE),) * 2)
    print(json.dumps({"epoch": epoch, "opening": opening}[function](*arguments)))


def features_larger_than_memory(folder: Path, gigabytes: float, small: float, limit: float) -> None:
    """Print the times of the epochs."""
    images, few = (max(BATCH_SIZE, int(size * GIGABYTE / ROW_BYTES)) for size in (gigabytes, small))
    path = folder / "features.h5"
    began = time.perf_counter()
    write_features(path, images)
    print(f"{images:,} images, {path.stat().st_size / GIGABYTE:.2f} GB, written in {_since(began)}")
    print(f"{'an epoch':<34}{'images':>9}{'time':>10}{'per image':>12}{'relative':>10}{'resident':>11}")
    in_memory = None
    for case in (
        Case("in memory, no limit", few, lazy=False, cold=False, limit=None),
        Case(f"lazy, {limit:g} GB, cold", few, lazy=True, cold=True, limit=limit),
        Case(f"lazy, {limit:g} GB, warm", few, lazy=True, cold=False, limit=limit),
        Case(f"lazy, {limit:g} GB, cold", images, lazy=True, cold=True, limit=limit),
        Case(f"lazy, {limit:g} GB, warm", images, lazy=True, cold=False, limit=limit),
    ):
        if case.cold:
            forget(path)
        found = measure("epoch", str(path), case.images, case.lazy, limit=case.limit)
        each = found["seconds"] / case.images
        in_memory = in_memory or each
        print(
            f"{case.name:<34}{case.images:>9,}{found['seconds']:8.1f} s{1000 * each:9.2f} ms"
            f"{each / in_memory:9.2f}x{found['resident']:8,.0f} MB",
            flush=True,
        )
    path.unlink()


def many_pairs(folder: Path, pairs: int) -> None:
    """Print the time and the memory of opening sentence pairs."""
    began = time.perf_counter()
    write_pairs(folder, pairs)
    size = sum(path.stat().st_size for path in folder.glob("train.*")) / GIGABYTE
    print(f"\n{pairs:,} pairs of {SENTENCE} words, {size:.2f} GB of text, written in {_since(began)}")
    found = measure("opening", str(folder))
    for name in ("open", "first batch", "fingerprint"):
        print(f"{name:<34}{found[name]:8.1f} s")
    grown = found["resident"] - found["resident before"]
    print(f"{'peak resident memory':<34}{found['resident']:8,.0f} MB, {grown:,.0f} more than before")
    for path in folder.glob("train.*"):
        path.unlink()


def _since(began: float) -> str:
    return f"{time.perf_counter() - began:.0f} s"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print both tables."""
    parser = parser_of("beyond_memory", __doc__)
    parser.add_argument(
        "--gigabytes", type=_not_negative, default=20, help="of all features (20); 0 for none"
    )
    parser.add_argument(
        "--small", type=positive_number, default=1, help="gigabytes of the features in memory (1)"
    )
    parser.add_argument(
        "--limit", type=positive_number, default=2, help="gigabytes of memory for lazy epochs (2)"
    )
    parser.add_argument(
        "--pairs", type=natural_number, default=10_000_000, help="sentence pairs (10,000,000); 0 for none"
    )
    parser.add_argument(
        "--folder", help="folder for the temporary files of features and pairs (a temporary folder)"
    )
    parser.add_argument(
        "--threads",
        type=positive_integer,
        default=os.cpu_count(),
        help="number of threads (default: one for each processor)",
    )
    parser.add_argument("--task", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.task is not None:
        _work(options.task)
        return 0
    if options.folder is not None and not Path(options.folder).is_dir():
        parser.error(f"--folder is {options.folder}, expected a folder")
    use_threads(options.threads)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        if options.gigabytes:
            features_larger_than_memory(Path(folder), options.gigabytes, options.small, options.limit)
        if options.pairs:
            many_pairs(Path(folder), options.pairs)
    return 0


def _not_negative(text: str) -> float:
    return 0.0 if text == "0" else positive_number(text)


if __name__ == "__main__":
    sys.exit(main())
