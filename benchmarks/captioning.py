"""One training step of the captioning model, Adam included, and the same in PyTorch.

The image is the initial state, h0 and c0 = tanh of linear maps; dropout on features, words and hidden states;
the loss is over real tokens only. PyTorch runs it in the two usual ways, with padding and with packed
sequences, always with fused Adam, and the faster one counts; on a GPU also with torch.compile. On a GPU
rnnlab runs launch by launch and as a CUDA graph, and the faster one counts.

Both are compared with one matrix product of as many operations as all products of the step (``gemm.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from benchmarks import gemm
from benchmarks.gpu import Plan
from benchmarks.pytorch import DEVICES, load, load_lstm
from benchmarks.steps import training_step

Array = Any


class Sizes(NamedTuple):
    """The sizes of a case, and the numbers of words in its captions."""

    N: int  # captions in a batch
    T: int  # maximum number of input tokens: <START> and the words
    D: int  # numbers in a feature vector
    W: int  # numbers in a word vector
    H: int  # hidden units
    V: int  # words
    mean: float = 12  # words in a caption: mean,
    spread: float = 3  # standard deviation,
    least: int = 8  # minimum and
    most: int = 15  # maximum; <END> comes after them


CASES = {
    "flickr8k N=64 T=21 H=512 V=2541": Sizes(64, 21, 1280, 256, 512, 2541, 10.8, 3.8, 2, 20),
    "N=25 T=16 H=512 V=1004": Sizes(25, 16, 512, 256, 512, 1004),
    "N=128 T=16 H=512 V=1004": Sizes(128, 16, 512, 256, 512, 1004),
    "N=128 T=16 H=512 V=10516": Sizes(128, 16, 512, 512, 512, 10516),
}
SIDES = ("rnnlab", "torch", "torch packed", *gemm.SIDES)
TARGETS = {
    "flickr8k N=64 T=21 H=512 V=2541": {"torch": 1.2},
    "N=25 T=16 H=512 V=1004": {"torch": 1.2},
    "N=128 T=16 H=512 V=1004": {"torch": 1.2, "sgemm": 0.75},
    "N=128 T=16 H=512 V=10516": {"torch": 1.4, "sgemm": 0.75},
}
MEAN_TARGETS = {"torch": 1.2}
GPU = Plan(
    CASES,
    ("rnnlab", "rnnlab graphs", "rnnlab graphs tf32x3", "torch", "torch packed", "torch.compile"),
    {case: {"torch": 1.5, "torch.compile": 1.0} for case in CASES},
)
DROPOUT = {"feature_dropout": 0.3, "word_dropout": 0.5, "output_dropout": 0.5}


def prepare(side: str, sizes: Sizes, device: str = "cpu") -> Callable[[], object]:
    """The training step of one side, which returns the loss, or the matrix product."""
    features, captions = batch(sizes)
    if side.startswith("rnnlab"):
        graphs = "graphs" in side
        return training_step(model(sizes, weights(sizes)), features, captions, device=device, graphs=graphs)
    if side.startswith("torch"):
        return torch_training_step(side, sizes, features, captions, device)
    return gemm.prepare(side, flops(sizes, captions))


def batch(sizes: Sizes) -> tuple[Array, Array]:
    """Features (N, D), and captions (N, T + 1) with <START>, the words and <END>."""
    rng = np.random.default_rng(0)
    features = rng.standard_normal((sizes.N, sizes.D)).astype(np.float32)
    captions = np.zeros((sizes.N, sizes.T + 1), np.int64)
    words = np.clip(rng.normal(sizes.mean, sizes.spread, sizes.N).round(), sizes.least, sizes.most)
    for caption, length in zip(captions, words.astype(int), strict=True):
        caption[: length + 2] = [1, *rng.integers(4, sizes.V, length), 2]
    return features, captions


def weights(sizes: Sizes) -> dict[str, Array]:
    """The parameters of the model by name."""
    D, W, H, V = sizes.D, sizes.W, sizes.H, sizes.V
    shapes = {"W_proj": (D, H), "b_proj": (H,), "W_proj_c": (D, H), "b_proj_c": (H,), "W_embed": (V, W)}
    shapes |= {"Wx": (W, 4 * H), "Wh": (H, 4 * H), "b": (4 * H,), "W_vocab": (H, V), "b_vocab": (V,)}
    rng = np.random.default_rng(1)
    return {name: rng.uniform(-0.08, 0.08, shape).astype(np.float32) for name, shape in shapes.items()}


def flops(sizes: Sizes, captions: Array) -> int:
    """The floating-point operations of the products of a step, forward and backward, over real tokens only.

    A product (m, k) (k, n) has 2 m k n. A backward has two such products, but the features need no gradient.
    """
    tokens = int((captions[:, 1:] != 0).sum())
    D, W, H, V = sizes.D, sizes.W, sizes.H, sizes.V
    image, lstm, output = 2 * sizes.N * D * H, tokens * (W + H) * 4 * H, tokens * H * V
    return 2 * (2 * image + 3 * lstm + 3 * output)


def model(sizes: Sizes, weights: dict[str, Array], **options: Any) -> Any:
    """A :class:`rnnlab.models.CaptioningRNN` with these weights and further options."""
    from rnnlab.models import CaptioningRNN

    words = ["<NULL>", "<START>", "<END>", "<UNK>", *map(str, range(4, sizes.V))]
    made = CaptioningRNN(
        {word: index for index, word in enumerate(words)},
        sizes.D,
        sizes.W,
        sizes.H,
        "lstm",
        state_activation="tanh",
        project_cell=True,
        **DROPOUT,
        **options,
    )
    made.params.update(weights)
    return made


def modules(sizes: Sizes, weights: dict[str, Array]) -> Any:
    """PyTorch's modules with these weights, by name: to_h, to_c, embedding, lstm, output."""
    from torch import nn

    w = weights
    return nn.ModuleDict(
        {
            "to_h": load(nn.Linear(sizes.D, sizes.H), w["W_proj"], w["b_proj"]),
            "to_c": load(nn.Linear(sizes.D, sizes.H), w["W_proj_c"], w["b_proj_c"]),
            "embedding": load(nn.Embedding(sizes.V, sizes.W), w["W_embed"].T),
            "lstm": load_lstm(nn.LSTM(sizes.W, sizes.H, batch_first=True), w["Wx"], w["Wh"], w["b"]),
            "output": load(nn.Linear(sizes.H, sizes.V), w["W_vocab"], w["b_vocab"]),
        }
    )


