"""Gradients of saturated units in float32, beside PyTorch's."""

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("threadpoolctl")

from rnnlab import layers
from rnnlab.gradcheck.numeric import relative_distance

N, T, D, H = 8, 6, 10, 16
GATES = {"rnn": 1, "lstm": 4, "gru": 3, "simplified_gru": 2}


def inputs(cell, size, rng):
    weights = [rng.standard_normal(shape) for shape in ((N, T, D), (N, H), (D, GATES[cell] * H))]
    weights += [rng.standard_normal((H, GATES[cell] * H)) / np.sqrt(H), np.zeros(GATES[cell] * H)]
    weights[0] *= size
    return weights, rng.standard_normal((N, T, H))


def gradients(cell, arrays, dh, dtype):
    forward, backward = (getattr(layers, f"{cell}_{way}") for way in ("forward", "backward"))
    _, cache = forward(*(array.astype(dtype) for array in arrays))
    return backward(dh.astype(dtype), cache)


def errors(actual, expected):
    return max(relative_distance(a, e) for a, e in zip(actual, expected, strict=True))


@pytest.mark.parametrize("size", [10, 1e3])
@pytest.mark.parametrize("cell", GATES)
def test_against_float64(cell, size, rng):
    arrays, dh = inputs(cell, size, rng)
    exact = gradients(cell, arrays, dh, np.float64)
    assert errors(gradients(cell, arrays, dh, np.float32), exact) < 2e-3


@pytest.mark.parametrize("size", [10, 1e3])
@pytest.mark.parametrize("cell", ["rnn", "lstm"])
def test_beside_torch(cell, size, rng):
    torch = pytest.importorskip("torch")
    arrays, dh = inputs(cell, size, rng)
    exact = gradients(cell, arrays, dh, np.float64)
    x, h0, wx, wh, b = (torch.tensor(array.astype(np.float32), requires_grad=True) for array in arrays)
    h, c, outs = h0, torch.zeros_like(h0), []
    for t in range(T):
        a = x[:, t] @ wx + h @ wh + b
        if cell == "rnn":
            h = torch.tanh(a)
        else:
            i, f, o, g = a.split(H, dim=1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        outs.append(h)
    torch.stack(outs, 1).backward(torch.tensor(dh.astype(np.float32)))
    theirs = errors([each.grad.numpy() for each in (x, h0, wx, wh, b)], exact)
    ours = errors(gradients(cell, arrays, dh, np.float32), exact)
    assert ours < 2 * theirs + 1e-5, (ours, theirs)
