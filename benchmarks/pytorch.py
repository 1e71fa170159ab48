"""PyTorch's modules with our weights, so that both sides compute the same, and PyTorch's device names."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any

DEVICES = {"cpu": "cpu", "gpu": "cuda"}  # PyTorch's names


def load_lstm(module: Any, *weights: Array) -> Any:
    """An nn.LSTM or nn.LSTMCell with our weights: Wx, Wh and b of each layer.

    Its second bias stays zero: training both would double the learning rate of their sum.
    """
    layers = [weights[start : start + 3] for start in range(0, len(weights), 3)]
    _load(module, [_gates(array) for Wx, Wh, b in layers for array in (Wx, Wh, b, np.zeros_like(b))])
    for bias in list(module.parameters())[3::4]:
        bias.requires_grad_(False)
    return module


def load(module: Any, *arrays: Array) -> Any:
    """Another module with our weights, given in the order of its parameters."""
    return _load(module, arrays)


def _load(module: Any, arrays: Any) -> Any:
    import torch

    with torch.no_grad():
        for parameter, array in zip(module.parameters(), arrays, strict=True):
            parameter.copy_(torch.from_numpy(array.T))
    return module


def _gates(array: Array) -> Array:
    """From i, f, o, g along the last axis to PyTorch's i, f, g, o."""
    i, f, o, g = np.split(array, 4, axis=-1)
    return np.concatenate([i, f, g, o], axis=-1)
