"""Steps of decoding: the same as the sequence, for hypotheses in any order."""

import re

import numpy as np
import pytest
from hypothesis import given, settings

from rnnlab.decoding.state_rows import select
from rnnlab.layers.attention.contexts import Context
from rnnlab.layers.attention.decoding import attentive_start, attentive_step

from ..attending import MASK, any_batch, batch, every_part
from ..reference import assert_same


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


@every_part
def test_rows_of_a_decoding_state_may_be_taken_in_any_order(parts, rng):
    """As in beam search: each row continues from its own past states."""
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
        assert_same(again[0], h)  # a state may be used twice
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
    b = batch(rng, "gru", target=True)
    a = b.arrays
    state = attentive_start((a["h0"],), a["memory"], {n: a[n] for n in b.param_names}, **b.options)
    *_, state = attentive_step(a["x"][:, 0], state)
    *_, state = attentive_step(a["x"][:, 1], state)
    (taken_h,), origins, slots, history, past, decoder = select(state, np.array([1, 1, 0, 2, 2]))
    assert past is state[4]
    assert decoder is state[5]
    assert taken_h.shape == (5, 4)
    assert [each.shape for each in (origins, slots, history)] == [(5,), (5, 3), (5, 1)]
    assert {each.dtype.kind for each in (origins, slots, history)} == {"i"}


def test_copies_of_a_row_attend_once(rng, monkeypatch):
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


@pytest.mark.parametrize("shape", [(3, 1), (2, 2)])
def test_inputs_of_another_shape(shape, rng):
    b = batch(rng, "gru")
    a = b.arrays
    state = attentive_start((a["h0"],), a["memory"], {n: a[n] for n in b.param_names}, **b.options)
    message = f"attentive_step: x has shape {shape}, expected (N, D) = (3, 2)"
    with pytest.raises(ValueError, match=re.escape(message)):
        attentive_step(np.ones(shape), state)
