"""One training step of a language model on a window of running text, Adam included, and the same in PyTorch.

Each step begins at the state at the end of the step before. Dropout is on words, between layers, and on the
hidden states that are scored; every token is scored. PyTorch has batches first or time first, always with
fused Adam, and the faster one counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from benchmarks.pytorch import load, load_lstm

Array = Any


class Sizes(NamedTuple):
    """The sizes of a case."""

    N: int  # streams
    T: int  # words of a window
    W: int  # numbers in a word vector
    H: int  # units of each layer
    V: int  # words
    layers: int = 1


CASES = {
    "characters N=64 T=64 H=256 V=100": Sizes(64, 64, 64, 256, 100),
    "words N=20 T=35 H=200 V=10000, 2 layers": Sizes(20, 35, 200, 200, 10000, 2),
    "words N=20 T=35 H=650 V=10000, 2 layers": Sizes(20, 35, 650, 650, 10000, 2),
}
SIDES = ("rnnlab", "torch", "torch time-first")
TARGETS = {case: {"torch": 1.0} for case in CASES}
MEAN_TARGETS = {"torch": 1.0}
DROPOUT = 0.2


def prepare(side: str, sizes: Sizes) -> Callable[[], float]:
    """The training step of one side; it returns the loss per token."""
    window = np.random.default_rng(0).integers(4, sizes.V, (sizes.N, sizes.T + 1))
    if side == "rnnlab":
        return _training_step(model(sizes), window)
    return _torch_training_step(sizes, window, time_first=side.endswith("time-first"))


def weights(sizes: Sizes) -> dict[str, Array]:
    """The parameters of the model by name."""
    shapes = {"W_embed": (sizes.V, sizes.W)}
    for prefix, D in zip(_layers(sizes), (sizes.W, *[sizes.H] * (sizes.layers - 1)), strict=True):
        gates = 4 * sizes.H
        shapes |= {f"{prefix}Wx": (D, gates), f"{prefix}Wh": (sizes.H, gates), f"{prefix}b": (gates,)}
    shapes |= {"W_vocab": (sizes.H, sizes.V), "b_vocab": (sizes.V,)}
    rng = np.random.default_rng(1)
    return {name: rng.uniform(-0.08, 0.08, shape).astype(np.float32) for name, shape in shapes.items()}


def _layers(sizes: Sizes) -> list[str]:
    """The prefixes of the names of each layer's parameters."""
    return [f"layer{layer}_" for layer in range(1, sizes.layers + 1)] if sizes.layers > 1 else [""]


def model(sizes: Sizes) -> Any:
    """A :class:`rnnlab.models.LanguageModel` with these weights."""
    from rnnlab.models import LanguageModel

    words = ["<NULL>", "<START>", "<END>", "<UNK>", *map(str, range(4, sizes.V))]
    made = LanguageModel(
        {word: index for index, word in enumerate(words)},
        sizes.W,
        sizes.H,
        "lstm",
        decoder_layers=sizes.layers,
        word_dropout=DROPOUT,
        layer_dropout=DROPOUT if sizes.layers > 1 else 0.0,
        output_dropout=DROPOUT,
    )
    made.params.update(weights(sizes))
    return made


def _training_step(model: Any, window: Array) -> Callable[[], float]:
    from rnnlab.training import gradient_norm, make_update_rule

    rule, rng, grads, state = make_update_rule("adam"), np.random.default_rng(0), None, None

    def step() -> float:
        nonlocal grads, state
        loss, grads, state = model.loss(window, state=state, return_state=True, rng=rng, grads=grads)
        gradient_norm(grads)  # the solver computes it to detect numbers that are not finite
        rule.step(model.params.flat, grads.flat)
        return loss

    return step


def _torch_training_step(sizes: Sizes, window: Array, *, time_first: bool) -> Callable[[], float]:
    import torch
    from torch import nn
    from torch.nn.functional import cross_entropy, dropout

    torch.manual_seed(0)
    own = weights(sizes)
    of_layers = [own[f"{prefix}{name}"] for prefix in _layers(sizes) for name in ("Wx", "Wh", "b")]
    dropped = DROPOUT if sizes.layers > 1 else 0.0
    lstm = nn.LSTM(sizes.W, sizes.H, sizes.layers, batch_first=not time_first, dropout=dropped)
    parts = nn.ModuleDict(
        {
            "embedding": load(nn.Embedding(sizes.V, sizes.W), own["W_embed"].T),
            "lstm": load_lstm(lstm, *of_layers),
            "output": load(nn.Linear(sizes.H, sizes.V), own["W_vocab"], own["b_vocab"]),
        }
    )
    adam = torch.optim.Adam(parts.parameters(), fused=True)
    tokens = torch.from_numpy(window.T.copy() if time_first else window)
    inputs, targets = (tokens[:-1], tokens[1:]) if time_first else (tokens[:, :-1], tokens[:, 1:])
    state = None

    def step() -> float:
        nonlocal state
        adam.zero_grad()
        words = dropout(parts["embedding"](inputs), DROPOUT)
        hidden, after = parts["lstm"](words, state)
        scores = parts["output"](dropout(hidden, DROPOUT))
        loss = cross_entropy(scores.flatten(0, 1), targets.flatten())
        loss.backward()
        adam.step()
        state = tuple(each.detach() for each in after)
        return loss.item()

    return step
