"""Sentence pairs that a small model learns in seconds: letters, and their capitals in reverse order."""

from pathlib import Path

import numpy as np

LETTERS = "abcdefgh"

RECIPE = """
[data]
kind = "parallel"
directory = "{directory}"
source = "src"
target = "trg"
tokenizer = "spaces"
[model]
wordvec_dim = 12
hidden_dim = 16
word_dropout = 0.1
[training]
num_epochs = 2
batch_size = 16
optim_config.learning_rate = 1e-2
[decoding]
beam_size = 2
max_length = 8
[evaluation]
split = "val"
"""


def reversing(rng, count, longest=6):
    """Sentences of letters, and the same from the last letter to the first, in capitals."""
    sources = [list(rng.choice(list(LETTERS), rng.integers(2, longest + 1))) for _ in range(count)]
    return [(source, [letter.upper() for letter in reversed(source)]) for source in sources]


def write_letters(folder: Path) -> None:
    """Parallel text of three splits."""
    rng = np.random.default_rng(1)
    for split, count in (("train", 120), ("val", 20), ("test_small", 9)):
        pairs = reversing(rng, count)
        for ending, side in (("src", 0), ("trg", 1)):
            lines = [" ".join(pair[side]) for pair in pairs]
            (folder / f"{split}.{ending}").write_text("\n".join(lines) + "\n")
