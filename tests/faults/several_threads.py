"""``python -m tests.faults.several_threads``: losses and gradients in several threads, and after a fork.

It prints a line for each, and ends with status 1 unless all have the bits of one thread.
"""

from __future__ import annotations

import hashlib
import os
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from rnnlab.models import CaptioningRNN

WORDS = {word: token for token, word in enumerate(["<NULL>", "<START>", "<END>", "<UNK>", *"abcdefghij"])}


def new_model(seed: int) -> CaptioningRNN:
    """A model that attends."""
    return CaptioningRNN(WORDS, 20, 16, 32, "lstm", attention="additive", word_dropout=0.2, rng=seed)


def work(seed: int, model: CaptioningRNN | None = None) -> str:
    """A hash of the losses and gradients of some batches, by a model of its own or a given one."""
    model, found = model or new_model(seed), hashlib.sha256()
    rng = np.random.default_rng(seed)
    for _ in range(20):
        features = rng.standard_normal((24, 9, 20)).astype(np.float32)
        captions = np.full((24, 12), WORDS["<END>"])
        captions[:, 0] = WORDS["<START>"]
        captions[:, 1:-1] = rng.integers(3, len(WORDS), (24, 10))
        loss, grads = model.loss(features, captions, rng=np.random.default_rng(seed))
        found.update(np.float64(loss).tobytes() + grads.flat.tobytes())
    return found.hexdigest()


def main() -> int:
    """Compare with one thread."""
    seeds = range(4)
    alone = [work(seed) for seed in seeds]
    shared = new_model(0)
    alone_by_one_model = [work(seed, shared) for seed in seeds]
    same = {}
    with ThreadPoolExecutor(len(seeds)) as threads:
        same["a model for each thread"] = list(threads.map(work, seeds)) == alone
        found = list(threads.map(lambda seed: work(seed, shared), seeds))
        same["one model for all threads"] = found == alone_by_one_model
    sys.stdout.flush()
    process = os.fork()
    if process == 0:
        os._exit(0 if work(0) == alone[0] else 1)
    same["after a fork"] = os.waitpid(process, 0)[1] == 0
    for name, is_same in same.items():
        print(f"{name}: {'the same bits' if is_same else 'OTHER BITS'}")
    return 0 if all(same.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
