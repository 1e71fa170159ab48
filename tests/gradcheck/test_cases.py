from rnnlab import layers
from rnnlab.gradcheck.cases import CELLS, LENGTHS, MEMORY_MASK, L, N, T


def test_the_cells_are_all_built_in_ones():
    steps = {name.removesuffix("_step_forward") for name in layers.__all__ if name.endswith("_step_forward")}
    assert steps - {"attention"} == set(CELLS)


def test_some_sequences_and_memories_are_empty_and_some_are_full():
    assert LENGTHS.shape == (N,)
    assert {0, T} < set(LENGTHS)
    assert MEMORY_MASK.shape == (N, L)
    assert {0, L} < set(MEMORY_MASK.sum(axis=1))
