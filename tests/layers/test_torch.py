"""Layers against PyTorch: the same forward and the same gradients from the same numbers."""

import numpy as np
import pytest

from rnnlab import layers

from .reference import CELLS, as_tuple, assert_close

torch = pytest.importorskip("torch")

GATES = {"rnn": [0], "lstm": [0, 1, 3, 2]}  # PyTorch's order is i, f, g, o; it is its own inverse
lengths_or_none = pytest.mark.parametrize("lengths", [None, [3, 5, 1, 5]], ids=["full", "prepacked"])


def tensor(array, **options):
    return torch.tensor(array, dtype=torch.float64, **options)


def gradients_in_torch(function, inputs, *douts):
    """The outputs of a PyTorch function, and the gradients of sum(out * dout) by the inputs' names."""
    leaves = {name: tensor(array, requires_grad=True) for name, array in inputs.items()}
    outs = as_tuple(function(**leaves))
    sum((out * tensor(dout)).sum() for out, dout in zip(outs, douts, strict=True)).backward()
    return [out.detach().numpy() for out in outs], {name: leaf.grad.numpy() for name, leaf in leaves.items()}


def torch_recurrent(name, Wx, Wh, b):
    """A module whose parameters are ours in PyTorch's layout, and how to bring a gradient back."""
    D, H = Wx.shape[0], Wh.shape[0]
    module = {"rnn": torch.nn.RNN, "lstm": torch.nn.LSTM}[name](D, H, batch_first=True).double()

    def reordered(array):  # along the last axis, gate by gate
        parts = np.split(array, len(GATES[name]), axis=-1)
        return np.concatenate([parts[k] for k in GATES[name]], axis=-1)

    with torch.no_grad():
        module.weight_ih_l0.copy_(tensor(reordered(Wx).T))
        module.weight_hh_l0.copy_(tensor(reordered(Wh).T))
        module.bias_ih_l0.copy_(tensor(reordered(b)))
        module.bias_hh_l0.zero_()
    return module, reordered


@pytest.mark.parametrize("cell", CELLS[:2], ids=["rnn", "lstm"])
@lengths_or_none
def test_recurrent_cells(cell, lengths, rng):
    N, T = 4, 5
    inputs = cell.inputs(rng, N, T)
    h, *finals, cache = cell.forward(
        **inputs, lengths=None if lengths is None else np.array(lengths), return_state=True
    )
    real = np.ones((N, T, 1)) if lengths is None else np.arange(T)[:, None] < np.reshape(lengths, (N, 1, 1))
    dh = rng.standard_normal(h.shape) * real  # past the end PyTorch has zeros, rnnlab the last state
    dfinals = [rng.standard_normal(final.shape) for final in finals]
    grads = dict(zip(inputs, cell.backward_all(dh, *dfinals, cache), strict=True))

    module, reordered = torch_recurrent(cell.name, *(inputs[name] for name in ("Wx", "Wh", "b")))
    x = tensor(inputs["x"], requires_grad=True)
    first = [tensor(inputs[f"{state}0"], requires_grad=True) for state in cell.states]
    state = tuple(part[None] for part in first)
    rows = x
    if lengths is not None:
        rows = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    out, state = module(rows, state if len(state) > 1 else state[0])
    if lengths is not None:
        out, _ = torch.nn.utils.rnn.pad_packed_sequence(out, batch_first=True, total_length=T)
    last = [part[0] for part in as_tuple(state)]
    np.testing.assert_allclose(h * real, out.detach(), rtol=1e-10)
    for ours, theirs in zip(finals, last, strict=True):
        np.testing.assert_allclose(ours, theirs.detach(), rtol=1e-10)

    sum((a * tensor(da)).sum() for a, da in zip((out, *last), (dh, *dfinals), strict=True)).backward()
    expected = {
        "x": x.grad.numpy(),
        "Wx": reordered(module.weight_ih_l0.grad.numpy().T),
        "Wh": reordered(module.weight_hh_l0.grad.numpy().T),
        "b": reordered(module.bias_ih_l0.grad.numpy()),
    }
    expected |= {f"{name}0": leaf.grad.numpy() for name, leaf in zip(cell.states, first, strict=True)}
    assert_close(grads, expected, 1e-12)


