"""One query to several memories is as many attentions, each with its part of the stacked parameters."""

import numpy as np

from rnnlab.layers import (
    attention_keys_backward,
    attention_keys_forward,
    attention_step_backward,
    attention_step_forward,
)
from rnnlab.layers.attention.memories import attend, attend_backward
from rnnlab.layers.attention.source_rows import SourceRows

N, H, A, G = 3, 4, 7, 5
SIZES = [(3, 2), (2, 4)]  # slots and numbers of each memory


def arrays_of(rng):
    M = sum(C for _, C in SIZES)
    shapes = {"Wz": (M, G), "Wq": (H, 2 * A), "Wm": (M, A), "bm": (2 * A,), "v": (2 * A,)}
    params = {name: rng.standard_normal(shape) for name, shape in shapes.items()}
    return rng.standard_normal((N, H)), [rng.standard_normal((N, *size)) for size in SIZES], params


def test_each_attention_is_that_of_a_query(rng):
    h, memories, params = arrays_of(rng)
    gates, dgates = np.zeros((N, G)), rng.standard_normal((N, G))
    rows = [SourceRows.of("test", memory, None) for memory in memories]
    weights = [np.zeros(memory.shape[:2]) for memory in memories]
    grads, dh = {name: np.zeros(array.shape) for name, array in params.items()}, np.zeros((N, H))
    drows = [np.zeros(each.rows.shape) for each in rows]
    cache = attend(h, rows, params, weights, gates)
    attend_backward(cache, h, dgates, params, grads, dh, drows)
    expected_gates, expected_dh, start = np.zeros((N, G)), np.zeros((N, H)), 0
    for j, memory in enumerate(memories):
        part, start = slice(start, start + memory.shape[2]), start + memory.shape[2]
        columns = slice(j * A, (j + 1) * A)
        own = {"Wq": params["Wq"][:, columns], "Wm": params["Wm"][part]}
        own |= {"b": params["bm"][columns], "v": params["v"][columns]}
        keys, _ = attention_keys_forward(memory, own)
        context, alphas, step = attention_step_forward(h, keys, memory, own)
        expected_gates += context @ params["Wz"][part]
        np.testing.assert_allclose(weights[j], alphas, rtol=1e-12)
        dquery, dkeys, dvalues, dparams = attention_step_backward(dgates @ params["Wz"][part].T, step)
        expected_dh += dquery
        dmemory, dkey_params = attention_keys_backward(dkeys, attention_keys_forward(memory, own)[1])
        np.testing.assert_allclose(drows[j].reshape(memory.shape), dvalues + dmemory, rtol=1e-9)
        for found, expected in (
            (grads["Wq"][:, columns], dparams["Wq"]),
            (grads["v"][columns], dparams["v"]),
            (grads["Wm"][part], dkey_params["Wm"]),
            (grads["bm"][columns], dkey_params["b"]),
            (grads["Wz"][part], context.T @ dgates),
        ):
            np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-14)
    np.testing.assert_allclose(gates, expected_gates, rtol=1e-12)
    np.testing.assert_allclose(dh, expected_dh, rtol=1e-9)


def test_a_memory_without_a_gradient(rng):
    h, memories, params = arrays_of(rng)
    rows = [SourceRows.of("test", memory, None) for memory in memories]
    cache = attend(h, rows, params, [np.zeros(memory.shape[:2]) for memory in memories], np.zeros((N, G)))
    found = []
    for first in (np.zeros(rows[0].rows.shape), None):
        grads, dh = {name: np.zeros(array.shape) for name, array in params.items()}, np.zeros((N, H))
        attend_backward(cache, h, np.ones((N, G)), params, grads, dh, [first, None])
        found.append((dh, *grads.values()))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
