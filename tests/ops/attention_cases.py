"""Arguments of the primitives of attention, and the same in loops over queries and slots."""

import inspect

import numpy as np
import pytest

from rnnlab.ops import numpy as numpy_ops

NAMES = [
    "additive_attention_forward",
    "additive_attention_backward",
    "dot_attention_forward",
    "dot_attention_backward",
    "attention_memory_gradient",
]
SHAPES = [
    (5, 7, 3, 4),
    (3, 49, 40, 32),
    (1, 1, 1, 1),
    (4, 0, 3, 5),
    (0, 3, 2, 2),
    (2, 3, 65, 1),
]  # n, L, A, C
TOLERANCE = {np.float32: {"rtol": 1e-5, "atol": 1e-5}, np.float64: {"rtol": 1e-12, "atol": 1e-13}}

every_name = pytest.mark.parametrize("name", NAMES)
every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])
every_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)


def arguments_of(name, shape, rng, dtype=np.float64, *, masked=True):
    """All arguments by name; every second row of keys and memory belongs to nobody."""
    n, L, A, C = shape
    slots = 2 * rng.permutation(n * L).reshape(n, L)
    if masked:
        slots[rng.random((n, L)) < 0.3] = -1
        slots[n // 2 : n // 2 + 1] = -1
    rows = 2 * n * L + 1
    weights = np.where(slots >= 0, rng.random((n, L)), 0)
    weights /= np.maximum(weights.sum(axis=1, keepdims=True), 1e-9)
    shapes = {
        "dcontext": (n, C), "query": (n, A), "keys": (rows, A), "v": (A,), "memory": (rows, C),
        "weights": (n, L), "dscores": (n, L), "context": (n, C), "dquery": (n, A), "dkeys": (rows, A),
        "dv": (n, A), "dmemory": (rows, C),
    }  # fmt: skip
    made = {key: rng.standard_normal(shape).astype(dtype) for key, shape in shapes.items()}
    made |= {"slots": slots, "weights": weights.astype(dtype)}
    return {key: made[key] for key in inspect.signature(getattr(numpy_ops, name)).parameters}


def run(ops, name, arguments):
    """The arguments after the call."""
    after = {key: array.copy() for key, array in arguments.items()}
    assert getattr(ops, name)(**after) is None
    return after


def plain(name, a):
    """The same, one query and one slot at a time."""
    a = {key: array.copy() for key, array in a.items()}
    for n, slots in enumerate(a["slots"]):
        here = [i for i, slot in enumerate(slots) if slot >= 0]
        if name == "attention_memory_gradient":
            for i in here:
                a["dmemory"][slots[i]] += a["weights"][n, i] * a["dcontext"][n]
            continue
        keys, memory = [a["keys"][slots[i]] for i in here], [a["memory"][slots[i]] for i in here]
        query = a["query"][n]
        if name.endswith("forward"):
            a["weights"][n], a["context"][n] = 0, 0
            additive = name.startswith("additive")
            scores = [a["v"] @ np.tanh(query + key) if additive else query @ key for key in keys]
            weights = np.exp(scores) / np.exp(scores).sum()
            for i, weight, row in zip(here, weights, memory, strict=True):
                a["weights"][n, i] = weight
                a["context"][n] += weight * row
            continue
        weights = a["weights"][n, here]
        dweights = a["dscores"][n, here] + [row @ a["dcontext"][n] for row in memory]
        dscores = weights * (dweights - weights @ dweights)
        a["dscores"][n] = 0
        for i, key, dscore in zip(here, keys, dscores, strict=True):
            a["dscores"][n, i] = dscore
            if name.startswith("additive"):
                hidden = np.tanh(query + key)
                d = dscore * a["v"] * (1 - hidden**2)
                a["dv"][n] += dscore * hidden
                a["dquery"][n] += d
                a["dkeys"][slots[i]] += d
            else:
                a["dquery"][n] += dscore * key
                a["dkeys"][slots[i]] += dscore * query
    return a


def assert_same(actual, expected, dtype):
    for key, array in expected.items():
        assert actual[key].dtype == array.dtype, key
        np.testing.assert_allclose(actual[key], array, err_msg=key, **TOLERANCE[dtype])
