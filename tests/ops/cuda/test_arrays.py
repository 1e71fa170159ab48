"""Arrays on CuPy: where they lie, rows that are taken and put."""

import importlib

import numpy as np
import pytest

from .compare import assert_same, every_dtype


@every_dtype
@pytest.mark.parametrize("shape", [(50, 5), (1, 1), (300, 130), (0, 3)], ids=str)
def test_rows(shape, ops, dtype, rng, normal):
    M, W = shape
    assert_same(ops, "take", [normal(7, W), rng.integers(7, size=M), normal(M, W)])
    assert_same(ops, "put", [normal(M, W), rng.permutation(2 * M)[:M], normal(2 * M, W)])
    x, left = normal(M, W), W // 2
    out = ops.asarray(normal(M, W))
    expected = ops.asnumpy(out).copy()
    ops.take(ops.asarray(x)[:, left:], ops.asarray(np.arange(M)[::-1].copy()), out[:, left:])
    expected[:, left:] = x[::-1, left:]
    np.testing.assert_array_equal(ops.asnumpy(out), expected)


def test_arrays_are_copied_to_the_device_once(simulated):
    ops = importlib.import_module("rnnlab.ops.cuda")
    x = ops.asarray(np.arange(6.0).reshape(2, 3).T)
    assert x.flags.c_contiguous
    assert ops.indices(np.arange(3, dtype=np.uint8)).dtype == np.int64
    simulated.transfers.reset()
    assert ops.asarray(x) is x
    assert ops.prefetch(x, x) is x
    assert ops.prefetch(x, ops.zeros(1, np.float32)).dtype == np.float32
    assert simulated.transfers.to_device == simulated.transfers.to_host == 0
    np.testing.assert_array_equal(ops.asnumpy(ops.prefetch(np.arange(3), x)), [0.0, 1.0, 2.0])
    assert simulated.transfers.to_device == 1


def test_scalars_wait_for_nothing(simulated):
    ops = importlib.import_module("rnnlab.ops.cuda")
    x = ops.zeros(())
    simulated.transfers.reset()
    assert ops.scalar(x) is x
    assert simulated.transfers.to_host == 0
    assert ops.scalar(np.float32(2)) == 2.0


def test_zeros_and_concatenate(ops):
    joined = ops.concatenate([ops.zeros((2, 1), np.float32), ops.zeros((2, 3), np.float32) + 1], axis=1)
    np.testing.assert_array_equal(ops.asnumpy(joined), [[0, 1, 1, 1]] * 2)


def test_what_is_fetched_is_what_was_there_at_the_call(ops):
    x = ops.asarray(np.arange(3))
    fetched, later = ops.fetch(x), ops.fetch(x + 1)
    np.testing.assert_array_equal(later(), [1, 2, 3])
    np.testing.assert_array_equal(fetched(), [0, 1, 2])
    assert type(fetched()) is np.ndarray


def test_a_fetch_waits_for_its_own_copy(simulated):
    ops = importlib.import_module("rnnlab.ops.cuda")
    x = ops.zeros(3)
    simulated.transfers.reset()
    fetched = ops.fetch(x)
    assert simulated.transfers.to_host == simulated.transfers.synchronisations == 0
    fetched()
    assert simulated.transfers.to_host == simulated.transfers.synchronisations == 1


def test_a_fetch_waits_for_what_was_launched_before_it(simulated, monkeypatch):
    ops, happened = importlib.import_module("rnnlab.ops.cuda"), []

    class Event(simulated.cuda.Event):
        def record(self, stream=None):
            happened.append((self, "recorded"))

    monkeypatch.setattr(simulated.cuda, "Event", Event)
    monkeypatch.setattr(
        simulated.cuda.Stream, "wait_event", lambda stream, event: happened.append((event, "awaited"))
    )
    fetched = ops.fetch(ops.zeros(3))
    ((event, recorded),) = happened
    fetched()
    assert recorded == "recorded"
    assert happened[1:] == [(event, "awaited")]
