"""Cells that attend: against plain loops, numeric gradients and their own steps."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rnnlab.gradcheck.numeric import projected_check
from rnnlab.layers.attention.contexts import Context
from rnnlab.layers.attention.decoder import attentive_backward, attentive_forward, attentive_shapes
from rnnlab.layers.attention.decoding import attentive_start, attentive_step
from rnnlab.ops import ops_for

from ..attending import batch
from ..reference import CupyArray, assert_gradients, assert_same, every_dtype, spoil

CELLS = ["rnn", "lstm", "gru", "simplified_gru"]
SCORES = ["additive", "dot", "bilinear"]
PARTS = {
    "source": {},
    "selector": {"selector": True},
    "target": {"source": False, "target": True},
    "both": {"target": True, "selector": True},
}
RAGGED = [2, 4, 0]
MASK = [[1, 0, 1], [0, 0, 0], [1, 1, 1]]

every_cell = pytest.mark.parametrize("cell", CELLS)
every_score = pytest.mark.parametrize("score", SCORES)
every_part = pytest.mark.parametrize("parts", PARTS.values(), ids=PARTS)


def options_of(parts, *, ragged=True):
    """Lengths, and a mask where there is a source."""
    if not ragged:
        return parts
    return parts | {"lengths": RAGGED} | ({"memory_mask": MASK} if parts.get("source", True) else {})


@every_cell
@every_score
@every_part
@pytest.mark.parametrize("ragged", [False, True], ids=["full", "ragged"])
def test_it_is_the_equations(cell, score, parts, ragged, rng):
    b = batch(rng, cell, score, **options_of(parts, ragged=ragged))
    *outs, _ = b.forward()
    for out, expected in zip(outs, b.plain(), strict=True):
        np.testing.assert_allclose(out, expected, rtol=1e-11, atol=1e-13)


@every_part
@pytest.mark.parametrize(
    ("cell", "score"), [*((cell, "additive") for cell in CELLS), ("gru", "dot"), ("gru", "bilinear")]
)
def test_gradients(cell, score, parts, rng):
    b = batch(rng, cell, score, H=3, C=2, **options_of(parts))
    assert_gradients(b.forward, b.backward, b.arrays, rng)


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


@st.composite
def any_batch(draw):
    """Any cell, score and parts; batches, lengths and memories of one or none, and masks of all kinds."""
    N, T, L = draw(st.integers(1, 4)), draw(st.integers(1, 5)), draw(st.integers(1, 4))
    source, target = draw(st.sampled_from([(True, False), (False, True), (True, True)]))
    lengths = draw(st.none() | st.lists(st.integers(0, T), min_size=N, max_size=N))
    masks = st.lists(st.lists(st.booleans(), min_size=L, max_size=L), min_size=N, max_size=N)
    b = batch(
        np.random.default_rng(draw(st.integers(0, 2**32 - 1))),
        draw(st.sampled_from(CELLS)),
        draw(st.sampled_from(SCORES)),
        source=source,
        selector=source and draw(st.booleans()),
        target=target,
        N=N,
        T=T,
        L=L,
        H=draw(st.integers(1, 4)),
        A=draw(st.integers(1, 4)),
        C=draw(st.integers(1, 4)),
        lengths=lengths,
        memory_mask=draw(st.none() | masks) if source else None,
    )
    return b, np.random.default_rng(draw(st.integers(0, 2**32 - 1)))


@given(any_batch())
@settings(max_examples=60)
def test_any_batch_is_the_equations(drawn):
    b, _ = drawn
    *outs, _ = b.forward()
    for out, expected in zip(outs, b.plain(), strict=True):
        np.testing.assert_allclose(out, expected, rtol=1e-9, atol=1e-12)


@given(any_batch())
@settings(max_examples=80)
def test_gradients_of_any_batch(drawn):
    assert direction_error(*drawn) < 1e-7


@given(any_batch())
@settings(max_examples=40)
def test_steps_are_the_sequence(drawn):
    b, _ = drawn
    b = b._replace(lengths=None)
    a, T = b.arrays, b.arrays["x"].shape[1]
    h, contexts, *rest, _ = b.forward()
    state = attentive_start(
        tuple(a[name] for name in b.state_names), a.get("memory"), {n: a[n] for n in b.param_names},
        memory_mask=b.memory_mask, **b.options,
    )  # fmt: skip
    for t in range(T):
        h_t, context_t, weights_t, state = attentive_step(a["x"][:, t], state)
        np.testing.assert_allclose(h_t, h[:, t], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(context_t, contexts[:, t], rtol=1e-9, atol=1e-12)
        for one, all_of_it in zip(weights_t.values(), rest, strict=False):
            np.testing.assert_allclose(one, all_of_it[:, t, : one.shape[1]], rtol=1e-9, atol=1e-12)
    finals = rest[-len(b.cell.states) :]
    np.testing.assert_allclose(state[0], finals, rtol=1e-9, atol=1e-12)


@given(any_batch(), st.integers(1, 3))
@settings(max_examples=30)
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
    kept = tuple(grad.copy() for grad in first)
    *other_outs, other_cache = other.forward()
    other.backward(*other_outs, other_cache)
    spoil(*first, *outs, *other_outs)
    assert_same(b.backward(*douts, cache), kept)


@every_part
def test_a_backward_writes_into_nothing_it_is_given(parts, rng):
    b = batch(rng, **options_of(parts))
    *outs, cache = b.forward()
    watched = {**b.arrays, **{str(k): out for k, out in enumerate(outs)}}
    kept = {name: array.copy() for name, array in watched.items()}
    b.backward(*outs, cache)
    for name, array in kept.items():
        np.testing.assert_array_equal(watched[name], array, err_msg=name)


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


def test_gradients_of_outputs_may_be_left_out(rng):
    b = batch(rng, **options_of(PARTS["both"]))
    *outs, cache = b.forward()
    nothing = [np.zeros_like(out) for out in outs[1:]]
    dx, dstate, dmemory, dparams = attentive_backward(outs[0], None, cache)
    assert_same((dx, *dstate, dmemory, *dparams.values()), b.backward(outs[0], *nothing, cache))


def test_the_gradient_of_the_memory_may_be_left_out(rng):
    b = batch(rng, **options_of(PARTS["both"]))
    h, contexts, *_, cache = b.forward()
    dx, _, dmemory, dparams = attentive_backward(h, contexts, cache, memory_gradient=False)
    expected_dx, _, _, expected = attentive_backward(h, contexts, cache)
    assert dmemory is None
    assert_same((dx, *dparams.values()), (expected_dx, *expected.values()))


def test_chunks_of_steps_make_no_difference(rng, monkeypatch):
    b = batch(rng, **options_of(PARTS["both"]))
    *outs, cache = b.forward()
    grads = b.backward(*outs, cache)
    for name in ("_CHUNK_ROWS", "_CHUNK_NUMBERS"):
        monkeypatch.setattr(f"rnnlab.layers.recurrent.packing.{name}", 1)
    *in_chunks, cache = b.forward()
    for one, other in zip((*in_chunks, *b.backward(*outs, cache)), (*outs, *grads), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-13)


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


# ---------------------------------------------------------------- decoding


def test_a_selector_of_nothing_has_no_gradient(rng, monkeypatch):
    """Where there is no cell to select, in memory that holds other numbers."""
    given = batch(rng, selector=True, L=0)
    monkeypatch.setattr(ops_for(given.arrays["x"]), "empty", lambda shape, dtype: np.full(shape, 7, dtype))
    *outs, cache = given.forward()
    grads = dict(zip(given.arrays, given.backward(*map(np.ones_like, outs), cache), strict=True))
    for name in ("selector_w", "selector_b", "source_Wq", "Wz"):
        np.testing.assert_array_equal(grads[name], 0)


@every_part
def test_rows_of_a_decoding_state_may_be_taken_in_any_order(parts, rng):
    """As beam search does: each row goes on from its own past, whatever becomes of others."""
    from rnnlab.decoding.search import select

    b = batch(rng, "gru", N=3, T=5, **(parts | ({"memory_mask": MASK} if parts.get("source", True) else {})))
    a = b.arrays
    params = {name: a[name] for name in b.param_names}
    state = attentive_start((a["h0"],), a.get("memory"), params, memory_mask=b.memory_mask, **b.options)
    sequences = np.arange(3)[:, None]  # of each row: its source, then the rows of x it has read
    for t in range(5):
        x = rng.standard_normal((len(sequences), 2))
        a.setdefault("read", {})
        h, _, _, advanced = attentive_step(x, state)
        again = attentive_step(x, state)
        assert_same(again[0], h)  # a state may be gone on from twice
        a["read"] |= {(t, k): x[k] for k in range(len(x))}
        sequences = np.concatenate([sequences, np.arange(len(x))[:, None]], axis=1)
        rows = rng.integers(len(x), size=4)
        state, sequences, h = select(advanced, rows), sequences[rows], h[rows]
    read = a.pop("read")
    for n, (source, *path) in enumerate(sequences):
        alone = {"x": np.array([[read[t, k] for t, k in enumerate(path)]]), "h0": a["h0"][source][None]}
        if "memory" in a:
            alone["memory"] = a["memory"][source][None]
        mask = None if b.memory_mask is None else b.memory_mask[source][None]
        expected = b._replace(memory_mask=mask).forward(**alone)[0]
        np.testing.assert_allclose(h[n], expected[0, -1], rtol=1e-10)


def test_taking_rows_copies_neither_memory_nor_past(rng):
    from rnnlab.decoding.search import select

    b = batch(rng, "gru", target=True)
    a = b.arrays
    state = attentive_start((a["h0"],), a["memory"], {n: a[n] for n in b.param_names}, **b.options)
    *_, state = attentive_step(a["x"][:, 0], state)
    *_, state = attentive_step(a["x"][:, 1], state)
    (taken_h,), origins, cells, history, past, decoder = select(state, np.array([1, 1, 0, 2, 2]))
    assert past is state[4]
    assert decoder is state[5]
    assert taken_h.shape == (5, 4)
    assert [each.shape for each in (origins, cells, history)] == [(5,), (5, 3), (5, 1)]
    assert {each.dtype.kind for each in (origins, cells, history)} == {"i"}


def test_copies_of_a_row_attend_once(rng, monkeypatch):
    from rnnlab.decoding.search import select

    b = batch(rng, "lstm", target=True, selector=True)
    a = b.arrays
    params = {name: a[name] for name in b.param_names}
    state = attentive_start((a["h0"], a["c0"]), a["memory"], params, **b.options)
    *_, state = attentive_step(a["x"][:, 0], state)
    rows = np.array([2, 0, 2, 2, 0])
    x = rng.standard_normal((5, 2))
    *outs, copied = attentive_step(x, select(state, rows))
    queries = []
    attend = Context.step
    monkeypatch.setattr(
        Context, "step", lambda self, h, *rest: (queries.append(len(h)), attend(self, h, *rest))
    )
    attentive_step(x, select(state, rows))
    assert queries == [2, 2]
    for k, row in enumerate(rows):
        h, context, weights, _ = attentive_step(x[k : k + 1], select(state, np.array([row])))
        np.testing.assert_allclose(outs[0][k], h[0], rtol=1e-12)
        np.testing.assert_allclose(outs[1][k], context[0], rtol=1e-12)
        for name, each in weights.items():
            np.testing.assert_allclose(outs[2][name][k], each[0], rtol=1e-12)
    assert copied[4].states.shape[0] >= 2


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


# ---------------------------------------------------------------- what the door turns away


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


def test_backward_turns_away_gradients_that_do_not_fit(rng):
    b = batch(rng)
    h, contexts, _, _, _, cache = b.forward()
    with pytest.raises(ValueError, match="attentive_backward: dh gradient has shape"):
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
    with pytest.raises(ValueError, match="attentive_backward: into: params has no Wx"):
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
