"""The plan of a batch of sequences: what is packed where, against a plain walk over the steps."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rnnlab.layers.recurrence import Steps

from .reference import assert_same


@st.composite
def batches(draw):
    """N, T and the lengths of N sequences."""
    N, T = draw(st.integers(0, 5)), draw(st.integers(0, 5))
    return N, T, np.array(draw(st.lists(st.integers(0, T), min_size=N, max_size=N)), dtype=int)


def plan(N, T, lengths):
    return Steps.of("f", (N, T), lengths=lengths, like=np.zeros(1))


def numbered(N, T):
    """An array (N, T, 2) whose rows all differ, none of them zero."""
    return np.arange(1.0, 2 * N * T + 1).reshape(N, T, 2)


@given(batches())
@settings(max_examples=60)
def test_packed_rows_are_the_real_ones_step_by_step(batch):
    N, T, lengths = batch
    x = numbered(N, T)
    order = sorted(range(N), key=lambda n: -lengths[n])
    expected = [x[n, t] for t in range(T) for n in order if t < lengths[n]]
    assert_same(plan(*batch).pack(x), np.reshape(expected, (len(expected), 2)))


@given(batches())
@settings(max_examples=60)
def test_packing_round_trip(batch):
    N, T, lengths = batch
    x = numbered(N, T)
    steps = plan(*batch)
    x[np.arange(T) >= lengths[:, None]] = 0
    assert_same(steps.unpack(steps.pack(x)), x)
    rows = steps.pack(x)
    assert_same(steps.pack(steps.unpack(rows)), rows)


@given(batches())
@settings(max_examples=60)
def test_states_are_counters_of_the_steps_done(batch):
    """Run a recurrence h_t = h_{t-1} + 1 from h_0 = 100 n through the plan's slices."""
    N, T, lengths = batch
    steps = plan(*batch)
    h0 = 100.0 * np.arange(N)[:, None]
    states = steps.states(h0)
    for rows, before, after in steps.forwards:
        assert rows.stop - rows.start == before.stop - before.start == after.stop - after.start
        states[after] = states[before] + 1
    done = np.minimum(np.arange(1, T + 1), lengths[:, None])
    assert_same(steps.after_each(states)[:, :, 0], h0 + done)
    assert_same(states[steps.final], h0 + lengths[:, None])
    assert_same(steps.before(states), steps.pack(h0[:, None] + done[:, :, None] - 1))
    assert_same(steps.unsort(h0[steps.order]), h0)


@given(batches())
@settings(max_examples=30)
def test_backwards_is_forwards_reversed(batch):
    steps = plan(*batch)
    assert list(steps.backwards) == list(steps.forwards)[::-1]


@given(batches())
@settings(max_examples=60)
def test_the_gradient_of_a_state_that_stands_still_arrives_at_the_last_step(batch):
    N, T, lengths = batch
    steps = plan(*batch)
    dstates, dfinal = numbered(N, T), np.arange(2.0 * N).reshape(N, 2)
    past = np.arange(T) >= lengths[:, None]
    expected = (dstates * past[:, :, None]).sum(axis=1)
    assert_same(steps.unsort(steps.incoming("f", 2, dstates, None, dfinal)), expected)
    assert_same(steps.unsort(steps.incoming("f", 2, dstates, dfinal, dfinal)), expected + dfinal)
    assert_same(steps.incoming("f", 2, None, None, dfinal), np.zeros((N, 2)))


def test_without_lengths_nothing_is_frozen():
    x = numbered(3, 2)
    steps = Steps.of("f", (3, 2), like=x)
    assert steps.frozen is None
    assert_same(steps.pack(x), x.transpose(1, 0, 2).reshape(6, 2))
