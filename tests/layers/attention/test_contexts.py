"""Contexts and their backward: gradients that are left out, empty memories, chunks of steps."""

import numpy as np

from rnnlab.layers.attention.decoder import attentive_backward
from rnnlab.ops import ops_for

from ..attending import PARTS, batch, options_of
from ..reference import assert_same


def test_a_selector_of_nothing_has_no_gradient(rng, monkeypatch):
    """With an empty memory, in workspaces that hold other numbers."""
    given = batch(rng, selector=True, L=0)
    monkeypatch.setattr(ops_for(given.arrays["x"]), "empty", lambda shape, dtype: np.full(shape, 7, dtype))
    *outs, cache = given.forward()
    grads = dict(zip(given.arrays, given.backward(*map(np.ones_like, outs), cache), strict=True))
    for name in ("selector_w", "selector_b", "source_Wq", "Wz"):
        np.testing.assert_array_equal(grads[name], 0)


def test_the_gradient_of_the_memory_may_be_left_out(rng):
    b = batch(rng, **options_of(PARTS["both"]))
    h, contexts, *_, cache = b.forward()
    dx, _, dmemory, dparams = attentive_backward(h, contexts, cache, memory_gradient=False)
    expected_dx, _, _, expected = attentive_backward(h, contexts, cache)
    assert dmemory is None
    assert_same((dx, *dparams.values()), (expected_dx, *expected.values()))


def test_gradients_of_outputs_may_be_left_out(rng):
    b = batch(rng, **options_of(PARTS["both"]))
    *outs, cache = b.forward()
    nothing = [np.zeros_like(out) for out in outs[1:]]
    dx, dstate, dmemory, dparams = attentive_backward(outs[0], None, cache)
    assert_same((dx, *dstate, dmemory, *dparams.values()), b.backward(outs[0], *nothing, cache))


def test_chunks_of_steps_make_no_difference(rng, monkeypatch):
    b = batch(rng, **options_of(PARTS["both"]))
    *outs, cache = b.forward()
    grads = b.backward(*outs, cache)
    for name in ("_CHUNK_ROWS", "_CHUNK_NUMBERS"):
        monkeypatch.setattr(f"rnnlab.layers.recurrent.packing.{name}", 1)
    *in_chunks, cache = b.forward()
    for one, other in zip((*in_chunks, *b.backward(*outs, cache)), (*outs, *grads), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-13)
