"""Parallel calls of compiled functions: every part once, on any number of threads, from any thread."""

import itertools
import os
import platform
import re
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("threadpoolctl")

import numba

from rnnlab.ops.numba import parallel
from rnnlab.ops.numba.parallel import in_parts, share, share_either_way, slice_of, start_threads
from rnnlab.ops.threads import _has_openmp

from .compare import compiled

start_threads()


@numba.njit
def note(part, parts, factor, numbers, calls):
    numbers[part] = factor * (100 * part + parts)
    calls[part] += 1


@partial(compiled, nogil=True)
def note_all(parts, factor, numbers, calls):
    in_parts(parts, note, (factor, numbers, calls))


@pytest.mark.parametrize("parts", [1, 2, 3, 64])
def test_each_part_is_called_once_with_all_arguments(parts):
    numbers, calls = np.zeros(64), np.zeros(64, np.int64)
    note_all(parts, 0.5, numbers, calls)
    expected = 0.5 * (100 * np.arange(64.0) + parts)
    np.testing.assert_array_equal(numbers[:parts], expected[:parts])
    assert not numbers[parts:].any()
    assert calls.tolist() == [1] * parts + [0] * (64 - parts)


@compiled
def shared(number, parts, backwards):
    return [[each for each in share_either_way(number, part, parts, backwards)] for part in range(parts)]


@pytest.mark.parametrize(("number", "parts"), [(0, 1), (1, 1), (7, 1), (7, 3), (2, 3)])
def test_either_way_a_part_has_the_same_numbers(number, parts):
    forward, backward = shared(number, parts, False), shared(number, parts, True)
    assert forward == [list(share.py_func(number, part, parts)) for part in range(parts)]
    assert backward == [each[::-1] for each in forward]


@numba.njit
def add(x, out):
    for j in range(out.size):
        out[j] += x[j]


@numba.njit(forceinline=True)
def add_rows(part, parts, x, out):
    for row in share(out.shape[0], part, parts):
        add(x[row], out[row])


@numba.njit(nogil=True)
def add_all_rows(parts, x, out):
    in_parts(parts, add_rows, (x, out))


def test_parts_do_not_count_references():
    """They would wait for each other at each row, since one count is in the cache of one core at a time."""
    x, out = np.ones((7, 5)), np.zeros((7, 5))
    add_all_rows(3, x, out)
    np.testing.assert_array_equal(out, x)
    (code,) = add_all_rows.inspect_llvm().values()
    (part,) = (each for each in code.split("\ndefine ")[1:] if re.match(r'[^(]*\.part"?\(', each))
    assert "NRT_incref" not in part


@numba.njit
def shift(part, parts, source, out):
    for j in share(source.size, part, parts):
        out[j] = source[(j + 1) % source.size]


@partial(compiled, nogil=True)
def rotate(times, parts, numbers, other):
    for _ in range(times):
        in_parts(parts, shift, (numbers, other))
        in_parts(parts, shift, (other, numbers))


def test_phases_wait_for_each_other_and_for_no_other_caller():
    """Each phase reads what other parts of the one before have written."""
    many = [np.arange(1001.0) for _ in range(4)]
    threads = [threading.Thread(target=rotate, args=(500, 3, numbers, np.zeros(1001))) for numbers in many]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for numbers in many:
        np.testing.assert_array_equal(numbers, np.roll(np.arange(1001.0), -1000))


@numba.njit
def thread_of(part, parts, threads):
    threads[part] = numba.get_thread_id()
    for _ in range(2_000_000):  # while one thread is busy, others take the next parts
        threads[part] += 0


@partial(compiled, nogil=True)
def note_threads(parts, threads):
    in_parts(parts, thread_of, (threads,))


@pytest.mark.skipif(not _has_openmp(), reason="needs OpenMP")
@pytest.mark.parametrize("parts", [2, 3])
def test_parts_run_on_threads_of_their_own_whatever_numba_s_number_is(parts):
    threads, before = np.zeros(parts, np.int64), numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        note_threads(parts, threads)
        assert numba.get_num_threads() == 1
    finally:
        numba.set_num_threads(before)
    assert sorted(threads) == list(range(parts))