@pytest.mark.parametrize("reduction", ["batch", "token"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_softmax(reduction, smoothing, rng):
    x, y = rng.standard_normal((3, 4, 6)), rng.integers(6, size=(3, 4))
    mask = rng.random((3, 4)) < 0.6
    loss, dx = layers.temporal_softmax_loss(x, y, mask, average=reduction, label_smoothing=smoothing)

    def cross_entropy(x):
        targets = torch.tensor(np.where(mask, y, -100)).flatten()
        how, divisor = ("sum", 3) if reduction == "batch" else ("mean", 1)
        loss = torch.nn.functional.cross_entropy(
            x.flatten(0, 1), targets, reduction=how, label_smoothing=smoothing
        )
        return loss / divisor

    (expected,), grads = gradients_in_torch(cross_entropy, {"x": x}, 1.0)
    assert loss == pytest.approx(float(expected), rel=1e-12)
    assert_close({"x": dx}, grads, 1e-12)


def test_embedding(rng):
    x, W, dout = rng.integers(7, size=(3, 4)), rng.standard_normal((7, 5)), rng.standard_normal((3, 4, 5))
    out, cache = layers.word_embedding_forward(x, W)
    (expected,), grads = gradients_in_torch(
        lambda W: torch.nn.functional.embedding(torch.tensor(x), W), {"W": W}, dout
    )
    np.testing.assert_array_equal(out, expected)
    assert_close({"W": layers.word_embedding_backward(dout, cache)}, grads, 1e-14)


def test_dropout(rng):
    """The same scale; where ours drops is PyTorch's product with that mask, there and back."""
    x, dout = rng.standard_normal((30, 40)), rng.standard_normal((30, 40))
    torch.manual_seed(0)
    (theirs,), _ = gradients_in_torch(
        lambda x: torch.nn.functional.dropout(x, 0.3), {"x": np.ones_like(x)}, dout
    )
    ours, cache = layers.dropout_forward(x, 0.3, rng=rng)
    mask = (ours != 0) * np.unique(theirs)[-1]
    (expected,), grads = gradients_in_torch(lambda x: x * torch.from_numpy(mask), {"x": x}, dout)
    np.testing.assert_allclose(ours, expected, rtol=1e-12)
    assert_close({"x": layers.dropout_backward(dout, cache)}, grads, 1e-14)


@pytest.mark.parametrize("name", ["relu", "tanh"])
def test_activations(name, rng):
    x, dout = rng.standard_normal((2, 3, 4)), rng.standard_normal((2, 3, 4))
    out, cache = getattr(layers, f"{name}_forward")(x)
    (expected,), grads = gradients_in_torch(getattr(torch, name), {"x": x}, dout)
    np.testing.assert_allclose(out, expected, rtol=1e-12)
    assert_close({"x": getattr(layers, f"{name}_backward")(dout, cache)}, grads, 1e-12)


@pytest.mark.parametrize("name", ["affine", "temporal_affine"])
def test_affine(name, rng):
    shape = (3, 4, 5) if name == "temporal_affine" else (3, 5)
    inputs = {"x": rng.standard_normal(shape), "w": rng.standard_normal((5, 2)), "b": rng.standard_normal(2)}
    dout = rng.standard_normal((*shape[:-1], 2))
    out, cache = getattr(layers, f"{name}_forward")(**inputs)
    (expected,), grads = gradients_in_torch(lambda x, w, b: x @ w + b, inputs, dout)
    np.testing.assert_allclose(out, expected, rtol=1e-12)
    ours = getattr(layers, f"{name}_backward")(dout, cache)
    assert_close(dict(zip(inputs, ours, strict=True)), grads, 1e-13)
