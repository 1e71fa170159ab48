"""One training step of a captioning model with attention to regions, Adam included, and the same in PyTorch.

The model is that of ``flickr8k_soft_attention.toml``: additive scores, the mean region as the initial state,
deep output, the doubly stochastic loss, and dropout. PyTorch has a loop over the steps. Its cell is written
in elementary operations or is nn.LSTMCell or nn.GRUCell, always with fused Adam; the faster one counts.
nn.GRUCell differs from our cell: its reset gate acts after the product.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from benchmarks import captioning
from benchmarks.gpu import Plan
from benchmarks.steps import training_step

Array = Any


class Sizes(NamedTuple):
    """The sizes of a case."""

    cell: str  # cell of the decoder
    L: int  # regions
    A: int  # units of the scores
    captions: captioning.Sizes  # all other sizes; D is the size of a region's vector


CAPTIONS = captioning.Sizes(64, 21, 256, 512, 512, 2541, 10.8, 3.8, 2, 20)
CASES = {
    f"{cell.upper()}, N=64 T=21 L=49 H=512 V=2541": Sizes(cell, 49, 512, CAPTIONS) for cell in ("lstm", "gru")
}
SIDES = ("rnnlab", "torch", "torch nn")
TARGETS = {case: {"torch": 1.5} for case in CASES}
GPU = Plan(CASES, (*SIDES, "rnnlab graphs", "rnnlab graphs tf32x3"), {case: {"torch": 3.0} for case in CASES})
DROPOUT = {"feature_dropout": 0.4, "word_dropout": 0.5, "output_dropout": 0.5}
DOUBLY_STOCHASTIC = 2e-4


def prepare(side: str, sizes: Sizes, device: str = "cpu") -> Callable[[], float]:
    """The training step of one side; it returns the loss."""
    features, captions = batch(sizes)
    if side.startswith("rnnlab"):
        graphs = "graphs" in side
        return training_step(model(sizes, weights(sizes)), features, captions, device=device, graphs=graphs)
    from benchmarks import torch_attention

    rival = torch_model(sizes, weights(sizes), in_operations=side == "torch")
    return torch_attention.training_step(rival, features, captions, device=device)


def batch(sizes: Sizes) -> tuple[Array, Array]:
    """Features (N, L, D), and captions (N, T + 1) as in ``captioning``."""
    N, D = sizes.captions.N, sizes.captions.D
    features = np.random.default_rng(2).standard_normal((N, sizes.L, D), np.float32)
    return features, captioning.batch(sizes.captions)[1]


def weights(sizes: Sizes) -> dict[str, Array]:
    """The parameters of the model by name."""
    D, W, H, V = (getattr(sizes.captions, letter) for letter in "DWHV")
    shapes = decoder_shapes(gates={"lstm": 4, "gru": 3}[sizes.cell], W=W, H=H, C=D, A=sizes.A, V=V)
    for key in ("_proj", "_proj_c") if sizes.cell == "lstm" else ("_proj",):
        shapes |= {f"W{key}": (D, H), f"b{key}": (H,)}
    return draw(shapes)


def decoder_shapes(*, gates: int, W: int, H: int, C: int, A: int, V: int) -> dict[str, tuple[int, ...]]:
    """The shapes of the parameters of embedding, decoder and output, for a memory of vectors of C numbers."""
    G = gates * H
    cell = {"Wx": (W, G), "Wh": (H, G), "b": (G,), "Wz": (C, G)}
    scores = {"source_Wq": (H, A), "source_Wm": (C, A), "source_b": (A,), "source_v": (A,)}
    output = {"W_deep_h": (H, W), "b_deep": (W,), "W_deep_z": (C, W), "W_vocab": (W, V), "b_vocab": (V,)}
    return {"W_embed": (V, W), **cell, **scores, **output}


def draw(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Array]:
    """Random parameters of these shapes."""
    rng = np.random.default_rng(1)
    return {name: rng.uniform(-0.08, 0.08, shape).astype(np.float32) for name, shape in shapes.items()}


def vocabulary(V: int) -> dict[str, int]:
    """A vocabulary of V words."""
    words = ["<NULL>", "<START>", "<END>", "<UNK>", *map(str, range(4, V))]
    return {word: index for index, word in enumerate(words)}


def model(sizes: Sizes, weights: dict[str, Array]) -> Any:
    """A :class:`rnnlab.models.CaptioningRNN` with these weights."""
    from rnnlab.models import CaptioningRNN

    made = CaptioningRNN(
        vocabulary(sizes.captions.V),
        sizes.captions.D,
        sizes.captions.W,
        sizes.captions.H,
        sizes.cell,
        state_activation="tanh",
        project_cell=sizes.cell == "lstm",
        attention="additive",
        attention_dim=sizes.A,
        output="deep",
        doubly_stochastic=DOUBLY_STOCHASTIC,
        **DROPOUT,
    )
    made.params.update(weights)
    return made


def torch_model(sizes: Sizes, weights: dict[str, Array], *, in_operations: bool = True) -> Any:
    """The same model in PyTorch, whose cell is written in elementary operations or is a module."""
    import torch

    from benchmarks.torch_attention import GRU, LSTM, Captioner, NNCell

    torch.manual_seed(0)
    cell = {"lstm": LSTM, "gru": GRU}[sizes.cell] if in_operations else NNCell
    return Captioner(weights, cell(weights), doubly_stochastic=DOUBLY_STOCHASTIC, **DROPOUT)
