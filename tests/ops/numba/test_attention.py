"""Attention by compiled kernels against the reference."""

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("threadpoolctl")

from rnnlab.ops import numba as numba_ops
from rnnlab.ops import numpy as numpy_ops

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
@every_dtype
@pytest.mark.parametrize("masked", [False, True])
def test_the_reference(name, shape, dtype, masked, rng):
    arguments = arguments_of(name, shape, rng, dtype, masked=masked)
    assert_same(run(numba_ops, name, arguments), run(numpy_ops, name, arguments), dtype)
    kernel = getattr(numba_ops, name).fused
    assert list(kernel.parameters) == list(arguments)
    kernel(*(array.copy() for array in arguments.values()))  # it took them, rather than the reference


@every_name
@every_dtype
def test_weights_and_slots_may_be_part_of_wider_arrays(name, dtype, rng):
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
def test_what_is_not_finite_shows_and_rows_outside_the_slots_are_not_read(name, bad, dtype, rng):
    arguments = arguments_of(name, (4, 6, 8, 5), rng, dtype)
    unread = np.setdiff1d(np.arange(len(arguments["keys"])), arguments["slots"])
    for key in ("keys", "memory"):
        arguments[key][unread] = bad
    if "dscores" in arguments:
        arguments["dscores"][arguments["slots"] < 0] = bad
    with np.errstate(all="raise"):
        expected = run(numpy_ops, name, arguments)
    assert all(np.isfinite(array).all() for key, array in expected.items() if key not in ("keys", "memory"))
    assert_same(run(numba_ops, name, arguments), expected, dtype)

    read = arguments["slots"][arguments["slots"] >= 0][0]
    arguments["keys"][read, 3] = arguments["memory"][read, 2] = np.nan
    with np.errstate(invalid="ignore"):  # whether a product of NaN warns depends on the BLAS
        expected = run(numpy_ops, name, arguments)
    assert np.isnan(expected.get("context", expected.get("dquery"))).any()
    assert_same(run(numba_ops, name, arguments), expected, dtype)


@pytest.mark.parametrize("name", ["additive_attention_forward", "dot_attention_forward"])
def test_queries_may_share_slots(name, rng):
    """As the beams of one source do."""
    arguments = arguments_of(name, (3, 6, 8, 5), rng)
    arguments["slots"] = np.repeat(arguments["slots"][:1], 3, axis=0)
    for ops in (numpy_ops, numba_ops):
        assert_same(run(ops, name, arguments), plain(name, arguments), np.float64)


@every_name
def test_half_precision(name, rng):
    arguments = arguments_of(name, (3, 4, 5, 6), rng, np.float16)
    for ops in (numpy_ops, numba_ops):
        with pytest.raises(TypeError, match=f"{name}: [a-z]* has dtype float16, expected float32 or float64"):
            getattr(ops, name)(**arguments)
