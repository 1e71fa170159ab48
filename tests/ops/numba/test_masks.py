"""Compiled dropout and zoneout draw the masks of the reference."""

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("threadpoolctl")

from rnnlab.ops import numba as numba_ops
from rnnlab.ops import numpy as numpy_ops

from ..cases import SHAPES
from .compare import every_dtype, run, strided


@every_dtype
@pytest.mark.parametrize("shape", [(30, 40), (3, 4, 5), (0, 3), (40, 1000)], ids=str)
@pytest.mark.parametrize("seed", [0, 12345678901234567, 2**63 - 1])
def test_dropout_of_the_same_places(seed, shape, dtype):
    x = np.random.default_rng(5).standard_normal(shape).astype(dtype)
    outs = np.empty(shape, dtype), np.empty(shape, dtype)
    for ops, out in zip((numba_ops, numpy_ops), outs, strict=True):
        ops.dropout(x, 0.3, seed, out)
    np.testing.assert_array_equal(*outs)
    out = strided(np.zeros(shape, dtype))  # and of one that is not contiguous
    numba_ops.dropout(strided(x), 0.3, seed, out)
    np.testing.assert_array_equal(out, outs[1])


@pytest.mark.usefixtures("lenient")
@every_dtype
@pytest.mark.parametrize("shape", [*SHAPES, (40, 1000)], ids=str)
@pytest.mark.parametrize("start", [0, 12345])
@pytest.mark.parametrize("view", [np.copy, strided])
def test_masks_from_a_start_on(view, start, shape, dtype):
    numbers = np.random.default_rng(5)
    a, b = (numbers.standard_normal(shape).astype(dtype) for _ in range(2))
    for name in ("zoneout_forward", "zoneout_backward"):
        actual, expected = (
            run(ops, name, [a, 0.15, 2**63 - 1, start, b], {}, how)
            for ops, how in ((numba_ops, view), (numpy_ops, np.copy))
        )
        np.testing.assert_array_equal(actual[1], expected[1])
        np.testing.assert_array_equal(actual[2], expected[2])
    masks = view(np.zeros(shape, dtype)), np.empty(shape, dtype)
    for ops, mask in zip((numba_ops, numpy_ops), masks, strict=True):
        ops.dropout_mask(0.15, 2**63 - 1, start, mask)
    np.testing.assert_array_equal(*masks)
