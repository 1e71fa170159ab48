"""The plan of a batch of sequences: what is packed where, against a plain walk over the steps."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rnnlab.layers.recurrent import packing
from rnnlab.layers.recurrent.packing import Packing, as_rows, lengths_to_last

from ..reference import assert_same


@st.composite
def batches(draw):
    """N, T and the lengths of N sequences."""
    N, T = draw(st.integers(0, 5)), draw(st.integers(0, 5))
    return N, T, np.array(draw(st.lists(st.integers(0, T), min_size=N, max_size=N)), dtype=int)


def plan(N, T, lengths):
    return Packing.of("f", (N, T), lengths=lengths, like=np.zeros(1))


@pytest.fixture(params=[1, 3, 1 << 20], autouse=True)
def chunk_rows(request, monkeypatch):
    """How many rows a chunk has at least."""
    monkeypatch.setattr(packing, "_CHUNK_ROWS", request.param)
    monkeypatch.setattr(packing, "_CHUNK_NUMBERS", 0)
    return request.param


def packed(packing, x):
    empty = np.empty((0, x.shape[2]))
    return np.concatenate([empty, *(packing.pack(as_rows(x), chunk) for chunk in packing.chunks(1))])


def numbered(N, T):
    """An array (N, T, 2) whose rows all differ, none of them zero."""
    return np.arange(1.0, 2 * N * T + 1).reshape(N, T, 2)


@given(batches())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
def test_packed_rows_are_the_real_ones_step_by_step(batch):
    N, T, lengths = batch
    x = numbered(N, T)
    order = sorted(range(N), key=lambda n: -lengths[n])
    expected = [x[n, t] for t in range(T) for n in order if t < lengths[n]]
    assert_same(packed(plan(*batch), x), np.reshape(expected, (len(expected), 2)))


@given(batches())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
def test_packing_round_trip(batch):
    N, T, lengths = batch
    x = numbered(N, T)
    packing = plan(*batch)
    x[np.arange(T) >= lengths[:, None]] = 0
    out = packing.unpacked(2, x)
    for chunk in packing.chunks(1):
        packing.unpack(packing.pack(as_rows(x), chunk), chunk, out)
    assert_same(out.reshape(N, T, 2), x)


@given(batches())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
def test_states_are_counters_of_the_steps_done(batch):
    """Run a recurrence h_t = h_{t-1} + 1 from h_0 = 100 n through the plan's slices."""
    N, T, lengths = batch
    packing = plan(*batch)
    h0 = 100.0 * np.arange(N)[:, None]
    states = packing.states(h0)
    for rows, before, after in (step for chunk in packing.chunks(1) for step in chunk.steps):
        assert rows.stop - rows.start == before.stop - before.start == after.stop - after.start
        states[after] = states[before] + 1
    done = np.minimum(np.arange(1, T + 1), lengths[:, None])
    assert_same(packing.after_each(states)[:, :, 0], h0 + done)
    assert_same(states[packing.final], h0 + lengths[:, None])
    before = [packing.before_each(states, chunk) for chunk in packing.chunks(1)]
    assert_same(np.concatenate([states[:0], *before]), packed(packing, h0[:, None] + done[:, :, None] - 1))
    assert_same(packing.unsort(h0[packing.order]), h0)


@given(batches())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
def test_chunks_are_as_large_as_they_should_be(chunk_rows, batch):
    packing = plan(*batch)
    chunks = packing.chunks(1)
    assert [chunk.rows.start for chunk in chunks] + [packing.offsets[-1]] == [0] + [
        c.rows.stop for c in chunks
    ]
    for chunk in chunks:
        assert chunk.here(chunk.rows) == slice(0, chunk.size)
        assert chunk.steps[0][0].start == chunk.rows.start
        assert chunk.steps[-1][0].stop == chunk.rows.stop
        assert chunk.size >= chunk_rows or chunk is chunks[-1]
        assert chunk.steps[-1][0].start - chunk.rows.start < chunk_rows


@given(batches())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
def test_gradients_past_the_end_arrive_at_the_last_step(batch):
    N, T, lengths = batch
    packing = plan(*batch)
    dstates, dfinal = numbered(N, T), np.arange(2.0 * N).reshape(N, 2)
    past = np.arange(T) >= lengths[:, None]
    expected = (dstates * past[:, :, None]).sum(axis=1)
    assert_same(packing.unsort(packing.incoming(dstates, None, dfinal)), expected)
    assert_same(packing.unsort(packing.incoming(dstates, dfinal, dfinal)), expected + dfinal)
    assert_same(packing.incoming(None, None, dfinal), np.zeros((N, 2)))


def test_without_lengths_nothing_is_frozen():
    x = numbered(3, 2)
    packing = Packing.of("f", (3, 2), like=x)
    assert packing.padding is None
    assert_same(packed(packing, x), x.transpose(1, 0, 2).reshape(6, 2))


def test_lengths_to_the_last_real_step():
    real = np.array([[1, 0, 1, 0], [0, 0, 0, 0], [1, 1, 1, 1]], bool)
    np.testing.assert_array_equal(lengths_to_last(real), [3, 0, 4])
    np.testing.assert_array_equal(lengths_to_last(real[:, :0]), [0, 0, 0])


def test_packings_of_whole_sequences_share_no_array():
    first, expected = (plan(3, 4, np.array([4, 4, 4])) for _ in range(2))
    whole = [Packing.of("f", (3, 4), like=np.zeros(1)) for _ in range(2)]
    for name in ("order", "source", "after", "final"):
        getattr(whole[0], name)[...] = -1
        for other in (whole[1], Packing.of("f", (3, 4), like=np.zeros(1)), first):
            np.testing.assert_array_equal(getattr(other, name), getattr(expected, name))
    np.testing.assert_array_equal(whole[1].steps.table, expected.steps.table)
