"""Lines of text that a small language model learns in seconds: runs of the alphabet, such as ``c d e f``."""

from pathlib import Path

import numpy as np

LETTERS = "abcdefghij"

RECIPE = """
[data]
kind = "text"
train = "{directory}/train.txt"
val = "{directory}/val.txt"
tokenizer = "spaces"
[model]
cell_type = "gru"
wordvec_dim = 12
hidden_dim = 16
[training]
num_epochs = 4
batch_size = 16
optim_config.learning_rate = 2e-2
[decoding]
method = "sample"
max_length = 12
[evaluation]
split = "val"
"""


def write_lines(folder: Path, end: str = " ") -> None:
    """Text files of two splits, with ``end`` between two letters."""
    rng = np.random.default_rng(1)
    for split, count in (("train", 160), ("val", 20)):
        starts = rng.integers(0, 5, count)
        lines = [end.join(LETTERS[start : start + rng.integers(2, 6)]) for start in starts]
        (folder / f"{split}.txt").write_text("\n".join(lines) + "\n")
