"""An LSTM forward and backward, compared with torch.nn.LSTM.

Both sides compute the gradients of x, h0 and all weights from a given gradient of h, in float32. PyTorch runs
with the batch first, as rnnlab does, and with time first, its native layout; the faster one counts.
Both are compared with one matrix product of as many operations (``gemm.py``).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from benchmarks import gemm
from benchmarks.gpu import Plan, as_graph
from benchmarks.pytorch import DEVICES, load_lstm

Array = Any


class Sizes(NamedTuple):
    """The sizes of a batch of sequences and of a recurrent layer."""

    N: int  # sequences
    T: int  # steps
    D: int  # numbers in an input
    H: int  # hidden units
    tf32: bool = False  # on a GPU: products in TensorFloat-32


CASES = {
    f"N={N} T={T} D={D} H={H}": Sizes(N, T, D, H)
    for N, T, D, H in (
        (25, 16, 256, 512),
        (128, 16, 512, 512),
        (64, 784, 1, 128),
        (16, 300, 512, 256),
        (80, 50, 620, 1000),
        (10, 30, 512, 512),
    )
}
SIDES = ("rnnlab", "torch", "torch time-first", *gemm.SIDES)
TARGETS: dict[str, dict[str, float | None]] = {case: {"torch": 1.15, "sgemm": None} for case in CASES}
MEAN_TARGETS = {"torch": 1.25}
_GPU_CASES = {
    f"N={N} T={T} D={D} H={H}{', TF32' * tf32}": Sizes(N, T, D, H, tf32)
    for N, T, D, H in (
        (25, 16, 256, 512),
        (128, 16, 512, 512),
        (64, 784, 1, 128),
        (16, 300, 512, 256),
        (80, 50, 620, 1000),
        (256, 64, 1024, 1024),
    )
    for tf32 in (False, True)
}
_OURS_ON_GPU = (
    "rnnlab",
    "rnnlab persistent",
    "rnnlab graphs",
    "rnnlab graphs persistent",
    "rnnlab graphs tf32x3",
)
GPU = Plan(
    _GPU_CASES,
    (*_OURS_ON_GPU, "torch", "torch time-first"),
    {case: {"torch": 1.0} for case in _GPU_CASES},
)


def arrays(sizes: Sizes, gates: int) -> tuple[Array, ...]:
    """x (N, T, D), h0 (N, H), Wx (D, gates H), Wh (H, gates H), b (gates H,), dh (N, T, H)."""
    N, T, D, H, _ = sizes
    rng = np.random.default_rng(0)
    shapes = (N, T, D), (N, H), (D, gates * H), (H, gates * H), (gates * H,), (N, T, H)
    scales = 1, 0.5, D**-0.5, H**-0.5, 0.1, 1
    return tuple(
        (scale * rng.standard_normal(shape)).astype(np.float32)
        for shape, scale in zip(shapes, scales, strict=True)
    )


def flops(sizes: Sizes, gates: int) -> int:
    """The floating-point operations of the products: forward, and gradients of inputs and weights."""
    N, T, D, H, _ = sizes
    return 3 * 2 * N * T * (D + H) * gates * H


def prepare(side: str, sizes: Sizes, device: str = "cpu") -> Callable[[], Any]:
    """Return dx, dh0 and the gradients of the parameters, in the side's own layout."""
    if side in gemm.SIDES:
        return gemm.prepare(side, flops(sizes, 4))
    x, h0, Wx, Wh, b, dh = arrays(sizes, 4)
    if side.startswith("rnnlab"):
        ways = {"grid", "block"} & set(side.split())
        os.environ["RNNLAB_PERSISTENT"] = ways.pop() if ways else str(int("persistent" in side))
        from rnnlab.layers import lstm_backward, lstm_forward
        from rnnlab.ops import ops_on

        x, h0, Wx, Wh, b, dh = map(ops_on(device).asarray, (x, h0, Wx, Wh, b, dh))

        def ours() -> tuple[Array, ...]:
            return lstm_backward(dh, lstm_forward(x, h0, Wx, Wh, b)[1])

        return as_graph(ours) if "graphs" in side else ours

    import torch

    module = load_lstm(torch.nn.LSTM(sizes.D, sizes.H, batch_first=side == "torch"), Wx, Wh, b)
    module.to(DEVICES[device])
    if side == "torch time-first":
        x, dh = (np.ascontiguousarray(array.swapaxes(0, 1)) for array in (x, dh))
    inputs, first, dout = (torch.from_numpy(array).to(DEVICES[device]) for array in (x, h0[None], dh))
    learnt = [parameter for parameter in module.parameters() if parameter.requires_grad]
    leaves, zeros = [inputs.requires_grad_(), first.requires_grad_(), *learnt], torch.zeros_like(first)

    def work() -> tuple[Array, ...]:
        return torch.autograd.grad(module(inputs, (first, zeros))[0], leaves, dout)

    return work
