"""The reviewer against its equations, numeric gradients and PyTorch, for every structure."""

import re
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rnnlab.layers import review_backward, review_forward, review_shapes
from rnnlab.plain.review import review_forward as plain_review_forward

from .reference import assert_close, assert_gradients, assert_same, every_dtype, spoil

N, M, C, H, A = 3, 4, 3, 2, 2
MASK = np.array([[1, 0, 1, 1], [0, 0, 0, 0], [1, 1, 1, 1]], bool)
STRUCTURES = [
    {"blocks": blocks, "steps": steps, "inter": inter, "intra": intra}
    for blocks, steps, inter, intra in product((1, 2, 3), (1, 2, 3), (True, False), (True, False))
]
every_structure = pytest.mark.parametrize(
    "structure", STRUCTURES, ids=lambda s: "-".join(map(str, s.values()))
)
DEEP = {"blocks": 2, "steps": 3}


def inputs(rng, structure, n=N, m=M):
    shapes = review_shapes(memory_dim=C, hidden_dim=H, attention_dim=A, **structure)
    shapes = {"memory": (n, m, C), "h0": (n, H), "c0": (n, H)} | shapes
    return {name: rng.standard_normal(shape) for name, shape in shapes.items()}


def split(memory, h0, c0, **params):
    return memory, (h0, c0), params


def forward_of(**options):
    def forward(**arrays):
        thoughts, final, _, cache = review_forward(*split(**arrays), **options)
        return *thoughts, *final, cache

    return forward


def backward(*douts):
    """The gradients of all inputs, in their order."""
    *dthoughts, dh, dc, cache = douts
    dmemory, dstate, dparams = review_backward(dthoughts, (dh, dc), cache)
    return dmemory, *dstate, *dparams.values()


# ---------------------------------------------------------------- gradients


@every_structure
@pytest.mark.parametrize("mask", [None, MASK], ids=["full", "masked"])
def test_gradients(structure, mask, rng):
    """Along one direction of all arrays together; some structures are checked array by array below."""
    arrays = inputs(rng, structure)
    forward = forward_of(memory_mask=mask, **structure)
    *outs, cache = forward(**arrays)
    douts = [rng.standard_normal(out.shape) for out in outs]
    grads = dict(zip(arrays, backward(*douts, cache), strict=True))
    directions = {name: rng.standard_normal(array.shape) for name, array in arrays.items()}

    def moved(step):
        *outs, _ = forward(**{name: array + step * directions[name] for name, array in arrays.items()})
        return sum(float((out * dout).sum()) for out, dout in zip(outs, douts, strict=True))

    numeric = (moved(1e-5) - moved(-1e-5)) / 2e-5
    analytic = sum(float((grads[name] * directions[name]).sum()) for name in arrays)
    assert analytic == pytest.approx(numeric, rel=1e-6)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("structure", [DEEP, {"blocks": 1, "steps": 2, "intra": False}], ids=["deep", "net"])
@pytest.mark.parametrize("sizes", [(1, 1), (1, 3), (2, 0), (0, 2), (3, 4)], ids=str)
def test_gradients_of_each_array(structure, sizes, rng):
    arrays = inputs(rng, structure, *sizes)  # some gradients are as small as 1e-5
    assert_gradients(forward_of(**structure), backward, arrays, rng, tolerance=1e-5, directions=1)


def test_gradients_under_dropout(rng):
    def forward(**arrays):
        return forward_of(dropout=0.4, rng=np.random.default_rng(3), **DEEP)(**arrays)

    arrays = inputs(rng, DEEP)
    assert_gradients(forward, backward, arrays, rng, tolerance=1e-6, directions=1)
    assert (forward(**arrays)[0] == 0).any()


@every_structure
def test_gradients_are_those_of_pytorch(structure, rng):
    torch = pytest.importorskip("torch")
    from ..oracle.noise import Noise
    from ..oracle.reference import Source, review

    arrays = inputs(rng, structure)
    tensors = {name: torch.tensor(array, requires_grad=True) for name, array in arrays.items()}
    source = Source((tensors["h0"], tensors["c0"]), memory=tensors["memory"], mask=torch.tensor(MASK))
    options = {"cell_type": "lstm", "reviewer": {**structure, "dropout": 0.0}}
    thoughts, reviewed = review(options, tensors, source, Noise(None))
    outs = [*thoughts, *reviewed.state]
    *ours, cache = forward_of(memory_mask=MASK, **structure)(**arrays)
    douts = [rng.standard_normal(out.shape) for out in ours]
    for one, other in zip(ours, outs, strict=True):
        np.testing.assert_allclose(one, other.detach().numpy(), rtol=1e-10, atol=1e-12)
    sum((out * torch.tensor(dout)).sum() for out, dout in zip(outs, douts, strict=True)).backward()
    expected = {name: tensor.grad.numpy() for name, tensor in tensors.items()}
    assert_close(dict(zip(arrays, backward(*douts, cache), strict=True)), expected, 1e-9)


