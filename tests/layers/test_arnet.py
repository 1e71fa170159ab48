"""ARNet against its equations, numeric gradients and PyTorch, for any batch."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rnnlab.gradcheck.numeric import projected_check
from rnnlab.layers import arnet_backward, arnet_forward, arnet_shapes
from rnnlab.plain.lstm import lstm_forward
from rnnlab.plain.padding import real_steps

from .reference import assert_gradients, assert_same, every_dtype, spoil

N, T, H, R = 3, 4, 3, 2
LENGTHS = {
    "full": None,
    "ragged": np.array([2, 4, 0]),
    "short": np.array([1, 1, 2]),
    "none": np.zeros(3, int),
}

every_lengths = pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS)
every_start = pytest.mark.parametrize("h0", [True, False], ids=["h0", "from zero"])


def inputs(rng, h0=True, n=N, t=T):
    arrays = {"h": rng.standard_normal((n, t, H))} | ({"h0": rng.standard_normal((n, H))} if h0 else {})
    shapes = arnet_shapes(H, R)
    return arrays | {name: rng.standard_normal(shape) / 2 for name, shape in shapes.items()}


def forward_of(lengths, **options):
    return lambda h, h0=None, **params: arnet_forward(h, h0, params, lengths=lengths, **options)


def backward(dloss, cache):
    """The gradients of all inputs, in their order."""
    dh, dh0, dparams = arnet_backward(dloss, cache)
    return dh, *(() if dh0 is None else (dh0,)), *dparams.values()


def plain(h, h0=None, lengths=None, targets=None, *, Wx, Wh, b, W, b_out):
    """The loss by the plain LSTM; ``targets`` are the states to reconstruct, h itself if left out."""
    (n, t, _), zeros, targets = h.shape, np.zeros((len(h), len(Wh))), h if targets is None else targets
    read, _ = lstm_forward(h, zeros, Wx, Wh, b, lengths=lengths)
    first = np.zeros((n, 1, H)) if h0 is None else h0[:, None]
    previous = np.concatenate([first, targets[:, :-1]], axis=1)[:, :t]
    errors = (read @ W + b_out - previous) * real_steps(lengths, n, t).swapaxes(0, 1)
    return np.sum(errors[:, h0 is None :] ** 2) / max(n, 1)


def test_shapes_of_the_parameters():
    shapes = {"Wx": (5, 12), "Wh": (3, 12), "b": (12,), "W": (3, 5), "b_out": (5,)}
    assert arnet_shapes(5, 3) == shapes


@every_lengths
@every_start
def test_it_is_the_equations(lengths, h0, rng):
    a = inputs(rng, h0)
    loss, _ = forward_of(lengths)(**a)
    assert isinstance(loss, float)
    assert loss == pytest.approx(plain(lengths=lengths, **a), rel=1e-12)


@every_lengths
@every_start
def test_gradients(lengths, h0, rng):
    directions = None if lengths is LENGTHS["ragged"] else 1  # number by number where all is in a batch
    assert_gradients(forward_of(lengths), backward, inputs(rng, h0), rng, directions=directions)


@pytest.mark.parametrize("sizes", [(1, 1), (1, 3), (2, 0), (0, 2)], ids=str)
@every_start
def test_gradients_of_small_batches(sizes, h0, rng):
    assert_gradients(forward_of(None), backward, inputs(rng, h0, *sizes), rng, directions=1)


@every_lengths
@every_start
def test_a_detached_target_is_a_constant(lengths, h0, rng):
    """All gradients but the targets' own stay: those of a loss whose targets do not move."""
    a = inputs(rng, h0)
    loss, cache = forward_of(lengths)(**a)
    dh, dh0, dparams = arnet_backward(0.7, cache, detach_target=True)
    _, _, expected = arnet_backward(0.7, cache)
    assert_same(tuple(dparams.values()), tuple(expected.values()))
    assert (dh0 is not None) == h0
    assert not h0 or not dh0.any()
    fixed, h = a["h"].copy(), a["h"].copy()

    def moved():
        return 0.7 * plain(lengths=lengths, targets=fixed, **(a | {"h": h}))

    assert moved() == pytest.approx(0.7 * loss)
    assert projected_check(moved, h.reshape(-1), dh.reshape(-1), rng=rng) < 1e-7


