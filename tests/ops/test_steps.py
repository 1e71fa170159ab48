"""Steps of packed sequences: their slices, and errors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rnnlab.errors import InputError
from rnnlab.ops.steps import Steps

RAGGED = st.lists(st.integers(1, 5), max_size=6).map(lambda counts: sorted(counts, reverse=True))


@given(RAGGED, st.integers(0, 2))
def test_each_step_reads_what_the_one_before_wrote(alive, without_steps):
    sequences = max(alive, default=0) + without_steps
    start, written = 0, slice(0, sequences)
    for (rows, before, after), count in zip(Steps(sequences, alive), alive, strict=True):
        assert rows == slice(start, start + count)
        assert before == slice(written.start, written.start + count)
        assert after == slice(sequences + start, sequences + start + count)
        start, written = start + count, after


@given(RAGGED, st.data())
def test_a_sequence_of_steps(alive, data):
    steps = Steps(5, alive)
    expected = list(steps)
    assert len(steps) == len(alive)
    assert [steps[t] for t in range(len(steps))] == expected
    assert list(reversed(steps)) == expected[::-1]
    part = slice(*(data.draw(st.none() | st.integers(-7, 7)) for _ in range(2)))
    assert isinstance(steps[part], Steps)
    assert list(steps[part]) == expected[part]
    rows = [each for each, _, _ in expected[part]]
    assert steps[part].rows == (slice(rows[0].start, rows[-1].stop) if rows else slice(0, 0))


@pytest.mark.parametrize("alive", [[2, 3], [4], [2, 0], [-1], [[1]], [1.0], ["a"]], ids=str)
def test_numbers_of_sequences_that_do_not_fit(alive):
    with pytest.raises(InputError, match=r"Steps: alive is \[.*\], expected an integer from 1 to 3"):
        Steps(3, alive)


def test_steps_are_consecutive():
    steps = Steps(2, [2, 1])
    with pytest.raises(InputError, match="the slice has step -1, expected consecutive steps"):
        steps[::-1]
    with pytest.raises(IndexError):
        steps[2]
    assert not Steps(2, np.empty(0, int))
