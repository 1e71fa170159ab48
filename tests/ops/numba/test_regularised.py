"""Compiled steps with dropout and zoneout against the reference."""

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("threadpoolctl")

from rnnlab.ops import numba as numba_ops
from rnnlab.ops import numpy as numpy_ops

from ..cases import GATES, SHAPES, TOLERANCE, run_regularised, step_masks
from .compare import every_dtype


@pytest.mark.one_in(2)
@every_dtype
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("cell", GATES)
@pytest.mark.parametrize("seeds", [None, [5, 2**63 - 1, 7]], ids=["inference", "seeds"])
def test_regularised_steps(seeds, cell, shape, dtype):
    for masks in step_masks(cell):
        masks = masks._replace(seeds=seeds, start=12345)
        actual, expected = (
            run_regularised(ops, cell, *shape, masks, np.random.default_rng(5), dtype)
            for ops in (numba_ops, numpy_ops)
        )
        for name, array in actual.items():
            np.testing.assert_allclose(array, expected[name], **TOLERANCE[dtype], err_msg=f"{name}, {masks}")
