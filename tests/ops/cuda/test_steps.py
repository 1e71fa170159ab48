"""The steps of a chunk of each cell on CuPy against NumPy."""

import numpy as np
import pytest

from rnnlab.ops import numpy as numpy_ops

from ..cases import TOLERANCE
from ..chunk_cases import CELLS, Chunk, steps_of
from .compare import every_dtype


@every_dtype
@pytest.mark.parametrize("narrow", [False, True], ids=["", "inputs"])
@pytest.mark.parametrize("cell", CELLS)
def test_steps_of_a_chunk(cell, narrow, ops, dtype, rng):
    chunk = Chunk(cell, (9, 9, 5, 2, 1), 37, dtype, rng, earlier=2)
    expected = chunk.run(*steps_of(numpy_ops, cell), numpy_ops.prepacked, narrow=narrow)
    found = chunk.run(
        *steps_of(ops, cell),
        lambda weight: ops.prepacked(ops.asarray(weight)),
        lambda array: ops.asarray(array.copy()),
        narrow,
    )
    for name, array in found.items():
        np.testing.assert_allclose(ops.asnumpy(array), expected[name], **TOLERANCE[dtype], err_msg=name)
