"""The real rows of a memory, from masks in host memory."""

import numpy as np
import pytest

from rnnlab.layers.attention.source_rows import SourceRows

N, L, C = 3, 4, 2
MASK = np.array([[1, 0, 1, 1], [0, 0, 0, 0], [1, 1, 1, 1]], bool)


@pytest.mark.parametrize("mask", [None, MASK, MASK.astype(int), np.ones((N, L), bool)])
def test_rows_of_a_memory(mask, rng):
    """Each slot names the row of its own vector; masked ones name none."""
    memory = rng.standard_normal((N, L, C))
    rows, slots, real = SourceRows.of("f", memory, mask)
    given = np.ones((N, L), bool) if mask is None else mask.astype(bool)
    assert len(rows) == given.sum()
    np.testing.assert_array_equal(slots >= 0, given)
    np.testing.assert_array_equal(rows[slots[given]], memory[given])
    if given.all():
        assert real is None
    else:
        np.testing.assert_array_equal(memory.reshape(-1, C)[real], rows)


def test_a_mask_of_another_shape(rng):
    with pytest.raises(ValueError, match=r"f: memory_mask has shape \(3, 3\), expected \(N, L\) = \(3, 4\)"):
        SourceRows.of("f", rng.standard_normal((N, L, C)), np.ones((N, L - 1), bool))