# ---------------------------------------------------------------- structure


def test_shapes_of_the_parameters():
    shapes = review_shapes(memory_dim=5, hidden_dim=3, attention_dim=2, blocks=2, steps=2)
    assert shapes["block1_step1_Wz"] == (5, 12)
    assert shapes["block2_step2_Wz"] == (8, 12)
    assert shapes["block2_step2_Wh"] == (6, 12)
    assert shapes["block2_step1_Wh"] == (3, 12)
    assert shapes["block2_step1_Wq"] == (3, 4)
    assert shapes["block2_step1_Wm"] == (8, 2)
    assert shapes["block2_step1_bm"] == shapes["block2_step1_v"] == (4,)
    assert len(shapes) == 4 * 7
    without = review_shapes(
        memory_dim=5, hidden_dim=3, attention_dim=2, blocks=2, steps=2, inter=False, intra=False
    )
    assert without["block2_step2_Wz"] == (5, 12)
    assert without["block2_step2_Wh"] == (3, 12)


def test_outputs(rng):
    arrays = inputs(rng, DEEP)
    thoughts, (h, c), weights, _ = review_forward(*split(**arrays), memory_mask=MASK, **DEEP)
    assert [each.shape for each in thoughts] == [(N, 3, H)] * 2
    np.testing.assert_array_equal(thoughts[1][:, -1], h)
    assert c.shape == (N, H)
    assert [[each.shape for each in block] for block in weights] == [[(N, 3, M)], [(N, 3, M), (N, 3, 3)]]
    for block in weights:
        np.testing.assert_allclose(block[0].sum(axis=2), MASK.any(axis=1)[:, None] * np.ones((N, 3)))
        assert not block[0][~np.broadcast_to(MASK[:, None], block[0].shape)].any()
    np.testing.assert_allclose(weights[1][1].sum(axis=2), 1)
    _, _, expected, _ = plain_review_forward(*split(**arrays), memory_mask=MASK, **DEEP)
    for block, plain_block in zip(weights, expected, strict=True):
        for one, other in zip(block, plain_block, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-14)


def test_masked_slots_are_not_read(rng):
    arrays = inputs(rng, DEEP)
    forward = forward_of(memory_mask=MASK, **DEEP)
    *outs, cache = forward(**arrays)
    spoilt = arrays | {"memory": np.where(MASK[:, :, None], arrays["memory"], np.nan)}
    *spoilt_outs, spoilt_cache = forward(**spoilt)
    assert_same(tuple(spoilt_outs), tuple(outs))
    douts = [np.ones(out.shape) for out in outs]
    grads = backward(*douts, cache)
    assert_same(backward(*douts, spoilt_cache), grads)
    assert not grads[0][~MASK].any()


def test_connections_change_what_is_read(rng):
    """With equal parameters, each kind of connection changes the second block's thought vectors."""
    arrays = inputs(rng, DEEP)
    full = forward_of(**DEEP)(**arrays)[1]
    for name, rows in (("Wz", slice(C, None)), ("Wh", slice(0, H))):
        cut = dict(arrays)
        cut[f"block2_step3_{name}"] = cut[f"block2_step3_{name}"].copy()
        cut[f"block2_step3_{name}"][rows] = 0
        changed = forward_of(**DEEP)(**cut)[1]
        assert_same(changed[:, :2], full[:, :2])
        assert (changed[:, 2] != full[:, 2]).any()


@every_dtype
def test_dtypes(dtype, rng):
    arrays = {name: array.astype(dtype) for name, array in inputs(rng, DEEP).items()}
    *outs, cache = forward_of(memory_mask=MASK, **DEEP)(**arrays)
    grads = backward(*map(np.ones_like, outs), cache)
    assert {array.dtype for array in (*outs, *grads)} == {np.dtype(dtype)}


def test_gradients_may_be_overwritten(rng):
    *outs, cache = forward_of(**DEEP)(**inputs(rng, DEEP))
    douts = [rng.standard_normal(out.shape) for out in outs]
    first = backward(*douts, cache)
    saved = tuple(grad.copy() for grad in first)
    spoil(*first)
    assert_same(backward(*douts, cache), saved)


