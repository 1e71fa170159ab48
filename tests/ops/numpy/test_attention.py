"""Attention on NumPy against loops over queries and slots."""

import numpy as np
import pytest

from rnnlab.ops import numpy as ops

from ..attention_cases import (
    NAMES,
    arguments_of,
    assert_same,
    every_dtype,
    every_name,
    every_shape,
    plain,
    run,
)


@every_name
@every_shape
@pytest.mark.parametrize("masked", [False, True])
def test_the_equations(name, shape, masked, rng):
    arguments = arguments_of(name, shape, rng, masked=masked)
    assert_same(run(ops, name, arguments), plain(name, arguments), np.float64)


@every_name
def test_a_memory_without_rows(name, rng):
    arguments = arguments_of(name, (2, 3, 4, 5), rng)
    arguments["slots"][...] = -1
    for key in {"keys", "memory", "dkeys", "dmemory"} & arguments.keys():
        arguments[key] = arguments[key][:0]
    assert_same(run(ops, name, arguments), plain(name, arguments), np.float64)


@pytest.mark.parametrize("name", ["additive_attention_forward", "dot_attention_forward"])
@pytest.mark.parametrize("masked", [False, True])
def test_large_scores(name, masked, rng):
    arguments = arguments_of(name, (4, 6, 8, 5), rng, masked=masked)
    arguments["v" if "v" in arguments else "query"] *= 1e4
    weights = run(ops, name, arguments)["weights"]
    np.testing.assert_allclose(weights.sum(axis=1), (arguments["slots"] >= 0).any(axis=1))


@every_name
def test_rows_of_wider_arrays(name, rng):
    arguments = arguments_of(name, (4, 6, 8, 5), rng)
    expected, after = plain(name, arguments), {key: array.copy() for key, array in arguments.items()}
    for key in {"weights", "slots", "dscores"} & after.keys():
        wide = np.full((4, 9), 7, after[key].dtype)
        wide[:, 2:8] = after[key]
        after[key] = wide[:, 2:8]
    getattr(ops, name)(*after.values())
    assert_same(after, expected, np.float64)


@pytest.mark.parametrize("name", NAMES[:4])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@every_dtype
def test_rows_outside_the_slots_are_not_read(name, bad, dtype, rng):
    arguments = arguments_of(name, (4, 6, 8, 5), rng, dtype)
    unread = np.setdiff1d(np.arange(len(arguments["keys"])), arguments["slots"])
    for key in ("keys", "memory"):
        arguments[key][unread] = bad
    if "dscores" in arguments:
        arguments["dscores"][arguments["slots"] < 0] = bad
    with np.errstate(all="raise", invalid="ignore"):  # a BLAS may compute with what is left in its buffers
        found = run(ops, name, arguments)
    assert all(np.isfinite(array).all() for key, array in found.items() if key not in ("keys", "memory"))
    read = arguments["slots"][arguments["slots"] >= 0][0]
    arguments["keys"][read, 3] = arguments["memory"][read, 2] = np.nan
    with np.errstate(invalid="ignore"):  # whether a product of NaN warns depends on the BLAS
        found = run(ops, name, arguments)
    assert np.isnan(found.get("context", found.get("dquery"))).any()
    assert not found.get("dscores", found["weights"])[arguments["slots"] < 0].any()


@pytest.mark.parametrize("name", ["additive_attention_forward", "dot_attention_forward"])
def test_queries_may_share_slots(name, rng):
    """As the beams of one source do."""
    arguments = arguments_of(name, (3, 6, 8, 5), rng)
    arguments["slots"] = np.repeat(arguments["slots"][:1], 3, axis=0)
    assert_same(run(ops, name, arguments), plain(name, arguments), np.float64)
