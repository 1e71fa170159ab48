"""One training step of a translation model with attention, Adam included, and the same in PyTorch.

The model is that of ``multi30k_source_attention.toml``: a bidirectional GRU reads the source, a GRU
that attends to it writes. As in ``attention``, PyTorch has our GRU in elementary operations, or nn.GRU
over packed sequences and nn.GRUCell, which differ from our cell; the faster one counts.

The lengths vary as in all of Multi30k, or as in the batches that ``rnnlab.data`` makes of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from benchmarks.attention import decoder_shapes, draw, vocabulary
from benchmarks.steps import training_step

Array = Any


class Sizes(NamedTuple):
    """The sizes of a case, and the numbers of words in its sentences."""

    N: int  # pairs in a batch
    W: int  # numbers in a word vector
    E: int  # units of each direction of the encoder
    H: int  # units of the decoder
    A: int  # units of the scores
    V_source: int  # words
    V: int  # words of the target
    mean: float = 13  # words in a sentence: mean,
    spread: float = 4  # standard deviation,
    least: int = 4  # minimum and
    most: int = 40  # maximum; <END> comes after them


MULTI30K = Sizes(64, 256, 256, 512, 256, 5900, 7700)
CASES = {
    f"multi30k N=64 H=512 V=7700, {MULTI30K.mean} ± {spread} words": MULTI30K._replace(spread=spread)
    for spread in (4, 1)
}
SIDES = ("rnnlab", "torch", "torch nn")
TARGETS = {case: {"torch": 1.5} for case in CASES}
DROPOUT = {"word_dropout": 0.3, "output_dropout": 0.5}


def prepare(side: str, sizes: Sizes) -> Callable[[], float]:
    """The training step of one side; it returns the loss."""
    pairs = batch(sizes)
    if side == "rnnlab":
        return training_step(model(sizes, weights(sizes)), *pairs)
    from benchmarks import torch_attention

    rival = torch_model(sizes, weights(sizes), in_operations=side == "torch")
    return torch_attention.training_step(rival, *pairs)


def batch(sizes: Sizes) -> tuple[Array, Array]:
    """Sources (N, L) of words and <END>, and targets (N, M) of <START>, words and <END>."""
    rng = np.random.default_rng(0)
    source, target = _sentences(rng, sizes, sizes.V_source), _sentences(rng, sizes, sizes.V)
    return source, np.concatenate([np.ones((sizes.N, 1), np.int64), target], axis=1)


def _sentences(rng: np.random.Generator, sizes: Sizes, V: int) -> Array:
    lengths = np.clip(rng.normal(sizes.mean, sizes.spread, sizes.N).round(), sizes.least, sizes.most).astype(
        int
    )
    sentences = np.zeros((sizes.N, lengths.max() + 1), np.int64)
    for sentence, length in zip(sentences, lengths, strict=True):
        sentence[: length + 1] = [*rng.integers(4, V, length), 2]
    return sentences


def weights(sizes: Sizes) -> dict[str, Array]:
    """The parameters of the model by name."""
    W, E, H = sizes.W, sizes.E, sizes.H
    shapes: dict[str, tuple[int, ...]] = {"W_source": (sizes.V_source, W)}
    for direction in ("forward", "backward"):
        cell = {"Wx": (W, 3 * E), "Wh": (E, 3 * E), "b": (3 * E,)}
        shapes |= {f"encoder_{direction}1_{name}": shape for name, shape in cell.items()}
    shapes |= {"W_init": (2 * E, H), "b_init": (H,)}
    return draw(shapes | decoder_shapes(gates=3, W=W, H=H, C=2 * E, A=sizes.A, V=sizes.V))


def model(sizes: Sizes, weights: dict[str, Array], **options: Any) -> Any:
    """A :class:`rnnlab.models.Seq2Seq` with these weights."""
    from rnnlab.models import Seq2Seq

    made = Seq2Seq(
        vocabulary(sizes.V_source),
        vocabulary(sizes.V),
        sizes.W,
        sizes.H,
        "gru",
        encoder_dim=sizes.E,
        attention="additive",
        attention_dim=sizes.A,
        output="deep",
        **DROPOUT,
        **options,
    )
    made.params.update(weights)
    return made


def torch_model(sizes: Sizes, weights: dict[str, Array], *, in_operations: bool = True) -> Any:
    """The same model in PyTorch, whose GRUs are written in elementary operations or are modules."""
    import torch

    from benchmarks.torch_attention import GRU, NNCell, Translator

    torch.manual_seed(0)
    return Translator(weights, (GRU if in_operations else NNCell)(weights), **DROPOUT)
