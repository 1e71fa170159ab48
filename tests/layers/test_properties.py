"""What must hold for any batch: random shapes and lengths, all four cells."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rnnlab.gradcheck.numeric import projected_check
from rnnlab.layers import temporal_softmax_loss

from .reference import CELLS, assert_same


@st.composite
def ragged_batches(draw):
    """A cell, its inputs, lengths, and a gradient of each output."""
    cell = draw(st.sampled_from(CELLS))
    N, T, D, H = draw(st.tuples(st.integers(1, 4), st.integers(1, 5), st.integers(1, 3), st.integers(1, 4)))
    lengths = np.array(draw(st.lists(st.integers(0, T), min_size=N, max_size=N)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    inputs = cell.inputs(rng, N, T, D, H)
    douts = [rng.standard_normal((N, T, H)), *(rng.standard_normal((N, H)) for _ in cell.states)]
    return cell, inputs, lengths, douts, rng


def run(cell, inputs, lengths, douts):
    """The outputs, and the gradients by the inputs' names."""
    *outs, cache = cell.forward(**inputs, lengths=lengths, return_state=True)
    return outs, dict(zip(inputs, cell.backward_all(*douts, cache), strict=True))


def assert_all_close(actual, expected):
    for one, other in zip(actual, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


@given(ragged_batches())
@settings(max_examples=20)
def test_any_batch_is_the_equations(batch):
    cell, inputs, lengths, *_ = batch
    *outs, _ = cell.forward(**inputs, lengths=lengths, return_state=True)
    assert_all_close(outs, cell.reference(inputs, lengths))


@given(ragged_batches())
@settings(max_examples=30)
def test_gradients_along_a_random_direction(batch):
    cell, inputs, lengths, douts, rng = batch
    flat = np.concatenate([array.ravel() for array in inputs.values()])
    sizes = np.cumsum([array.size for array in inputs.values()])[:-1]

    def views():
        parts = np.split(flat, sizes)
        return {
            name: part.reshape(array.shape) for (name, array), part in zip(inputs.items(), parts, strict=True)
        }

    def value():
        *outs, _ = cell.forward(**views(), lengths=lengths, return_state=True)
        return sum(float(np.sum(out * dout)) for out, dout in zip(outs, douts, strict=True))

    _, grads = run(cell, inputs, lengths, douts)
    grad = np.concatenate([grads[name].ravel() for name in inputs])
    assert projected_check(value, flat, grad, rng=rng) < 1e-7


@given(ragged_batches(), st.integers(1, 3))
@settings(max_examples=20)
def test_more_padding_changes_nothing(batch, extra):
    cell, inputs, lengths, douts, _ = batch
    N, T, _ = inputs["x"].shape
    outs, grads = run(cell, inputs, lengths, douts)

    def longer(array, value):
        return np.concatenate([array, np.full((N, extra, array.shape[2]), value)], axis=1)

    padded = inputs | {"x": longer(inputs["x"], np.nan)}
    padded_outs, padded_grads = run(cell, padded, lengths, [longer(douts[0], 0.0), *douts[1:]])
    assert_all_close([padded_outs[0][:, :T], *padded_outs[1:]], outs)
    assert_same(padded_outs[0][:, T:], np.repeat(padded_outs[1][:, None], extra, axis=1))
    assert not padded_grads["x"][:, T:].any()
    padded_grads["x"] = padded_grads["x"][:, :T]
    assert_all_close(padded_grads.values(), grads.values())


@given(ragged_batches())
@settings(max_examples=20)
def test_the_order_of_a_batch_does_not_matter(batch):
    cell, inputs, lengths, douts, rng = batch
    outs, grads = run(cell, inputs, lengths, douts)
    order = rng.permutation(len(lengths))
    rows = [name for name in inputs if name in ("x", "h0", "c0")]
    permuted_outs, permuted_grads = run(
        cell,
        inputs | {name: inputs[name][order] for name in rows},
        lengths[order],
        [dout[order] for dout in douts],
    )
    assert_all_close(permuted_outs, [out[order] for out in outs])
    expected = grads | {name: grads[name][order] for name in rows}
    assert_all_close(permuted_grads.values(), expected.values())


@given(ragged_batches())
@settings(max_examples=20)
def test_a_batch_is_its_sequences_one_at_a_time(batch):
    """Each cut to its own length; the gradients of the weights add up."""
    cell, inputs, lengths, douts, _ = batch
    outs, grads = run(cell, inputs, lengths, [np.zeros_like(douts[0]), *douts[1:]])
    total = {name: np.zeros_like(inputs[name]) for name in ("Wx", "Wh", "b")}
    for n, length in enumerate(lengths):
        alone = inputs | {name: inputs[name][n : n + 1] for name in inputs if name not in total}
        alone["x"] = alone["x"][:, :length]
        dfinals = [dout[n : n + 1] for dout in douts[1:]]
        outs_n, grads_n = run(cell, alone, None, [np.zeros((1, length, douts[0].shape[2])), *dfinals])
        assert_all_close(outs_n, [outs[0][n : n + 1, :length], *(out[n : n + 1] for out in outs[1:])])
        for name in total:
            total[name] += grads_n[name]
    assert_all_close(total.values(), [grads[name] for name in total])


@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(1, 4), st.integers(2, 6))
@settings(max_examples=30)
def test_softmax_gradients_sum_to_zero_at_every_step(seed, N, T, V):
    """Adding a number to all scores of a step changes no probability."""
    rng = np.random.default_rng(seed)
    x, y, mask = rng.standard_normal((N, T, V)), rng.integers(V, size=(N, T)), rng.random((N, T)) < 0.5
    loss, dx = temporal_softmax_loss(x, y, mask)
    np.testing.assert_allclose(dx.sum(axis=2), 0, atol=1e-14)
    shifted_loss, shifted_dx = temporal_softmax_loss(x + 10 * rng.standard_normal((N, T, 1)), y, mask)
    np.testing.assert_allclose(shifted_loss, loss, rtol=1e-12)
    np.testing.assert_allclose(shifted_dx, dx, atol=1e-14)
