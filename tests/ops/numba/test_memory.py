"""Memory that is reused: never while an array or a view of it lives, whatever ends its life."""

import gc
import subprocess
import sys
import threading
from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("threadpoolctl")

import rnnlab.ops
from rnnlab.layers import lstm_backward, lstm_forward
from rnnlab.ops import numba as numba_ops
from rnnlab.ops import numpy as numpy_ops
from rnnlab.ops.numba import memory
from rnnlab.ops.numba.arrays import zeros
from rnnlab.ops.numba.memory import Pool, empty, empty_like

SHAPE = (100, 100)  # 40 kB of float32, enough to be reused


@pytest.fixture(autouse=True)
def pool(monkeypatch):
    """A pool that nothing else in this process uses."""
    pool = Pool()
    monkeypatch.setattr(memory, "_POOL", pool)
    return pool


def place(array):
    return array.ctypes.data


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, bool, ">f4"])
def test_an_array_as_numpy_makes_it(dtype):
    x = empty((300, 301), dtype)
    x[...] = 1
    assert x.shape == (300, 301)
    assert x.dtype == np.dtype(dtype)
    assert x.flags.c_contiguous
    assert x.flags.writeable
    assert type(x) is np.ndarray
    assert place(x) % 64 == 0
    assert x.sum() == x.size


def test_shapes():
    assert empty(5).dtype == np.float64
    assert empty((0, 7), np.float32).shape == (0, 7)
    assert empty((), np.float32).shape == ()
    assert empty([100, np.int64(100)]).shape == SHAPE
    assert empty(np.int64(5)).shape == (5,)
    assert empty(np.array([2, 3])).shape == (2, 3)
    with pytest.raises(TypeError, match="float"):
        empty(2.5)
    assert empty_like(empty(SHAPE)[:, ::2]).flags.c_contiguous
    fields = np.dtype([("a", np.float64), ("b", np.int64)])
    assert empty(10_000, fields).dtype == fields


def test_memory_of_an_array_that_is_gone_is_reused(pool):
    first = empty(SHAPE, np.float32)
    at = place(first)
    del first
    assert place(empty((50, 100), np.float64)) == at
    assert len(pool) == 1


def test_memory_of_an_array_that_lives_is_not(pool):
    arrays = [empty(SHAPE, np.float32) for _ in range(5)]
    for k, array in enumerate(arrays):
        array.fill(k)
    assert len(pool) == 5
    assert [array.max() for array in arrays] == [0, 1, 2, 3, 4]


class Cycle:
    """Garbage that only the collector finds."""

    def __init__(self, array):
        self.array, self.own = array, self


