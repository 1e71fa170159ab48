"""GRU, simplified GRU and vanilla RNN, forward and backward, and the same cells in PyTorch's operations.

PyTorch's cells are a loop over the steps, with the product of the inputs computed before it, and autograd.
The vanilla RNN is also compared with torch.nn.RNN. torch.nn.GRU is a different cell: its reset gate acts
after the product.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import gemm, lstm
from benchmarks.pytorch import load

Array = Any

GATES = {"GRU": 3, "simplified GRU": 2, "RNN": 1}
CASES = {f"{cell}: {case}": (cell, sizes) for cell in GATES for case, sizes in lstm.CASES.items()}
SIDES = ("rnnlab", "torch", "torch time-first", "nn.RNN", "nn.RNN time-first", *gemm.SIDES)
MEAN_TARGETS = {"torch": 1.5, "nn.RNN": 1.15}
TARGETS: dict[str, dict[str, float | None]] = {
    case: {"torch": 1.5, **({"nn.RNN": 1.15} if cell == "RNN" else {}), "sgemm": None}
    for case, (cell, _) in CASES.items()
}


def prepare(side: str, case: tuple[str, lstm.Sizes]) -> Callable[[], Any]:
    """Return dx, dh0, dWx, dWh and db, in the side's own layout."""
    cell, sizes = case
    if side in gemm.SIDES:
        return gemm.prepare(side, lstm.flops(sizes, GATES[cell]))
    x, h0, Wx, Wh, b, dh = lstm.arrays(sizes, GATES[cell])
    if side == "rnnlab":
        from rnnlab import layers

        name = cell.lower().replace(" ", "_")
        forward, backward = getattr(layers, f"{name}_forward"), getattr(layers, f"{name}_backward")
        return lambda: backward(dh, forward(x, h0, Wx, Wh, b)[1])

    import torch

    time_axis = 0 if side.endswith("time-first") else 1
    if time_axis == 0:
        x, dh = (np.ascontiguousarray(array.swapaxes(0, 1)) for array in (x, dh))
    inputs, first, weights, recurrent, bias, dout = map(torch.from_numpy, (x, h0, Wx, Wh, b, dh))
    leaves = [leaf.requires_grad_() for leaf in (inputs, first, weights, recurrent, bias)]
    if side.startswith("nn.RNN"):
        module = load(torch.nn.RNN(sizes.D, sizes.H, batch_first=time_axis == 1), Wx, Wh, b, np.zeros_like(b))
        leaves[2:] = module.parameters()
        return lambda: torch.autograd.grad(module(inputs, first[None])[0], leaves, dout)
    run = {"GRU": _gru, "simplified GRU": _simplified_gru, "RNN": _rnn}[cell]

    def work() -> tuple[Array, ...]:
        products = torch.addmm(bias, inputs.flatten(0, 1), weights).unflatten(0, inputs.shape[:2])
        states = run(products, first.to(products.dtype), recurrent, time_axis)  # bfloat16 in autocast
        return torch.autograd.grad(torch.stack(states, time_axis).to(dout.dtype), leaves, dout)

    return work


def _gru(products: Array, h: Array, Wh: Array, time_axis: int) -> list[Array]:
    import torch

    H = h.shape[1]
    Wh_gates, Wh_candidate = Wh.split([2 * H, H], 1)
    parts = (part.unbind(time_axis) for part in products.split([2 * H, H], 2))
    states = []
    for gates, candidate in zip(*parts, strict=True):
        z, r = torch.sigmoid(torch.addmm(gates, h, Wh_gates)).chunk(2, 1)
        g = torch.tanh(torch.addmm(candidate, r * h, Wh_candidate))
        h = torch.lerp(g, h, z)  # (1 - z) g + z h
        states.append(h)
    return states


def _simplified_gru(products: Array, h: Array, Wh: Array, time_axis: int) -> list[Array]:
    import torch

    states = []
    for product in products.unbind(time_axis):
        z, g = torch.addmm(product, h, Wh).chunk(2, 1)
        h = torch.lerp(torch.tanh(g), h, torch.sigmoid(z))
        states.append(h)
    return states


def _rnn(products: Array, h: Array, Wh: Array, time_axis: int) -> list[Array]:
    import torch

    states = []
    for product in products.unbind(time_axis):
        h = torch.tanh(torch.addmm(product, h, Wh))
        states.append(h)
    return states
