"""Comparing compiled primitives with the reference."""

from __future__ import annotations

import contextlib
import inspect

import numpy as np
import pytest

from rnnlab.ops import numba as numba_ops
from rnnlab.ops import numpy as numpy_ops
from rnnlab.ops.numba import kernel
from rnnlab.ops.precision import products_in

from ..cases import SCRATCH, TOLERANCE, named

every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def compiled(function, **options):
    """What ``numba.njit`` makes of a function, saved for later processes as the kernels are."""
    function.__qualname__ += f"-{kernel._digest()}"
    dispatcher = kernel.numba.njit(**options)(function)
    with contextlib.suppress(RuntimeError):  # numba finds no folder
        dispatcher.enable_caching()
    return dispatcher


def run(ops, name, arguments, options, view=np.copy):
    """The result and the arrays, which the primitive may have written."""
    arguments = [view(a) if isinstance(a, np.ndarray) else a for a in arguments]
    result = named(ops, name)(*arguments, **options)
    arrays = [a for k, a in enumerate(arguments) if isinstance(a, np.ndarray) and k != SCRATCH.get(name)]
    return [result, *arrays]


def assert_same(name, arguments, options=None, view=np.copy):
    options = options or {}
    dtype = next(a.dtype.type for a in arguments if isinstance(a, np.ndarray))
    with np.errstate(invalid="ignore", over="ignore"):
        expected = run(numpy_ops, name, arguments, options)
    actual = run(numba_ops, name, arguments, options, view)
    for a, e in zip(actual, expected, strict=True):
        if e is None:
            assert a is None
            continue
        assert np.shape(a) == np.shape(e)
        assert np.asarray(a).dtype == np.asarray(e).dtype
        np.testing.assert_allclose(a, e, **TOLERANCE.get(dtype, {"rtol": 1e-2}))


def assert_same_at_once_in_bfloat16(chunk, shared):
    """A chunk of steps at once, in the context ``shared``, and step by step, with rounded factors."""
    with products_in("float32"):
        exact = chunk.run(numba_ops, at_once=False)
    with products_in("bfloat16"):
        expected = chunk.run(numba_ops, at_once=False)
        with shared():
            found = chunk.run(numba_ops, at_once=True)
    for name, array in found.items():
        # a sum in another order may be rounded to the other neighbour in bfloat16 at the next step
        np.testing.assert_allclose(array, expected[name], rtol=0, atol=0.01, err_msg=name)
        assert np.median(abs(array - expected[name])) < 1e-5
    assert abs(found["h"] - exact["h"]).max() > 1e-5


def strided(a):
    """The same numbers, every second column of a wider array."""
    wide = np.full((*a.shape[:-1], 2 * a.shape[-1]), 7, a.dtype)
    wide[..., ::2] = a
    return wide[..., ::2]


def read_only(a):
    copy = a.copy()
    copy.flags.writeable = False
    return copy


def assert_same_arguments(name):
    """The compiled primitive and the reference have the same arguments."""
    fused = named(numba_ops, name).fused
    expected = inspect.signature(named(numpy_ops, name)).parameters
    found = fused.parameters if isinstance(fused, kernel.Kernel) else inspect.signature(fused).parameters
    assert list(found) == list(expected)