@every_start
def test_padding_is_not_read(h0, rng):
    a, lengths = inputs(rng, h0), LENGTHS["ragged"]
    loss, cache = forward_of(lengths)(**a)
    spoilt = a | {"h": np.where(np.arange(T)[:, None] < lengths[:, None, None], a["h"], np.nan)}
    spoilt_loss, spoilt_cache = forward_of(lengths)(**spoilt)
    assert spoilt_loss == loss
    assert_same(backward(1.0, spoilt_cache), backward(1.0, cache))
    assert not backward(1.0, cache)[0][np.arange(T) >= lengths[:, None]].any()


@pytest.mark.parametrize("dtype", [bool, np.float64])
def test_a_mask_counts_the_errors_of_its_steps(dtype, rng):
    arrays = inputs(rng)
    lengths, zeros = LENGTHS["ragged"], np.zeros((N, T, H))
    real = np.arange(T) < lengths[:, None]
    arrays["h"] = np.where(real[:, :, None], arrays["h"], zeros)
    loss, cache = forward_of(None, loss_mask=real.astype(dtype))(**arrays)
    expected, shorter = forward_of(lengths)(**arrays)
    assert loss == pytest.approx(expected, rel=1e-12)
    for one, other in zip(backward(0.7, cache), backward(0.7, shorter), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-13)


def test_a_mask_says_what_lengths_say(rng):
    arrays, lengths = inputs(rng), LENGTHS["ragged"]
    loss, cache = forward_of(lengths)(**arrays)
    masked, masked_cache = forward_of(None, mask=np.arange(T) < lengths[:, None])(**arrays)
    assert masked == loss
    assert_same(backward(1.0, masked_cache), backward(1.0, cache))


def test_without_h0_the_first_step_is_read(rng):
    """Its state is a target and an input, its own reconstruction is free."""
    a = inputs(rng, h0=False)
    _, cache = forward_of(None)(**a)
    dh, _, _ = arnet_backward(1.0, cache, detach_target=True)
    assert dh[:, 0].any()
    assert forward_of(np.ones(N, int))(**a)[0] == 0


@every_dtype
def test_dtypes(dtype, rng):
    a = {name: array.astype(dtype) for name, array in inputs(rng).items()}
    loss, cache = forward_of(LENGTHS["ragged"])(**a)
    assert {grad.dtype for grad in backward(np.float64(0.5), cache)} == {np.dtype(dtype)}
    assert loss == pytest.approx(plain(lengths=LENGTHS["ragged"], **a), rel=1e-5)


def test_gradients_may_be_overwritten(rng):
    _, cache = forward_of(LENGTHS["ragged"])(**inputs(rng))
    first = backward(0.3, cache)
    kept = tuple(grad.copy() for grad in first)
    spoil(*first)
    assert_same(backward(0.3, cache), kept)


def test_gradients_are_added_into_arrays_that_are_given(rng):
    _, cache = forward_of(None)(**inputs(rng))
    _, _, expected = arnet_backward(0.5, cache)
    into = {name: np.ones(shape) for name, shape in arnet_shapes(H, R).items()} | {"other": np.ones(2)}
    _, _, grads = arnet_backward(0.5, cache, into=into)
    for name, grad in expected.items():
        assert grads[name] is into[name]
        np.testing.assert_allclose(grads[name], 1 + grad)


def test_what_does_not_fit_is_named(rng):
    a = inputs(rng)
    params = {name: a[name] for name in arnet_shapes(H, R)}
    with pytest.raises(ValueError, match="arnet_forward: params has no Wx"):
        arnet_forward(a["h"], a["h0"], {f"x_{name}": array for name, array in params.items()})
    for name, wrong, expected in (
        ("Wx", (H, 4), "(H, 4R) = (3, 8)"),
        ("Wh", (R + 1, 8), "(R, 4R) = (3, 12)"),
        ("W", (R, 1), "(R, H) = (2, 3)"),
        ("b_out", (1,), "(H,) = (3,)"),
    ):
        message = f"arnet_forward: {name} has shape {wrong}, expected {expected}"
        with pytest.raises(ValueError, match=re.escape(message)):
            arnet_forward(a["h"], a["h0"], params | {name: np.zeros(wrong)})
    with pytest.raises(ValueError, match=re.escape("arnet_forward: h0 has shape (3, 2), expected (N, H)")):
        arnet_forward(a["h"], a["h0"][:, 1:], params)
    with pytest.raises(ValueError, match="lengths holds 5, expected numbers from 0 to T = 4"):
        arnet_forward(a["h"], a["h0"], params, lengths=np.array([5, 1, 1]))
    _, cache = arnet_forward(a["h"], a["h0"], params)
    with pytest.raises(ValueError, match="arnet_backward: into has no Wx"):
        arnet_backward(1.0, cache, into={})


