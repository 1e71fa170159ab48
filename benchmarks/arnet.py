"""A training step with ARNet, compared with a step without ARNet plus a separate LSTM with a projection.

The model is that of ``captioning``. The LSTM has as many units as ARNet and reads as many states in as
many real steps, forward and backward; its states are projected at real steps only. This is the minimum that
ARNet has to compute. ARNet also packs targets, adds gradients to states, and has parameters that Adam
updates. A ratio of 0.87 is 1.15 times the time.

On a GPU it is compared with the same step in PyTorch, whose ARNet is another nn.LSTM.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from benchmarks import captioning
from benchmarks.attention import draw
from benchmarks.gpu import Plan
from benchmarks.pytorch import load, load_lstm
from benchmarks.steps import training_step

Array = Any


class Sizes(NamedTuple):
    """The sizes of a case."""

    R: int  # units of ARNet
    captions: captioning.Sizes  # all other sizes


CASES = {
    f"{name} R={R}": Sizes(R, captioning.CASES[name])
    for name, R in (
        ("flickr8k N=64 T=21 H=512 V=2541", 512),
        ("N=25 T=16 H=512 V=1004", 512),
        ("N=128 T=16 H=512 V=10516", 512),
        ("N=128 T=16 H=512 V=10516", 128),
    )
}
SIDES = ("rnnlab", "predicted")
TARGETS = {case: {"predicted": 1 / 1.15} for case in CASES}
GPU = Plan(
    CASES,
    ("rnnlab", "rnnlab graphs", "rnnlab graphs tf32x3", "torch", "torch packed"),
    {case: {"torch": 3.0} for case in CASES},
)
RECONSTRUCTION = 0.01


def prepare(side: str, sizes: Sizes, device: str = "cpu") -> Callable[[], object]:
    """The step with ARNet, or the step without ARNet together with the separate LSTM."""
    features, captions = captioning.batch(sizes.captions)
    if side.startswith("torch"):
        return _torch(side, sizes, features, captions, device)
    ours = side.startswith("rnnlab")
    options = {"reconstruction": RECONSTRUCTION, "reconstructor_dim": sizes.R} if ours else {}
    model = captioning.model(sizes.captions, captioning.weights(sizes.captions), **options)
    step = training_step(model, features, captions, device=device, graphs="graphs" in side)
    if ours:
        return step
    alone = lstm_with_projection(sizes, captions)

    def both() -> object:
        alone()
        return step()

    return both


def lstm_with_projection(sizes: Sizes, captions: Array) -> Callable[[], dict[str, Array]]:
    """Forward and backward of an LSTM over states of H numbers, and of a linear map of its states."""
    from rnnlab.layers import affine_backward, affine_forward, lstm_backward, lstm_forward

    (N, T, _, _, H, *_), R = sizes.captions, sizes.R
    p = draw({"Wx": (H, 4 * R), "Wh": (R, 4 * R), "b": (4 * R,), "W": (R, H), "b_out": (H,)})
    lengths = (captions[:, 1:] != 0).sum(axis=1)
    T = int(lengths.max())
    x = np.random.default_rng(3).standard_normal((N, T, H), np.float32)
    real, zeros = np.arange(T) < lengths[:, None], np.zeros((N, R), np.float32)

    def work() -> dict[str, Array]:
        h, lstm = lstm_forward(x, zeros, p["Wx"], p["Wh"], p["b"], lengths=lengths)
        out, projection = affine_forward(h[real], p["W"], p["b_out"])
        dread, dW, db_out = affine_backward(out, projection)
        dh = np.zeros_like(h)
        dh[real] = dread
        dx, _, dWx, dWh, db = lstm_backward(dh, lstm)
        return {"x": dx, "Wx": dWx, "Wh": dWh, "b": db, "W": dW, "b_out": db_out}

    return work


def _torch(side: str, sizes: Sizes, features: Array, captions: Array, device: str) -> Callable[[], float]:
    """PyTorch's step, with our weights."""
    import torch
    from torch import nn
    from torch.nn.utils.rnn import PackedSequence, pad_packed_sequence

    (N, _, _, _, H, *_), R = sizes.captions, sizes.R
    weights = captioning.weights(sizes.captions)
    made = captioning.model(sizes.captions, weights, reconstruction=RECONSTRUCTION, reconstructor_dim=R)
    Wx, Wh, b, W, b_out = (made.params[f"arnet_{name}"] for name in ("Wx", "Wh", "b", "W", "b_out"))
    parts = captioning.modules(sizes.captions, weights)
    parts["arnet"] = load_lstm(nn.LSTM(H, R, batch_first=True), Wx, Wh, b)
    parts["reconstruct"] = load(nn.Linear(R, H), W, b_out)

    def reconstruction(hidden: Array, h0: Array, real: Callable[[Array], Array]) -> Array:
        padded = hidden
        if isinstance(hidden, PackedSequence):
            padded, _ = pad_packed_sequence(hidden, batch_first=True)
        before = torch.cat([h0[:, None], padded[:, :-1]], 1)
        errors = parts["reconstruct"](real(parts["arnet"](hidden)[0])) - real(before)
        return RECONSTRUCTION / N * errors.square().sum()

    return captioning.torch_training_step(
        side, sizes.captions, features, captions, device, parts, reconstruction
    )
