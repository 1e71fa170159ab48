"""Cells that attend: against plain loops, numeric gradients and their own steps."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rnnlab.gradcheck.numeric import projected_check
from rnnlab.layers.attention.decoder import attentive_backward, attentive_forward, attentive_shapes

from ..attending import any_batch, batch, every_cell, every_part, every_score, options_of
from ..reference import CELLS, CupyArray, assert_gradients, assert_same, every_dtype, spoil
from ..shifted import shift_states


@pytest.mark.one_in(2)
@every_cell
@every_score
@every_part
@pytest.mark.parametrize("ragged", [False, True], ids=["full", "ragged"])
def test_it_is_the_equations(cell, score, parts, ragged, rng):
    b = batch(rng, cell, score, **options_of(parts, ragged=ragged))
    *outs, _ = b.forward()
    for out, expected in zip(outs, b.plain(), strict=True):
        np.testing.assert_allclose(out, expected, rtol=1e-11, atol=1e-13)


@pytest.mark.one_in(2)
@every_part
@pytest.mark.parametrize(
    ("cell", "score"),
    [
        *((cell.name, "additive") for cell in CELLS),
        ("gru", "dot"),
        ("gru", "bilinear"),
    ],
)
def test_gradients(cell, score, parts, rng):
    b = batch(rng, cell, score, H=7, C=5, A=6, **options_of(parts))
    assert_gradients(b.forward, b.backward, b.arrays, rng, directions=1)


@every_score
@pytest.mark.parametrize("view", ["read-only", "columns"])
def test_a_memory_that_compiled_kernels_do_not_take(view, score, rng):
    """It is copied once, before the steps; in tests, what a kernel refuses is an error."""
    b = batch(rng, "lstm", score)
    expected, memory = b.forward()[0], b.arrays["memory"]
    if view == "columns":
        memory = np.concatenate([memory, memory], axis=2)[:, :, : memory.shape[2]]
    else:
        memory.flags.writeable = False
    b.arrays["memory"] = memory
    *outs, cache = b.forward()
    np.testing.assert_array_equal(outs[0], expected)
    b.backward(*map(np.cos, outs), cache)


@every_cell
@every_part
@pytest.mark.parametrize("ragged", [False, True], ids=["full", "ragged"])
def test_the_whole_gradient_of_each_state(cell, parts, ragged, rng, monkeypatch):
    """Through the cell, and through the steps that attend from the state or to it."""
    b = batch(rng, cell, **options_of(parts, ragged=ragged))
    *outs, cache = b.forward()
    douts = [rng.standard_normal(out.shape) for out in outs]
    shift, whole = np.zeros(outs[0].shape), np.full(outs[0].shape, np.nan)
    expected = b.backward(*douts, cache)
    assert_same(b.backward(*douts, cache, total_dh=whole), expected)
    shift_states(monkeypatch, b.arrays["Wh"], shift, b.lengths)

    def loss():
        *shifted, _ = b.forward()
        return float(sum((out * dout).sum() for out, dout in zip(shifted, douts, strict=True)))

    assert projected_check(loss, shift, whole, rng=rng) < 1e-7


@every_cell
@every_score
@every_part
def test_gradients_along_random_directions(cell, score, parts, rng):
    assert direction_error(batch(rng, cell, score, **options_of(parts)), rng) < 1e-7


def direction_error(b, rng):
    """How far all gradients together are from the numeric derivative along one direction."""
    flat = np.concatenate([array.ravel() for array in b.arrays.values()])
    sizes = np.cumsum([array.size for array in b.arrays.values()])[:-1]

    def views():
        parts = zip(b.arrays.items(), np.split(flat, sizes), strict=True)
        return {name: part.reshape(array.shape) for (name, array), part in parts}

    *outs, cache = b.forward()
    douts = [rng.standard_normal(out.shape) for out in outs]
    grad = np.concatenate([each.ravel() for each in b.backward(*douts, cache)])

    def value():
        *outs, _ = b.forward(**views())
        return sum(float(np.sum(out * dout)) for out, dout in zip(outs, douts, strict=True))

    return projected_check(value, flat, grad, rng=rng)


@given(any_batch())
@settings(max_examples=30)
def test_any_batch_is_the_equations(drawn):
    b, _ = drawn
    *outs, _ = b.forward()
    for out, expected in zip(outs, b.plain(), strict=True):
        np.testing.assert_allclose(out, expected, rtol=1e-9, atol=1e-12)


@given(any_batch())
@settings(max_examples=40)
def test_gradients_of_any_batch(drawn):
    assert direction_error(*drawn) < 1e-7


@given(any_batch())
@settings(max_examples=10)
def test_a_mask_says_what_lengths_say(drawn):
    b, _ = drawn
    N, T, _ = b.arrays["x"].shape
    lengths = np.full(N, T) if b.lengths is None else b.lengths
    mask = np.arange(T) < lengths[:, None]
    for out, expected in zip(
        b._replace(lengths=None, mask=mask).forward()[:-1], b.forward()[:-1], strict=True
    ):
        np.testing.assert_array_equal(out, expected)
    with pytest.raises(ValueError, match="both lengths and mask are given, expected one of them"):
        b._replace(lengths=lengths, mask=mask).forward()


@given(any_batch(), st.integers(1, 3))
@settings(max_examples=20)
def test_more_padding_changes_nothing(drawn, extra):
    """Of steps, and of memory; what is in it is not read."""
    b, rng = drawn
    N, T, _ = b.arrays["x"].shape

    def wider(array, value):
        return np.concatenate([array, np.full((N, extra, *array.shape[2:]), value)], axis=1)

    arrays = b.arrays | {"x": wider(b.arrays["x"], np.nan)}
    padded = b._replace(arrays=arrays, lengths=np.full(N, T) if b.lengths is None else b.lengths)
    if "memory" in arrays:
        arrays["memory"] = wider(arrays["memory"], np.nan)
        mask = (
            np.ones((N, arrays["memory"].shape[1] - extra), bool) if b.memory_mask is None else b.memory_mask
        )
        padded = padded._replace(memory_mask=wider(mask, False))
    *outs, cache = b.forward()
    *padded_outs, padded_cache = padded.forward()
    douts = [rng.standard_normal(out.shape) for out in outs]
    douts[0] *= np.arange(T)[:, None] < (T if b.lengths is None else b.lengths[:, None, None])
    padded_douts = []
    for out, wide, dout in zip(outs, padded_outs, douts, strict=True):
        here = tuple(slice(size) for size in out.shape)
        np.testing.assert_allclose(wide[here], out, rtol=1e-9, atol=1e-12)
        padded_douts.append(np.zeros(wide.shape))
        padded_douts[-1][here] = dout
    grads, padded_grads = b.backward(*douts, cache), padded.backward(*padded_douts, padded_cache)
    for grad, wide in zip(grads, padded_grads, strict=True):
        here = tuple(slice(size) for size in grad.shape)
        np.testing.assert_allclose(wide[here], grad, rtol=1e-9, atol=1e-12)
        assert np.isfinite(wide).all()
        assert abs(wide).sum() == pytest.approx(abs(wide[here]).sum())


# ---------------------------------------------------------------- caches, dtypes, gradients into


@every_cell
@every_part
def test_outputs_and_gradients_may_be_overwritten_and_caches_are_apart(cell, parts, rng):
    b = batch(rng, cell, **options_of(parts))
    other = batch(rng, cell, **options_of(parts))
    *outs, cache = b.forward()
    douts = [rng.standard_normal(out.shape) for out in outs]
    first = b.backward(*douts, cache)
    saved = tuple(grad.copy() for grad in first)
    *other_outs, other_cache = other.forward()
    other.backward(*other_outs, other_cache)
    spoil(*first, *outs, *other_outs)
    assert_same(b.backward(*douts, cache), saved)


@every_part
def test_a_backward_writes_into_nothing_it_is_given(parts, rng):
    b = batch(rng, **options_of(parts))
    *outs, cache = b.forward()
    watched = {**b.arrays, **{str(k): out for k, out in enumerate(outs)}}
    saved = {name: array.copy() for name, array in watched.items()}
    b.backward(*outs, cache)
    for name, array in saved.items():
        np.testing.assert_array_equal(watched[name], array, err_msg=name)


@pytest.mark.one_in(2)
@every_cell
@every_dtype
@every_part
def test_dtype_in_is_dtype_out(cell, dtype, parts, rng):
    b = batch(rng, cell, **options_of(parts))
    low = b._replace(arrays={name: array.astype(dtype) for name, array in b.arrays.items()})
    *outs, cache = b.forward()
    *low_outs, low_cache = low.forward()
    douts = [rng.standard_normal(out.shape) for out in outs]
    grads, low_grads = b.backward(*douts, cache), low.backward(*(d.astype(dtype) for d in douts), low_cache)
    for actual, expected in zip((*low_outs, *low_grads), (*outs, *grads), strict=True):
        assert actual.dtype == dtype
        np.testing.assert_allclose(actual, expected, rtol=1e-3, atol=1e-4)


@every_cell
@every_part
def test_gradients_are_added_into_arrays_that_are_given(cell, parts, rng):
    b = batch(rng, cell, **options_of(parts))
    *outs, cache = b.forward()
    *_, expected = attentive_backward(outs[0], outs[1], cache)
    into = {name: np.ones_like(array) for name, array in expected.items()} | {"other": np.zeros(3)}
    *_, grads = attentive_backward(outs[0], outs[1], cache, into=into)
    assert grads.keys() == expected.keys()
    for name, grad in grads.items():
        assert grad is into[name]
        np.testing.assert_allclose(grad - 1, expected[name], rtol=1e-9, atol=1e-12)
    assert not into["other"].any()


@every_part
@pytest.mark.parametrize(("N", "T", "L"), [(0, 3, 2), (2, 0, 2), (2, 3, 0), (0, 0, 0)])
def test_nothing_to_do(parts, N, T, L, rng):
    b = batch(rng, N=N, T=T, L=L, **parts)
    *outs, cache = b.forward()
    for out, expected in zip(outs, b.plain(), strict=True):
        np.testing.assert_allclose(out, expected, rtol=1e-12)
    for grad, array in zip(b.backward(*outs, cache), b.arrays.values(), strict=True):
        assert grad.shape == array.shape
        assert np.isfinite(grad).all()


# ---------------------------------------------------------------- against PyTorch


@pytest.mark.parametrize(
    ("cell", "score", "selector"),
    [("lstm", "additive", True), ("gru", "bilinear", False), ("rnn", "dot", False)],
)
def test_the_same_in_pytorch(cell, score, selector, rng):
    torch = pytest.importorskip("torch")
    b = batch(rng, cell, score, target=True, selector=selector, memory_mask=[[1, 1, 0], [1, 1, 1], [0, 1, 1]])
    *outs, cache = b.forward()
    douts = [rng.standard_normal(out.shape) for out in outs]
    leaves = {name: torch.tensor(array, requires_grad=True) for name, array in b.arrays.items()}
    mask = torch.tensor(b.memory_mask)
    in_torch = torch_attentive(torch, b, leaves, mask)
    total = sum((out * torch.tensor(dout)).sum() for out, dout in zip(in_torch, douts, strict=True))
    expected = torch.autograd.grad(total, list(leaves.values()))
    for actual, wanted in zip(outs, in_torch, strict=True):
        np.testing.assert_allclose(actual, wanted.detach().numpy(), rtol=1e-10, atol=1e-13)
    for actual, wanted in zip(b.backward(*douts, cache), expected, strict=True):
        np.testing.assert_allclose(actual, wanted.numpy(), rtol=1e-9, atol=1e-12)


def torch_attentive(torch, b, a, mask):
    """The cell over full sequences, batched, for autograd."""
    N, T, _ = a["x"].shape
    state, states = [a[name] for name in b.state_names], []
    outs = {name: [] for name in ("h", "contexts", "source", "target")}

    def attend(h, memory, part, real):
        p = {name.removeprefix(part): a[name] for name in a if name.startswith(part)}
        if b.score == "additive":
            hidden = torch.tanh((h @ p["Wq"])[:, None] + memory @ p["Wm"] + p["b"])
            scores = hidden @ p["v"]
        else:
            query = h if b.score == "dot" else h @ p["W"]
            scores = (memory * query[:, None]).sum(2)
        weights = torch.softmax(scores.masked_fill(~real, -torch.inf), 1)
        return weights, (weights[:, :, None] * memory).sum(1)

    for t in range(T):
        h = state[0]
        source, z = attend(h, a["memory"], "source_", mask)
        if b.selector:
            z = z * torch.sigmoid(h @ a["selector_w"] + a["selector_b"])[:, None]
        target, past = torch.zeros(N, T, dtype=h.dtype), torch.zeros_like(h)
        if states:
            weights, past = attend(h, torch.stack(states, 1), "target_", torch.ones(N, t, dtype=bool))
            target = torch.cat([weights, target[:, t:]], 1)
        inputs = a["x"][:, t] @ a["Wx"] + z @ a["Wz"] + past @ a["Wt"] + a["b"]
        H = h.shape[1]
        if b.cell.name == "lstm":
            i, f, o, g = (inputs + h @ a["Wh"]).chunk(4, 1)
            c = torch.sigmoid(f) * state[1] + torch.sigmoid(i) * torch.tanh(g)
            state = [torch.sigmoid(o) * torch.tanh(c), c]
        elif b.cell.name == "gru":
            z_gate, r = torch.sigmoid(inputs[:, : 2 * H] + h @ a["Wh"][:, : 2 * H]).chunk(2, 1)
            g = torch.tanh(inputs[:, 2 * H :] + (r * h) @ a["Wh"][:, 2 * H :])
            state = [(1 - z_gate) * g + z_gate * h]
        else:
            state = [torch.tanh(inputs + h @ a["Wh"])]
        states.append(state[0])
        for name, out in zip(outs, (state[0], torch.cat([z, past], 1), source, target), strict=True):
            outs[name].append(out)
    return [torch.stack(each, 1) for each in outs.values()] + state


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cell": "tree"}, "cell is 'tree', expected one of rnn, lstm, gru, simplified_gru"),
        ({"score": "cosine"}, "score is 'cosine', expected one of additive, dot, bilinear"),
        ({"memory": None}, "neither a memory nor a target is given, expected one to attend to"),
        (
            {"memory": None, "target": True, "selector": True},
            "selector is True and no memory is given, expected one",
        ),
        ({"memory": None, "target": True, "memory_mask": np.ones((3, 3))}, "params has no Wt, target_Wq"),
        ({"selector": True}, "params has no selector_w, selector_b, expected Wx, Wh, b, Wz, source_Wq"),
        ({"target_delay": 2}, "target_delay is 2 and target is False, expected True"),
        (
            {"target": True, "target_delay": 1},
            "target_delay is 1, expected an integer of at least 2",
        ),
        ({"target": True, "target_delay": 2.0}, "target_delay is 2.0, expected an integer of at least 2"),
        ({"target": True, "target_delay": 2}, "params has no Wt, expected Wx, Wh, b, Wz"),
        ({"state": ()}, "state is a tuple of 0, expected a tuple of 2 arrays"),
        ({"state": np.zeros((3, 4))}, "state is a ndarray, expected a tuple of 2 arrays"),
        ({"memory_mask": np.ones((3, 2))}, "memory_mask has shape (3, 2), expected (N, L) = (3, 3)"),
        ({"lengths": np.array([1, 2, 9])}, "lengths holds 9, expected numbers from 0 to T = 4"),
        ({"memory": np.ones((3, 3, 6))}, "Wz has shape (5, 16), expected (C, 4H) = (6, 16)"),
        ({"memory": np.ones((2, 3, 5))}, "memory has shape (2, 3, 5), expected (N, L, C) = (3, 3, 5)"),
    ],
)
def test_what_does_not_fit_is_named(change, message, rng):
    b = batch(rng)
    a = b.arrays
    given = {
        "x": a["x"], "state": (a["h0"], a["c0"]), "memory": a["memory"],
        "params": {name: a[name] for name in b.param_names}, "cell": "lstm",
    }  # fmt: skip
    message = message.replace("(N, L, C) = (3, 3, 5)", "(N, L, C)")
    with pytest.raises(ValueError, match=re.escape(f"attentive_forward: {message}")):
        attentive_forward(**given | change)


def test_backward_refuses_gradients_that_do_not_fit(rng):
    b = batch(rng)
    h, contexts, _, _, _, cache = b.forward()
    with pytest.raises(ValueError, match="attentive_backward: dh has shape"):
        attentive_backward(h[:, 1:], None, cache)
    with pytest.raises(ValueError, match="attentive_backward: dcontexts has shape"):
        attentive_backward(h, contexts[:, :, 1:], cache)
    with pytest.raises(ValueError, match="attentive_backward: dweights has target, expected source"):
        attentive_backward(h, None, cache, dweights={"target": contexts})
    with pytest.raises(ValueError, match=r"attentive_backward: dweights\['source'\] has shape"):
        attentive_backward(h, None, cache, dweights={"source": contexts})
    with pytest.raises(ValueError, match="attentive_backward: into has dWx of shape|into has Wx of shape"):
        attentive_backward(h, None, cache, into=dict.fromkeys(b.param_names, np.zeros(2)))
    with pytest.raises(ValueError, match="attentive_backward: dfinal has 1 arrays, expected 2"):
        attentive_backward(h, None, cache, dfinal=(h[:, 0],))
    with pytest.raises(ValueError, match="attentive_backward: into has no Wx"):
        attentive_backward(h, None, cache, into={})


def test_shapes_of_what_does_not_go_together():
    sizes = {"input_dim": 2, "hidden_dim": 3, "attention_dim": 4}
    with pytest.raises(ValueError, match="attentive_shapes: neither a memory nor a target"):
        attentive_shapes("gru", **sizes)
    with pytest.raises(ValueError, match="score is 'dot' and query_dim 3, memory_dim 5, expected the same"):
        attentive_shapes("gru", **sizes, memory_dim=5, score="dot")


@pytest.mark.parametrize("name", ["x", "h0", "memory", "Wz", "source_v"])
def test_arrays_of_two_libraries(name, rng):
    with pytest.raises(TypeError, match="arrays of one library, got NumPy and CuPy"):
        batch(rng).forward(**{name: CupyArray()})


def test_a_selector_bias_is_one_number(rng):
    b = batch(rng, selector=True)
    with pytest.raises(ValueError, match=re.escape("selector_b has shape (2,), expected (1,)")):
        b.forward(selector_b=np.zeros(2))