# ---------------------------------------------------------------- any batch


@st.composite
def ragged_batches(draw):
    """Inputs, lengths, and their generator."""
    n, t = draw(st.tuples(st.integers(1, 4), st.integers(1, 5)))
    lengths = np.array(draw(st.lists(st.integers(0, t), min_size=n, max_size=n)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return inputs(rng, draw(st.booleans()), n, t), lengths, rng


@given(ragged_batches())
@settings(max_examples=20)
def test_any_batch_is_the_equations(batch):
    a, lengths, _ = batch
    assert forward_of(lengths)(**a)[0] == pytest.approx(plain(lengths=lengths, **a), rel=1e-11)


@given(ragged_batches(), st.integers(1, 3))
@settings(max_examples=20)
def test_more_padding_changes_nothing(batch, extra):
    a, lengths, _ = batch
    loss, cache = forward_of(lengths)(**a)
    padded = a | {"h": np.pad(a["h"], ((0, 0), (0, extra), (0, 0)), constant_values=np.nan)}
    padded_loss, padded_cache = forward_of(lengths)(**padded)
    assert padded_loss == loss
    dh, *grads = backward(1.0, padded_cache)
    assert not dh[:, -extra:].any()
    assert_same((dh[:, :-extra], *grads), backward(1.0, cache))


@given(ragged_batches())
@settings(max_examples=20)
def test_a_batch_is_the_mean_of_its_sequences(batch):
    a, lengths, _ = batch
    loss, cache = forward_of(lengths)(**a)
    grads = dict(zip(a, backward(1.0, cache), strict=True))
    losses = []
    for n, length in enumerate(lengths):
        alone = a | {"h": a["h"][n : n + 1, :length]} | ({"h0": a["h0"][n : n + 1]} if "h0" in a else {})
        loss_n, cache_n = forward_of(None)(**alone)
        losses.append(loss_n)
        dh = backward(1 / len(lengths), cache_n)[0]
        np.testing.assert_allclose(grads["h"][n, :length], dh[0], rtol=1e-9, atol=1e-12)
    assert loss == pytest.approx(np.mean(losses), rel=1e-11)


# ---------------------------------------------------------------- PyTorch


@every_lengths
@every_start
@pytest.mark.parametrize("detach", [False, True], ids=["", "detached"])
def test_pytorch_agrees(lengths, h0, detach, rng):
    torch = pytest.importorskip("torch")
    a = inputs(rng, h0)
    loss, cache = forward_of(lengths)(**a)
    dh, dh0, dparams = arnet_backward(0.7, cache, detach_target=detach)

    leaves = {name: torch.tensor(array, requires_grad=True) for name, array in a.items()}
    Wx, Wh, b, W, b_out = (leaves[name] for name in arnet_shapes(H, R))
    cell = torch.nn.LSTMCell(H, R).double()
    order = np.concatenate([np.arange(R) + k * R for k in (0, 1, 3, 2)])  # i, f, g, o
    state, total = None, torch.zeros((), dtype=torch.float64)
    real = np.arange(T) < (np.full(N, T) if lengths is None else lengths)[:, None]
    weights = {"weight_ih": Wx.T[order], "weight_hh": Wh.T[order], "bias_ih": b[order]}
    weights["bias_hh"] = torch.zeros_like(b)
    for t in range(T):
        arguments = (leaves["h"][:, t],) if state is None else (leaves["h"][:, t], state)
        state = torch.func.functional_call(cell, weights, arguments)
        if t == 0 and not h0:
            continue
        target = leaves["h"][:, t - 1] if t else leaves["h0"]
        errors = state[0] @ W + b_out - (target.detach() if detach else target)
        total = total + (errors.square().sum(1) * torch.tensor(real[:, t])).sum() / N
    assert loss == pytest.approx(total.item(), rel=1e-12)
    (0.7 * total).backward()
    ours = {"h": dh} | ({} if dh0 is None else {"h0": dh0}) | dparams
    for name, leaf in leaves.items():
        expected = np.zeros_like(a[name]) if leaf.grad is None else leaf.grad.numpy()
        np.testing.assert_allclose(ours[name], expected, rtol=1e-9, atol=1e-12, err_msg=name)
