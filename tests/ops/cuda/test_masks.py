"""Dropout on CuPy: the masks of the reference, bit for bit."""

import numpy as np
import pytest

from rnnlab.ops import numpy as numpy_ops

from ..cases import SHAPES
from .compare import every_dtype, results


@every_dtype
@pytest.mark.parametrize("shape", [*SHAPES, (40, 1000)], ids=str)
@pytest.mark.parametrize("seed", [0, 2**63 - 1])
def test_masks_in_the_same_places(seed, shape, ops, dtype, normal):
    x, other = normal(*shape), normal(*shape)
    for name, arguments in (
        ("dropout", [x, 0.3, seed, other]),
        ("dropout_mask", [0.15, seed, 12345, other]),
    ):
        for a, e in zip(
            results(ops, name, arguments, {}), results(numpy_ops, name, arguments, {}), strict=True
        ):
            np.testing.assert_array_equal(a, e, err_msg=name)


@every_dtype
def test_dropout_hides_nothing_that_is_not_finite(ops, dtype):
    x = np.resize(np.array([np.nan, np.inf, -np.inf], dtype), 90)
    with np.errstate(invalid="ignore"):
        *_, expected = results(numpy_ops, "dropout", [x, 0.5, 3, np.zeros_like(x)], {})
    *_, found = results(ops, "dropout", [x, 0.5, 3, np.zeros_like(x)], {})
    np.testing.assert_array_equal(found, expected)
    assert not np.isfinite(found).any()


@every_dtype
def test_masks_of_an_out_that_is_not_contiguous(ops, dtype, normal):
    x, wide = normal(3, 8), ops.zeros((3, 8), dtype)
    expected = np.empty((3, 4), dtype)
    numpy_ops.dropout(x[:, ::2], 0.3, 5, expected)
    ops.dropout(ops.asarray(x)[:, ::2], 0.3, 5, wide[:, ::2])
    np.testing.assert_array_equal(ops.asnumpy(wide[:, ::2]), expected)
    numpy_ops.dropout_mask(0.3, 5, 7, expected)
    ops.dropout_mask(0.3, 5, 7, wide[:, ::2])
    np.testing.assert_array_equal(ops.asnumpy(wide[:, ::2]), expected)
    assert not ops.asnumpy(wide)[:, 1::2].any()
