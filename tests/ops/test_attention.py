"""The primitives of attention: the reference against plain loops, the fused kernels against the reference."""

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


@pytest.fixture
def numba_ops():
    pytest.importorskip("numba")
    return pytest.importorskip("rnnlab.ops.numba")


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


@every_name
@every_shape
def test_reference_is_the_equations(name, shape, rng):
    arguments = arguments_of(name, shape, rng)
    assert_same(run(numpy_ops, name, arguments), plain(name, arguments), np.float64)


@every_name
@every_shape
@every_dtype
@pytest.mark.parametrize("masked", [False, True])
def test_fused_is_the_reference(name, shape, dtype, masked, numba_ops, rng):
    arguments = arguments_of(name, shape, rng, dtype, masked=masked)
    assert_same(run(numba_ops, name, arguments), run(numpy_ops, name, arguments), dtype)
    kernel = getattr(numba_ops, name).fused
    assert list(inspect.signature(kernel.function).parameters) == list(arguments)
    kernel(*(array.copy() for array in arguments.values()))  # it took them, rather than the reference


@every_name
@every_dtype
def test_weights_and_cells_may_be_part_of_wider_arrays(name, dtype, numba_ops, rng):
    arguments = arguments_of(name, (4, 6, 8, 5), rng, dtype)
    expected = run(numpy_ops, name, arguments)
    for ops in (numpy_ops, numba_ops):
        after = {key: array.copy() for key, array in arguments.items()}
        for key in {"weights", "slots", "dscores"} & after.keys():
            wide = np.full((4, 9), 7, after[key].dtype)
            wide[:, 2:8] = after[key]
            after[key] = wide[:, 2:8]
        getattr(getattr(ops, name), "fused", getattr(ops, name))(*after.values())
        assert_same(after, expected, dtype)


@pytest.mark.parametrize("name", NAMES[:4])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@every_dtype
def test_what_is_not_finite_shows_and_where_no_cell_is_it_is_not_read(name, bad, dtype, numba_ops, rng):
    arguments = arguments_of(name, (4, 6, 8, 5), rng, dtype)
    unread = np.setdiff1d(np.arange(len(arguments["keys"])), arguments["slots"])
    for key in ("keys", "memory"):
        arguments[key][unread] = bad
    with np.errstate(all="raise"):
        expected = run(numpy_ops, name, arguments)
    assert all(np.isfinite(array).all() for key, array in expected.items() if key not in ("keys", "memory"))
    assert_same(run(numba_ops, name, arguments), expected, dtype)

    read = arguments["slots"][arguments["slots"] >= 0][0]
    arguments["keys"][read, 3] = arguments["memory"][read, 2] = np.nan
    with np.errstate(invalid="ignore"):  # whether NaN in a product is told depends on the BLAS
        expected = run(numpy_ops, name, arguments)
    assert np.isnan(expected.get("context", expected.get("dquery"))).any()
    assert_same(run(numba_ops, name, arguments), expected, dtype)


@pytest.mark.parametrize("name", ["additive_attention_forward", "dot_attention_forward"])
def test_queries_may_share_cells(name, numba_ops, rng):
    """As the beams of one source do."""
    arguments = arguments_of(name, (3, 6, 8, 5), rng)
    arguments["slots"] = np.repeat(arguments["slots"][:1], 3, axis=0)
    for ops in (numpy_ops, numba_ops):
        assert_same(run(ops, name, arguments), plain(name, arguments), np.float64)


@every_name
def test_half_precision(name, numba_ops, rng):
    arguments = arguments_of(name, (3, 4, 5, 6), rng, np.float16)
    for ops in (numpy_ops, numba_ops):
        with pytest.raises(TypeError, match=f"{name}: [a-z]* has dtype float16, expected float32 or float64"):
            getattr(ops, name)(**arguments)
