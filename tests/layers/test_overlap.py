"""Arrays that share memory."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rnnlab.layers.overlap import in_same_memory

SPANS = st.tuples(st.integers(0, 40), st.integers(0, 6), st.integers(1, 3), st.booleans())


@given(st.lists(SPANS, max_size=14))
def test_memory_that_is_shared_is_found_for_every_order(spans):
    memory = np.zeros(64)
    arrays = {
        str(k): (memory[start : start + step * size : step], writes)
        for k, (start, size, step, writes) in enumerate(spans)
    }
    written = {name: array for name, (array, writes) in arrays.items() if writes}
    read = {name: array for name, (array, writes) in arrays.items() if not writes}
    pairs = {
        (one, other)
        for one, array in written.items()
        for other in arrays
        if one != other and np.shares_memory(array, arrays[other][0])
    }
    found = in_same_memory(written, read)
    assert (found in pairs) if pairs else (found is None)