def torch_training_step(
    side: str,
    sizes: Sizes,
    features: Array,
    captions: Array,
    device: str,
    parts: Any = None,
    further: Callable[..., Any] | None = None,
) -> Callable[[], float]:
    """PyTorch's step, of ``modules`` or of ``parts`` with more in them.

    Layers of the LSTM above the first start at zero. ``further(hidden, h0, real)`` returns a loss to add;
    ``hidden`` are the states as nn.LSTM returns them, padded or packed. ``real`` selects the rows of real
    steps from them and from arrays (N, T, ...), always in the same order.
    """
    import torch
    from torch.nn.functional import cross_entropy, dropout, pad
    from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

    torch.manual_seed(0)
    parts = modules(sizes, weights(sizes)) if parts is None else parts
    parts.to(DEVICES[device])
    adam = torch.optim.Adam(parts.parameters(), fused=True)
    lengths = torch.from_numpy((captions[:, 1:] != 0).sum(1))  # nn.utils.rnn needs them on the CPU
    x, tokens = (torch.from_numpy(array).to(DEVICES[device]) for array in (features, captions))
    inputs, targets = tokens[:, :-1], tokens[:, 1:]
    rows, steps = (targets != 0).nonzero(as_tuple=True)
    packed = side.endswith("packed")

    def pack(array: Any) -> Any:
        return pack_padded_sequence(array, lengths, batch_first=True, enforce_sorted=False)

    def real(states: Any) -> Any:
        if isinstance(states, PackedSequence):
            return states.data
        return pack(states).data if packed else states[rows, steps]

    def loss() -> Any:
        image = dropout(x, DROPOUT["feature_dropout"])
        h0, c0 = torch.tanh(parts["to_h"](image)), torch.tanh(parts["to_c"](image))
        words = dropout(parts["embedding"](inputs), DROPOUT["word_dropout"])
        start = tuple(pad(state[None], (0, 0, 0, 0, 0, parts["lstm"].num_layers - 1)) for state in (h0, c0))
        hidden = parts["lstm"](pack(words) if packed else words, start)[0]
        scores = parts["output"](dropout(real(hidden), DROPOUT["output_dropout"]))
        total = cross_entropy(scores, real(targets), reduction="sum") / sizes.N
        return total if further is None else total + further(hidden, h0, real)

    run = torch.compile(loss) if side.startswith("torch.compile") else loss

    def step() -> float:
        adam.zero_grad()
        total = run()
        total.backward()
        adam.step()
        return total.item()

    return step