def test_outputs_may_be_overwritten(rng):
    arrays = inputs(rng, DEEP)
    thoughts, final, weights, cache = review_forward(
        arrays.pop("memory"), (arrays.pop("h0"), arrays.pop("c0")), arrays, **DEEP
    )
    douts = [rng.standard_normal(out.shape) for out in (*thoughts, *final)]
    before = backward(*douts, cache)
    spoil(*thoughts, *final, *(each for block in weights for each in block))
    assert_same(backward(*douts, cache), before)


def test_gradients_are_added_into_arrays_that_are_given(rng):
    arrays = inputs(rng, DEEP)
    *_, cache = forward_of(**DEEP)(**arrays)
    dthoughts = [np.ones((N, 3, H))] * 2
    _, _, expected = review_backward(dthoughts, None, cache)
    into = {name: np.ones(grad.shape) for name, grad in expected.items()} | {"other": np.ones(2)}
    dmemory, _, grads = review_backward(dthoughts, None, cache, into=into, memory_gradient=False)
    assert dmemory is None
    for name, grad in expected.items():
        assert grads[name] is into[name]
        np.testing.assert_allclose(grads[name], 1 + grad)


def test_missing_gradients_are_zeros(rng):
    *_, cache = forward_of(**DEEP)(**inputs(rng, DEEP))
    dthoughts, zeros = np.ones((N, 3, H)), np.zeros((N, 3, H))
    some = review_backward([None, dthoughts], None, cache)
    same = review_backward([zeros, dthoughts], (np.zeros((N, H)), np.zeros((N, H))), cache)
    assert_same((some[0], *some[1], *some[2].values()), (same[0], *same[1], *same[2].values()))


# ---------------------------------------------------------------- errors


def test_wrong_arguments_are_named(rng):
    memory, state, params = split(**inputs(rng, DEEP))
    for options, message in (
        ({"blocks": 0, "steps": 2}, "review_forward: blocks is 0, expected"),
        ({"blocks": 2, "steps": 0}, "review_forward: steps is 0, expected"),
        ({"blocks": 3, "steps": 3}, "review_forward: params has no block3_step1_Wz"),
        ({"blocks": 2, "steps": 3, "dropout": 1.0}, "dropout_forward: p is 1.0"),
        ({"blocks": 2, "steps": 3, "intra": False}, "block1_step2_Wh has shape (4, 8), expected (2, 8)"),
        ({"blocks": 2, "steps": 3, "inter": False}, "block2_step1_Wz has shape (5, 8), expected (3, 8)"),
        ({"memory_mask": MASK[:, :2]} | DEEP, "memory_mask has shape (3, 2), expected (N, L) = (3, 4)"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            review_forward(memory, state, params, **options)
    with pytest.raises(ValueError, match=r"state is a tuple of 1, expected a tuple of 2 arrays, h0 and c0"):
        review_forward(memory, state[:1], params, **DEEP)
    with pytest.raises(ValueError, match=re.escape("memory has shape (4, 3), expected (N, M, C)")):
        review_forward(memory[0], state, params, **DEEP)
    wrong = params | {"block2_step3_v": params["block2_step3_v"].astype(np.float32)}
    with pytest.raises(TypeError, match="block2_step3_v has dtype float32"):
        review_forward(memory, state, wrong, **DEEP)
    *_, cache = review_forward(memory, state, params, **DEEP)
    with pytest.raises(ValueError, match="dthoughts has 1 arrays, expected 2"):
        review_backward([None], None, cache)
    with pytest.raises(ValueError, match=re.escape("dthoughts[1] has shape (3, 3, 1)")):
        review_backward([None, np.ones((N, 3, 1))], None, cache)
    with pytest.raises(ValueError, match="review_backward: dfinal has 1 arrays, expected 2, dh and dc"):
        review_backward([None, None], (np.ones((N, H)),), cache)
    with pytest.raises(ValueError, match=re.escape("dfinal[1] has shape (3, 1)")):
        review_backward([None, None], (np.ones((N, H)), np.ones((N, 1))), cache)
    with pytest.raises(ValueError, match="hidden_dim is 0"):
        review_shapes(memory_dim=2, hidden_dim=0, attention_dim=1, **DEEP)


# ---------------------------------------------------------------- any batch


@given(st.integers(1, 3), st.integers(1, 3), st.booleans(), st.booleans(), st.data())
@settings(max_examples=20)
def test_any_batch_is_the_equations(blocks, steps, inter, intra, data):
    n, m = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 5))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    structure = {"blocks": blocks, "steps": steps, "inter": inter, "intra": intra}
    arrays, mask = inputs(rng, structure, n, m), rng.random((n, m)) < 0.6
    *outs, _ = forward_of(memory_mask=mask, **structure)(**arrays)
    thoughts, final, _, _ = plain_review_forward(*split(**arrays), memory_mask=mask, **structure)
    for one, other in zip(outs, (*thoughts, *final), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-13)