FIRST = """
import importlib, sys, types
import rnnlab.ops
package = types.ModuleType("rnnlab.ops.numba")  # its own imports would fix the order
package.__path__ = [{folder!r}]
sys.modules["rnnlab.ops.numba"] = package
importlib.import_module("rnnlab.ops.numba.{module}")
assert importlib.import_module("rnnlab.ops.numba.parallel").OPENMP
"""
MODULES = sorted(path.stem for path in Path(parallel.__file__).parent.glob("[!_]*.py"))


@pytest.mark.skipif(not _has_openmp(), reason="needs OpenMP")
@pytest.mark.parametrize(
    "module",
    [pytest.param(name, marks=() if name in ("arrays", "memory") else pytest.mark.slow) for name in MODULES],
)
def test_openmp_is_used_whichever_module_is_imported_first(module):
    """Without it, all parts run on one thread, and only times show it."""
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_THREADING_LAYER"}
    program = FIRST.format(module=module, folder=str(Path(parallel.__file__).parent))
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)


ON_ONE_THREAD = """
import threading
import numpy as np
import rnnlab.ops
rnnlab.ops.ops_for(np.zeros(1))  # imports numba with the threads of the library
from rnnlab.ops.numba import parallel
from rnnlab.ops.numba.arrays import _take
assert not parallel.OPENMP
x, rows = np.random.default_rng(0).standard_normal((64, 3)), np.arange(64)[::-1].copy()

def work():
    for parts in (1, 2, 64):  # more than numba has threads
        out = np.zeros((64, 3))
        _take.run(parts, x, rows, out)
        np.testing.assert_array_equal(out, x[::-1])

threads = [threading.Thread(target=work) for _ in range(4)]
for each in threads:
    each.start()
for each in threads:
    each.join()
"""


def test_without_openmp_the_calling_thread_does_all_parts():
    """As with numba from pip on macOS."""
    environment = os.environ | {"NUMBA_THREADING_LAYER": "workqueue", "NUMBA_NUM_THREADS": "2"}
    subprocess.run([sys.executable, "-c", ON_ONE_THREAD], env=environment, check=True, timeout=300)


@numba.njit
def fail_in_the_last(part, parts, out):
    if part == parts - 1:
        raise MemoryError
    out[part] = 1


@partial(compiled, nogil=True)
def fail(parts, out):
    in_parts(parts, fail_in_the_last, (out,))


@pytest.mark.parametrize("parts", [1, 3])
def test_an_error_in_a_part_reaches_the_caller(parts):
    out = np.zeros(3)
    with pytest.raises(MemoryError, match="too little memory for a part of a kernel"):
        fail(parts, out)
    assert out.sum() == parts - 1


def test_the_number_of_threads_of_numba_stays():
    before = numba.get_num_threads()
    note_all(64, 1.0, np.zeros(64), np.zeros(64, np.int64))
    assert numba.get_num_threads() == before


@compiled
def parts_of(number, parts):
    return [list(share(number, part, parts)) for part in range(parts)]


@compiled
def slices_of(x, parts):
    return [slice_of(x, part, parts) for part in range(parts)]


@pytest.mark.parametrize("parts", [1, 2, 3, 8])
@pytest.mark.parametrize("number", [0, 1, 7, 3000])
def test_the_parts_together_are_all(number, parts):
    assert list(itertools.chain.from_iterable(parts_of(number, parts))) == list(range(number))
    x = np.arange(float(number))
    slices = slices_of(x, parts)
    np.testing.assert_array_equal(np.concatenate(slices), x)
    ends = np.cumsum([each.size for each in slices])
    assert all(end % 1024 == 0 or end == number for end in ends)


@numba.njit
def halve(part, parts, x, out):
    for j in share(x.size, part, parts):
        out[j] = x.dtype.type(0.5) * x[j]


@partial(compiled, nogil=True)
def halve_all(parts, x, out):
    in_parts(parts, halve, (x, out))


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_subnormal_numbers_are_zero_in_parts_alone(dtype, parts):
    tiny = np.finfo(dtype).tiny
    x = np.array([tiny, tiny / 2, -tiny, 1, np.nan, np.inf], dtype)
    expected = 0.5 * x
    assert expected[0] > 0
    if platform.machine().lower() in ("x86_64", "amd64"):
        expected[:3] = 0
    out = np.ones_like(x)
    halve_all(parts, x, out)
    np.testing.assert_array_equal(out, expected)
    assert (0.5 * x)[0] > 0
