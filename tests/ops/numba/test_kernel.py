import errno
import os
import re
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("threadpoolctl")

import numba
from numba.core.caching import IndexDataCacheFile

from rnnlab.ops.numba import kernel as kernels
from rnnlab.ops.numba import masks, optim
from rnnlab.ops.numba.guard import FITS
from rnnlab.ops.numba.kernel import Kernel, RefusedError, kernel, primitive, tell_compiled
from rnnlab.ops.numba.parallel import in_parts, share


def double(part, parts, x, out):
    for j in share(x.size, part, parts):
        out[j] = x[j] + x[j]


def add_one(x, out):
    for j in range(x.size):
        out[j] = x[j] + 1


def make(parallel_from=None):
    return kernel("T[::1], T[::1]", arguments="x (n,); out! (n,)", parallel_from=parallel_from)(double)


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    """An empty cache on disk, and no other kernels."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(kernels, "_KERNELS", [])
    monkeypatch.setattr(kernels, "_announced", False)
    monkeypatch.setattr(kernels, "_compiled", [])
    monkeypatch.delenv(kernels._ANNOUNCED, raising=False)
    return tmp_path


def doubled(dtype, each):
    x = np.arange(3, dtype=dtype)
    out = np.empty_like(x)
    each(x, out)
    return out


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_both_dtypes(dtype):
    out = doubled(dtype, make())
    np.testing.assert_array_equal(out, [0, 2, 4])
    assert out.dtype == dtype


@pytest.mark.parametrize(
    ("x", "out", "error", "message"),
    [
        (np.zeros(3, np.float16), np.zeros(3, np.float16), TypeError, "x has dtype float16"),
        (np.zeros(3, int), np.zeros(3, int), TypeError, "x has dtype int64"),
        (np.zeros(3, ">f8"), np.zeros(3), TypeError, "x has dtype float64 in the other byte order"),
        (np.zeros(3, np.float32), np.zeros(3), TypeError, "out has dtype float64, expected float32"),
        (np.zeros(6)[::2], np.zeros(3), RefusedError, "double: .*array"),
        (np.zeros((2, 2)), np.zeros(3), ValueError, r"x has shape \(2, 2\), expected 1 axes"),
        (np.zeros(3), np.zeros(2), ValueError, r"out has shape \(2,\), expected \(n,\) = \(3,\)"),
        (np.zeros(3), np.broadcast_to(np.zeros(1), 3), ValueError, "out is read-only"),
        ([0.0], np.zeros(1), TypeError, "x is builtins.list, expected a NumPy array"),
    ],
    ids=["half", "integers", "bytes", "two dtypes", "strided", "two axes", "short", "read-only", "list"],
)
def test_arguments_that_do_not_fit(x, out, error, message):
    with pytest.raises(error, match=message):
        make()(x, out)


def set_first(x):
    x[0, 0, 0, 0, 0, 0] = 2


@pytest.mark.slow
def test_the_other_byte_order_after_an_unaligned_array():
    """numba takes both for the same type, which is what it has first seen: here six axes in no other test."""
    each = kernel("T[:,:,:,:,:,::1]", arguments="x! (a, b, c, d, e, f)")(set_first)
    unaligned = np.frombuffer(bytearray(9), np.float64, 1, offset=1).reshape((1,) * 6)
    each(unaligned)
    assert unaligned.item() == 2
    with pytest.raises(TypeError, match="set_first: x has dtype float64 in the other byte order"):
        each(np.zeros((1,) * 6, ">f8"))


def test_arrays_that_overlap():
    whole, each = np.arange(7.0), make()
    for x, out in ((whole, whole), (whole[:4], whole[3:]), (whole[3:], whole[:4])):
        with pytest.raises(ValueError, match="double: out, which is written, overlaps x in memory"):
            each(x, out)
    each(whole[:3], whole[3:6])
    np.testing.assert_array_equal(whole, [0, 1, 2, 0, 2, 4, 6])
    each(whole[:0], whole[3:3])


def add(x, out):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] += x[i, j]


@pytest.mark.slow
def test_strided_arrays_that_interleave_do_not_overlap():
    each = kernel("T[:,:], T[:,:]", arguments="x (n, H); out! (n, H) = x")(add)
    whole = np.arange(12.0).reshape(3, 4)
    expected = whole.copy()
    expected[:, 2:] += expected[:, :2]
    each(whole[:, :2], whole[:, 2:])
    np.testing.assert_array_equal(whole, expected)
    each(whole[:, :2], whole[:, :2])  # as the declaration allows
    with pytest.raises(ValueError, match="add: out, which is written, overlaps x"):
        each(whole[:, :2], whole[:, 1:3])


def test_a_declaration_that_is_not_the_signature():
    for arguments in ("x (n,)", "x (n, H); out! (n,)", "x (n,); z! (n,)"):
        with pytest.raises(ValueError, match="double: the declaration of the arrays does not fit"):
            kernel("T[::1], T[::1]", arguments=arguments)(double)


@pytest.mark.slow
def test_the_first_use_says_once_what_takes_so_long(capsys, cache, monkeypatch):
    first = make()
    doubled(np.float32, first)
    doubled(np.float64, first)
    message = capsys.readouterr().err
    assert re.fullmatch(
        r"rnnlab: 2 of 2 kernels are not compiled yet; each takes 1 to 8 s when it is first used, "
        r"and is then saved\. A training uses 10 to 20; rnnlab kernels --warm-up compiles all "
        r"that are missing, in about 1 min\n",
        message,
    )
    assert str(cache) not in message  # no path of a machine in the outputs of a notebook
    assert os.environ[kernels._ANNOUNCED]  # which keeps child processes quiet
    monkeypatch.delenv(kernels._ANNOUNCED)
    again = make()
    np.testing.assert_array_equal(doubled(np.float32, again), [0, 2, 4])
    assert capsys.readouterr().err == ""
    (hits,) = again.version("f").stats.cache_hits.values()
    assert hits == 1


@pytest.mark.slow
def test_the_end_of_compiling_is_said_once_and_only_after_its_beginning(capsys, monkeypatch):
    first = make()
    for dtype in (np.float32, np.float64):
        doubled(dtype, first)
    capsys.readouterr()
    tell_compiled()
    message = capsys.readouterr().err
    assert re.fullmatch(
        r"rnnlab: the kernels of the first training step are ready: 2 compiled in \d s\n", message
    )
    tell_compiled()
    monkeypatch.setenv(kernels._ANNOUNCED, "1")  # as in a child process
    doubled(np.float32, kernel("T[::1], T[::1]", arguments="x (n,); out! (n,)")(add_one))
    tell_compiled()
    assert capsys.readouterr().err == ""


@pytest.mark.slow
def test_a_change_in_another_kernel_file_makes_the_cache_stale(monkeypatch, capsys):
    doubled(np.float32, make())
    monkeypatch.setattr(kernels, "_digest", lambda: "other")
    changed = make()
    doubled(np.float32, changed)
    assert not changed.version("f").stats.cache_hits


@pytest.mark.slow
@pytest.mark.parametrize("ending", [".nbi", ".nbc"])
@pytest.mark.parametrize("kept", [0, 10, -20])
def test_a_damaged_cache_is_compiled_again(cache, ending, kept):
    """The index and the machine code of a process that was killed while it wrote them."""
    doubled(np.float32, make())
    (damaged,) = cache.rglob(f"*{ending}")
    damaged.write_bytes(damaged.read_bytes()[:kept])
    again = make()
    np.testing.assert_array_equal(doubled(np.float32, again), [0, 2, 4])
    assert not again.version("f").stats.cache_hits
    whole = make()
    np.testing.assert_array_equal(doubled(np.float32, whole), [0, 2, 4])
    assert whole.version("f").stats.cache_hits


@pytest.mark.slow
def test_a_full_disk(monkeypatch, capsys):
    """The kernel is compiled by then, and works."""

    def full(self, *arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(kernels, "_told_unsaved", False)
    monkeypatch.setattr(IndexDataCacheFile, "save", full)
    for _ in range(2):
        np.testing.assert_array_equal(doubled(np.float32, make()), [0, 2, 4])
    said = (
        "compiled kernels are not saved: [Errno 28] No space left on device; set NUMBA_CACHE_DIR to a folder"
    )
    assert capsys.readouterr().err.count(said) == 1


def test_without_a_folder_to_write(monkeypatch, capsys):
    def nowhere(self):
        raise RuntimeError("cannot cache function: no locator available")

    monkeypatch.setattr(type(numba.njit(double)), "enable_caching", nowhere)
    np.testing.assert_array_equal(doubled(np.float32, make()), [0, 2, 4])
    notice = capsys.readouterr().err
    assert "They cannot be saved: set NUMBA_CACHE_DIR" in notice
    assert "and saved" not in notice


@pytest.mark.slow
def test_warm_up_compiles_every_version():
    each = make(10)
    assert kernels.warm_up() >= 2
    assert kernels.warm_up() == 0
    assert [dtype.char for dtype in each._versions] == ["f", "d"]


@pytest.mark.slow
def test_warm_up_in_several_processes(monkeypatch, cache):
    own = [masks._dropout, optim._sgd]
    monkeypatch.setattr(kernels, "_KERNELS", [Kernel.__new__(Kernel) for _ in own])
    for each, original in zip(kernels._KERNELS, own, strict=True):
        vars(each).update(vars(original), _versions={})
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(cache))
    totals = []

    def progress(compiled, total):
        totals.append(total)
        return compiled

    assert kernels.warm_up(2, progress) == 4
    assert len([*cache.rglob("*.nbi")]) == 4
    assert all(each.version(dtype).stats.cache_hits for each in kernels._KERNELS for dtype in each.dtypes)
    assert kernels._ANNOUNCED not in os.environ
    assert kernels.warm_up(2, progress) == 0
    assert totals == [4]
    next(cache.rglob("*.nbc")).unlink()
    for each in kernels._KERNELS:
        each._versions.clear()
    assert kernels.warm_up(2, progress) == 1


def test_many_elements_are_shared_by_the_threads(monkeypatch):
    parts = []
    for threads in (1, 2, 3):
        monkeypatch.setattr(kernels, "_threads", threads)
        for each in (make(10), make()):
            monkeypatch.setattr(
                each, "version", lambda dtype: lambda *given: (parts.append(given[0]), FITS)[1]
            )
            for size in (9, 10):
                each(np.zeros(size), np.zeros(size))
    assert parts == [1, 1, 1, 1, 1, 2, 1, 1, 1, 3, 1, 1]


def test_a_kernel_without_parts():
    def halve(x, out):
        for j in range(x.size):
            out[j] = x[j] / 2

    each, out = kernel("T[::1], T[::1]", arguments="x (n,); out! (n,)")(halve), np.zeros(2)
    each.run(3, np.array([2.0, 4.0]), out)
    np.testing.assert_array_equal(out, [1, 2])


@kernels.phase
def add_number(part, parts, x, out):
    for j in share(x.size, part, parts):
        out[j] += x[j]


def test_a_kernel_of_several_phases():
    def add_up(parts, x, out):
        for _ in range(4):
            in_parts(parts, add_number, (x, out))

    each = kernel("T[::1], T[::1]", arguments="x (n,); out! (n,)")(add_up)
    for parts in (1, 2, 5):
        out = np.zeros(3)
        each.run(parts, np.arange(3.0), out)
        np.testing.assert_array_equal(out, [0, 4, 8])


def clip_values(x, bound):
    raise RefusedError("strided")


clip_values.__module__ = "rnnlab.ops.numba.optim"


def test_a_primitive_has_the_reference_for_what_its_kernel_refuses(rng, monkeypatch):
    monkeypatch.delenv("RNNLAB_STRICT")
    choose = primitive(clip_values)
    x = rng.standard_normal(5)
    choose(x, bound=0.1)
    assert abs(x).max() == 0.1


def test_what_a_kernel_refuses_is_an_error_if_one_asks_for_it(monkeypatch):
    monkeypatch.setenv("RNNLAB_STRICT", "1")
    with pytest.raises(RefusedError, match="strided"):
        primitive(clip_values)(np.ones(5), 0.1)


def test_no_reference_for_wrong_arguments(monkeypatch):
    monkeypatch.delenv("RNNLAB_STRICT")
    with pytest.raises(TypeError, match="clip_values: x has dtype int64"):
        primitive(clip_values)(np.ones(5, int), 0.1)


@pytest.mark.slow
def test_the_reference_where_numba_may_not_compile():
    code = "import numpy, rnnlab.ops; rnnlab.ops.ops_for(numpy.zeros(1)); print(rnnlab.ops.describe())"
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "RNNLAB_OPS": ""}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    assert "compiled kernels cannot be used: NUMBA_DISABLE_JIT is set" in done.stdout
    assert "RuntimeWarning: compiled kernels are not used: NUMBA_DISABLE_JIT is set" in done.stderr


def test_parallel_versions_within_parallel_versions(monkeypatch):
    monkeypatch.setattr(kernels, "_threads", 3)
    assert kernels.shared_by(1, 10) == 1
    with kernels.always_parallel():
        with kernels.always_parallel():
            assert kernels.shared_by(1, 10) == 3
        assert kernels.shared_by(1, 10) == 3
    assert kernels.shared_by(1, 10) == 1
    first, second = kernels.always_parallel(), kernels.always_parallel()  # of two Python threads
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert kernels.shared_by(1, 10) == 3
    second.__exit__(None, None, None)
    assert kernels.shared_by(1, 10) == 1


def test_a_lock_that_a_thread_holds_at_a_fork(monkeypatch):
    held = threading.Lock()
    held.acquire()  # by a thread that the child has not
    monkeypatch.setattr(kernels, "_lock", held)
    monkeypatch.setattr(kernels, "_threads", kernels.threads())
    kernels._after_fork()
    with kernels.always_parallel():
        assert kernels.shared_by(1, 2) == 1


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="needs POSIX")
def test_ctrl_c_waits_until_a_kernel_is_compiled(monkeypatch):
    """After an exception at some places of it, numba compiles nothing any more."""

    class Alarm(BaseException):
        pass

    def ring(number, frame):
        raise Alarm

    found, compiled = make(), numba.core.dispatcher.Dispatcher.compile

    def interrupted(self, signature):
        signal.raise_signal(signal.SIGALRM)
        return compiled(self, signature)

    before = signal.signal(signal.SIGALRM, ring)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(numba.core.dispatcher.Dispatcher, "compile", interrupted)
            with pytest.raises(Alarm):
                found.version("d")
    finally:
        signal.signal(signal.SIGALRM, before)
    out = np.empty(3)
    found(np.ones(3), out)
    assert out.tolist() == [2, 2, 2]
    assert list(found._versions) == [np.dtype("d")]


def test_code_that_checks_bounds_has_a_cache_of_its_own(monkeypatch):
    before = kernels._digest.__wrapped__()
    monkeypatch.setattr(numba.config, "BOUNDSCHECK", 1)
    assert kernels._digest.__wrapped__() != before
