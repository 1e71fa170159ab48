"""One training step of the captioning model, Adam included, and the same in PyTorch.

The image is the initial state, h0 and c0 = tanh of linear maps; dropout on features, words and hidden states;
the loss is over real tokens only. PyTorch runs it in the two ways that people write it, with padding and with
packed sequences, always with fused Adam, and the faster one counts.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

SIDES = ("rnnlab", "torch", "torch packed")


class Shapes(NamedTuple):
    """The sizes of a case, and the numbers of words in its captions."""

    N: int  # captions in a batch
    T: int  # the most tokens that are read
    D: int  # numbers in a feature vector
    W: int  # numbers in a word vector
    H: int  # hidden units
    V: int  # words
    mean: float  # words in a caption: mean,
    spread: float  # standard deviation,
    least: int  # least and
    most: int  # most


CASES = {
    "flickr8k N=64 T=21 H=512 V=2541": Shapes(64, 21, 1280, 256, 512, 2541, 10.8, 3.8, 2, 20),
    "N=25 T=16 H=512 V=1004": Shapes(25, 16, 512, 256, 512, 1004, 12, 3, 8, 15),
    "N=128 T=16 H=512 V=1004": Shapes(128, 16, 512, 256, 512, 1004, 12, 3, 8, 15),
    "N=128 T=16 H=512 V=10516": Shapes(128, 16, 512, 512, 512, 10516, 12, 3, 8, 15),
}
DROPOUT = {"feature_dropout": 0.3, "word_dropout": 0.5, "output_dropout": 0.5}


def prepare(side: str, case: str) -> Callable[[], object]:
    """The step of one side."""
    shapes = CASES[case]
    rng = np.random.default_rng(0)
    features = rng.standard_normal((shapes.N, shapes.D)).astype(np.float32)
    captions = np.zeros((shapes.N, shapes.T + 1), np.int64)
    words = np.clip(rng.normal(shapes.mean, shapes.spread, shapes.N).round(), shapes.least, shapes.most)
    for caption, length in zip(captions, words.astype(int), strict=True):
        caption[: length + 2] = [1, *rng.integers(4, shapes.V, length), 2]
    if side == "rnnlab":
        return _rnnlab(shapes, features, captions)
    return _torch(shapes, features, captions, packed=side == "torch packed")


def _rnnlab(shapes: Shapes, features: np.ndarray, captions: np.ndarray) -> Callable[[], object]:
    from rnnlab.models import CaptioningRNN
    from rnnlab.training import gradient_norm, make_update_rule

    special = ["<NULL>", "<START>", "<END>", "<UNK>"]
    vocabulary = special + [str(index) for index in range(4, shapes.V)]
    model = CaptioningRNN(
        {word: index for index, word in enumerate(vocabulary)},
        shapes.D,
        shapes.W,
        shapes.H,
        "lstm",
        state_activation="tanh",
        project_cell=True,
        **DROPOUT,
    )
    rule, grads, noise = make_update_rule("adam"), model.params.zeros_like(), np.random.default_rng(0)

    def step() -> None:
        model.loss(features, captions, rng=noise, grads=grads)
        gradient_norm(grads)  # what the solver does against numbers that are not finite
        rule.step(model.params.flat, grads.flat)

    return step


def _torch(
    shapes: Shapes, features: np.ndarray, captions: np.ndarray, *, packed: bool
) -> Callable[[], object]:
    import torch
    from torch import nn
    from torch.nn.functional import cross_entropy, dropout
    from torch.nn.utils.rnn import pack_padded_sequence

    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    torch.manual_seed(0)
    to_h, to_c = nn.Linear(shapes.D, shapes.H), nn.Linear(shapes.D, shapes.H)
    embedding, lstm = nn.Embedding(shapes.V, shapes.W), nn.LSTM(shapes.W, shapes.H, batch_first=True)
    output = nn.Linear(shapes.H, shapes.V)
    modules = nn.ModuleList([to_h, to_c, embedding, lstm, output])
    adam = torch.optim.Adam(modules.parameters(), fused=True)
    x, tokens = torch.from_numpy(features), torch.from_numpy(captions)
    inputs, targets = tokens[:, :-1], tokens[:, 1:]
    real = targets != 0
    lengths = real.sum(1)

    def step() -> None:
        adam.zero_grad()
        image = dropout(x, DROPOUT["feature_dropout"])
        state = torch.tanh(to_h(image))[None], torch.tanh(to_c(image))[None]
        words = dropout(embedding(inputs), DROPOUT["word_dropout"])
        if packed:
            options = {"batch_first": True, "enforce_sorted": False}
            hidden = lstm(pack_padded_sequence(words, lengths, **options), state)[0].data
            wanted = pack_padded_sequence(targets, lengths, **options).data
        else:
            hidden, wanted = lstm(words, state)[0][real], targets[real]
        scores = output(dropout(hidden, DROPOUT["output_dropout"]))
        loss = cross_entropy(scores, wanted, reduction="sum") / shapes.N
        loss.backward()
        adam.step()

    return step
