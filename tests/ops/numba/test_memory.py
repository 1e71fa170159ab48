import gc
import threading

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("threadpoolctl")

from rnnlab.layers import lstm_backward, lstm_forward
from rnnlab.ops.numba import memory
from rnnlab.ops.numba.memory import Blocks, empty, empty_like, zeros

SHAPE = (100, 100)  # 40 kB of float32, enough to be used again


@pytest.fixture(autouse=True)
def blocks(monkeypatch):
    """Blocks that nothing else in this process uses."""
    blocks = Blocks()
    monkeypatch.setattr(memory, "_BLOCKS", blocks)
    return blocks


def place(array):
    return array.ctypes.data


def test_an_array_as_numpy_makes_it():
    x = empty(SHAPE, np.float32)
    assert x.shape == SHAPE
    assert x.dtype == np.float32
    assert x.flags.c_contiguous
    assert x.flags.writeable
    assert place(x) % 64 == 0
    assert empty(5).dtype == np.float64
    assert empty((0, 7), np.float32).shape == (0, 7)
    assert empty((), np.float32).shape == ()
    assert empty_like(x[:, ::2]).flags.c_contiguous


def test_memory_of_an_array_that_is_gone_is_used_again(blocks):
    first = empty(SHAPE, np.float32)
    at = place(first)
    del first
    assert place(empty((50, 100), np.float64)) == at
    assert len(blocks) == 1


def test_memory_of_an_array_that_lives_is_not(blocks):
    arrays = [empty(SHAPE, np.float32) for _ in range(5)]
    for k, array in enumerate(arrays):
        array.fill(k)
    assert len(blocks) == 5
    assert [array.max() for array in arrays] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x[3:5],
        lambda x: x.T,
        lambda x: x.reshape(-1)[7:],
        lambda x: x.view(np.int32)[::2, ::3].T[1:],
        lambda x: np.broadcast_to(x[0], (3, 100)),
        lambda x: memoryview(x),
        lambda x: [x],
    ],
    ids=["slice", "transpose", "flat", "views of views", "broadcast", "buffer", "list"],
)
def test_a_view_keeps_the_memory(view, blocks):
    x = empty(SHAPE, np.float32)
    saved = view(x)
    del x
    gc.collect()
    other = empty(SHAPE, np.float32)
    assert len(blocks) == 2
    del saved, other


def test_a_block_serves_smaller_arrays_down_to_half(blocks):
    for rows in (100, 90, 110, 60):
        empty((rows, 100), np.float32)
    assert len(blocks) == 1
    empty((45, 100), np.float32)
    assert len(blocks) == 2


def test_blocks_that_nobody_wants_go_back_to_the_system(blocks):
    large = [empty((1000, 100), np.float32) for _ in range(3)]
    del large
    for _ in range(50):
        empty(SHAPE, np.float32)
    small = empty(SHAPE, np.float32), empty(SHAPE, np.float32)
    assert len(blocks) == len(small)


def test_small_arrays_are_not_kept(blocks):
    empty((10, 10), np.float32)
    assert len(blocks) == 0


def test_zeros(blocks):
    empty(SHAPE, np.float32).fill(7)
    x = zeros(SHAPE, np.float32)
    assert len(blocks) == 1
    assert not x.any()
    assert not zeros(3).any()


def test_threads_do_not_share_memory():
    def work(number):
        for _ in range(200):
            x = empty(SHAPE, np.float32)
            x.fill(number)
            wrong.extend(x[x != number])

    wrong = []
    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_two_caches_at_once(rng):
    """A layer's forward run twice before its backwards: the second run takes nothing from the first."""

    def normal(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    weights = normal(30, 160), normal(40, 160), normal(160)
    inputs = [(normal(20, 10, 30), normal(20, 40)) for _ in range(2)]
    dh = normal(20, 10, 40)

    def forward(k):
        return lstm_forward(*inputs[k], *weights)[1]

    alone = [lstm_backward(dh, forward(k)) for k in range(2)]
    caches = [forward(k) for k in range(2)]
    together = [lstm_backward(dh, caches[k]) for k in (1, 0)][::-1]
    for expected, actual in zip(alone, together, strict=True):
        for e, a in zip(expected, actual, strict=True):
            np.testing.assert_array_equal(a, e)