VIEWS = {
    "slice": lambda x: x[3:5],
    "transpose": lambda x: x.T,
    "flat": lambda x: x.reshape(-1)[7:],
    "views of views": lambda x: x.view(np.int32)[::2, ::3].T[1:],
    "broadcast": lambda x: np.broadcast_to(x[0], (3, 100)),
    "buffer": memoryview,
    "frombuffer": lambda x: np.frombuffer(x, np.uint8),
    "subclass": lambda x: x.view(np.matrix),
    "lease": lambda x: np.asarray(x[1:].base.base),
    "iterator": lambda x: x.flat,
    "list": lambda x: [x],
    "cycle": Cycle,
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize("view", VIEWS)
def test_a_view_holds_the_memory(view, pool):
    x = empty(SHAPE, np.float32)
    at, held = place(x), VIEWS[view](x)
    del x
    if view != "cycle":
        gc.collect()
    other = empty(SHAPE, np.float32)
    assert place(other) != at
    assert len(pool) == 2
    del held
    gc.collect()
    assert place(empty(SHAPE, np.float32)) == at


@pytest.mark.slow
def test_an_array_in_an_exception_holds_the_memory(pool):
    def fail():
        x = empty(SHAPE, np.float32)
        raise ValueError(place(x))

    with pytest.raises(ValueError, match=r"\d+") as info:
        fail()
    at = int(str(info.value))
    other = empty(SHAPE, np.float32)  # the traceback holds the frame, and so x
    assert place(other) != at
    del info
    gc.collect()
    assert place(empty(SHAPE, np.float32)) == at


def test_a_block_serves_smaller_arrays_down_to_half(pool):
    for rows in (100, 90, 110, 60):
        empty((rows, 100), np.float32)
    assert len(pool) == 1
    empty((45, 100), np.float32)
    assert len(pool) == 2


def test_blocks_that_nobody_needs_are_freed(pool):
    large = [empty((1000, 100), np.float32) for _ in range(3)]
    del large
    for _ in range(50):
        empty(SHAPE, np.float32)
    small = empty(SHAPE, np.float32), empty(SHAPE, np.float32)
    assert len(pool) == len(small)


def test_release(pool):
    gone, living = empty((1000, 100)), empty(SHAPE)
    del gone
    living.fill(7)
    assert memory.release() >= 800_000
    assert len(pool) == 1
    assert memory.release() == 0
    assert (living == 7).all()


def test_idle_memory_is_freed_where_there_is_too_little(pool, monkeypatch):
    gone = empty((1000, 100))
    del gone
    sizes, new = [], memory._Block

    def small(size):
        sizes.append(size)
        if size > 8_000_000:
            raise MemoryError
        return new(size)

    monkeypatch.setattr(memory, "_Block", small)
    assert empty((1000, 1000)).shape == (1000, 1000)
    assert sizes == [9_000_000, 8_000_000]
    assert len(pool) == 1
    with pytest.raises(MemoryError):
        empty((2000, 1000))
    assert empty(SHAPE).shape == SHAPE


def test_release_by_its_public_name(pool, monkeypatch):
    empty((1000, 100))
    for ops, freed in ((numpy_ops, False), (numba_ops, True)):
        monkeypatch.setattr(rnnlab.ops, "_for_numpy", lambda ops=ops: rnnlab.ops._Choice(ops, ""))
        assert (rnnlab.ops.release_memory() > 0) is freed


def test_small_arrays_come_from_numpy(pool):
    empty((10, 10), np.float32)
    assert len(pool) == 0


def test_zeros(pool):
    empty(SHAPE, np.float32).fill(7)
    x = zeros(SHAPE, np.float32)
    assert len(pool) == 1
    assert not x.any()


def test_threads_do_not_share_memory():
    """Each array holds its thread's number as long as it lives; some are given to another thread to drop."""

    def work(number):
        for turn in range(300):
            x = empty(SHAPE, np.float32)
            x.fill(number)
            if turn % 3 == 0:
                passed.append(x[1:])
                if len(passed) > 8:
                    passed.pop(0)
            wrong.extend(x[x != number])

    wrong, passed = [], []
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert wrong == []
    assert all(np.ptp(x) == 0 for x in passed)


class Interrupted(BaseException):
    """As KeyboardInterrupt, which a signal may raise between any two instructions."""


def interrupted_after(instructions, function):
    """Call a function with an exception after so many instructions of the pool; whether it was raised."""
    count = 0

    def trace(frame, event, argument):
        nonlocal count
        if frame.f_code.co_filename != memory.__file__:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            count += 1
            if count > instructions:
                raise Interrupted
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    except Interrupted:
        return True
    finally:
        sys.settrace(before)
    return False


def overlapping(arrays):
    """Whether two of the arrays share memory."""
    ends = sorted((place(x), place(x) + x.nbytes) for x in arrays)
    return any(end > start for (_, end), (start, _) in pairwise(ends))


def test_an_exception_between_any_two_instructions(pool):
    """No block is then used twice, given to a larger array, or kept for ever."""
    sizes = [(60, 100), (100, 100), (90, 100), (300, 100)]

    def use():
        arrays = [empty(shape, np.float32) for shape in sizes]
        del arrays[::2]
        arrays.append(empty(sizes[0], np.float32))

    def check():
        assert [block.size for block in pool._idle] == sorted(block.size for block in pool._idle)
        arrays = [empty(shape, np.float32) for shape in sizes * 3]
        assert not overlapping(arrays)
        for array in arrays:
            block = array.base.lease_of
            assert block.address <= place(array)
            assert place(array) + array.nbytes <= place(block.memory) + block.memory.nbytes

    use()
    instructions = 0
    while interrupted_after(instructions, use):
        check()
        instructions += 7 if instructions > 300 else 1
    assert instructions > 200
    memory.release()
    assert len(pool) == 0


def test_an_exception_while_memory_is_freed(pool):
    def use():
        large = [empty((1000, 100), np.float32) for _ in range(3)]
        del large
        pool._handed_out += 100
        kept = empty((10_000, 100), np.float32)  # the large ones are freed
        assert kept.shape == (10_000, 100)
        memory.release()

    instructions = 0
    while interrupted_after(instructions, use):
        assert not overlapping([empty((1000, 100), np.float32) for _ in range(6)])
        instructions += 3
    memory.release()
    assert len(pool) == 0


def test_the_end_of_an_array_swallows_no_exception(pool):
    """Python would print an exception of a finalizer, and go on."""
    assert not hasattr(memory._Lease, "__del__")
    x = empty(SHAPE, np.float32)
    ended = []

    def delete():
        nonlocal x
        x = None
        ended.append(len(pool._ended))

    assert not interrupted_after(0, delete)  # no instruction of the pool runs
    assert ended == [1]


def test_a_finalizer_may_ask_for_an_array(pool):
    """The collector may run one while the pool is at work."""

    class Asks:
        def __del__(self):
            asked.append(empty(SHAPE, np.float32))

    def trace(frame, event, argument):
        if frame.f_code.co_filename != memory.__file__:
            return None
        if event == "line" and not collecting:
            collecting.append(True)
            own = Asks()
            del own
            collecting.clear()
        return trace

    asked, collecting = [], []
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        arrays = [empty(SHAPE, np.float32) for _ in range(5)]
        del arrays[1:4]
        arrays += [empty(SHAPE, np.float32) for _ in range(5)]
    finally:
        sys.settrace(before)
    assert len(asked) > 20
    assert not overlapping(arrays + asked)


SHUTDOWN = """
import numpy as np
from rnnlab.ops.numba.memory import empty


class Last:
    def __del__(self):
        self.x.fill(1)  # the memory is there to the end


everlasting = Last()
everlasting.x = empty((100, 100))
cycle = [empty((100, 100))]
cycle.append(cycle)
"""


@pytest.mark.slow
def test_the_end_of_the_interpreter():
    done = subprocess.run([sys.executable, "-c", SHUTDOWN], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


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
