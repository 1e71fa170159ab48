"""A step of beam search with the compiled search for the largest scores."""

import numpy as np
import pytest

from rnnlab.ops import numba as numba_ops

from ..beam_cases import KINDS, SHAPES, assert_same_step


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_a_step(kind, shape, rng):
    for dtype in (np.float32, np.float64):
        assert_same_step(numba_ops, rng, shape, kind, dtype)
        assert_same_step(numba_ops, rng, shape, kind, dtype, penalised=True)
