import os
import re
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("threadpoolctl")

import numba

from rnnlab.ops import numpy as numpy_ops
from rnnlab.ops.numba import kernel as kernels
from rnnlab.ops.numba.kernel import Kernel, kernel, primitive


def double(x, out):
    for j in numba.prange(x.size):
        out[j] = x[j] + x[j]


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    """An empty cache on disk, and no other kernels."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(kernels, "_KERNELS", [])
    kernels._announce.cache_clear()
    yield tmp_path
    kernels._announce.cache_clear()


def doubled(dtype, each):
    x = np.arange(3, dtype=dtype)
    out = np.empty_like(x)
    each(x, out)
    return out


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_both_dtypes(dtype):
    out = doubled(dtype, kernel("T[::1], T[::1]")(double))
    np.testing.assert_array_equal(out, [0, 2, 4])
    assert out.dtype == dtype


@pytest.mark.parametrize(
    ("x", "out"),
    [
        (np.zeros(3, np.float16), np.zeros(3, np.float16)),
        (np.zeros(3, int), np.zeros(3, int)),
        (np.zeros(3, np.float32), np.zeros(3)),
        (np.zeros(6)[::2], np.zeros(3)),
        (np.zeros((2, 2)), np.zeros(3)),
        (np.zeros(3), np.broadcast_to(np.zeros(1), 3)),
    ],
    ids=["half", "integers", "two dtypes", "strided", "two axes", "read-only"],
)
def test_arguments_that_do_not_fit(x, out):
    with pytest.raises(TypeError):
        kernel("T[::1], T[::1]")(double)(x, out)


def test_the_first_use_says_once_what_takes_so_long(capsys, cache):
    first = Kernel(double, "T[::1], T[::1]", None)
    doubled(np.float32, first)
    doubled(np.float64, first)
    message = capsys.readouterr().err
    assert re.fullmatch(r"rnnlab: compiling fused kernels .* rnnlab kernels --warm-up .*\.\n", message)
    assert str(cache) not in message  # no path of a machine in the outputs of a notebook
    kernels._announce.cache_clear()
    again = Kernel(double, "T[::1], T[::1]", None)
    np.testing.assert_array_equal(doubled(np.float32, again), [0, 2, 4])
    assert capsys.readouterr().err == ""
    (hits,) = again.version("f", False).stats.cache_hits.values()
    assert hits == 1


def test_a_change_in_another_kernel_file_makes_the_cache_stale(monkeypatch, capsys):
    doubled(np.float32, Kernel(double, "T[::1], T[::1]", None))
    monkeypatch.setattr(kernels, "_digest", lambda: "other")
    changed = Kernel(double, "T[::1], T[::1]", None)
    doubled(np.float32, changed)
    assert not changed.version("f", False).stats.cache_hits


def test_without_a_folder_to_write(monkeypatch, capsys):
    def nowhere(self):
        raise RuntimeError("cannot cache function: no locator available")

    monkeypatch.setattr(type(numba.njit(double)), "enable_caching", nowhere)
    np.testing.assert_array_equal(doubled(np.float32, kernel("T[::1], T[::1]")(double)), [0, 2, 4])
    assert "cannot be saved; set NUMBA_CACHE_DIR" in capsys.readouterr().err


def test_warm_up_compiles_every_version(monkeypatch):
    monkeypatch.setattr(kernels, "_threads", 2)
    serial = Kernel(double, "T[::1], T[::1]", None)
    shared = Kernel(double, "T[::1], T[::1]", 10)
    assert kernels.warm_up() > 0
    assert list(serial._versions) == [("f", False), ("d", False)]
    assert list(shared._versions) == [("f", False), ("f", True), ("d", False), ("d", True)]


def test_many_elements_go_to_the_parallel_version(monkeypatch):
    asked = []

    def version(dtype, parallel):
        asked.append((dtype, parallel))
        return lambda *arguments: None

    for threads in (1, 2):
        monkeypatch.setattr(kernels, "_threads", threads)
        each = Kernel(double, "T[::1], T[::1]", 10)
        monkeypatch.setattr(each, "version", version)
        for size in (9, 10):
            each(np.zeros(size), np.zeros(size))
    assert asked == [("d", False), ("d", False), ("d", False), ("d", True)]


def test_a_primitive_has_the_reference_for_what_its_kernel_refuses(rng):
    def clip_values(x, bound):
        raise TypeError

    choose = primitive(clip_values)
    assert choose.__doc__ == numpy_ops.clip_values.__doc__
    x = rng.standard_normal(5)
    choose(x, bound=0.1)
    assert abs(x).max() == 0.1


def test_the_reference_where_numba_may_not_compile():
    code = "import numpy, rnnlab.ops; rnnlab.ops.ops_for(numpy.zeros(1)); print(rnnlab.ops.describe())"
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "RNNLAB_OPS": ""}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    assert "fused kernels cannot be imported: NUMBA_DISABLE_JIT is set" in done.stdout
    assert "RuntimeWarning: fused kernels are not used: NUMBA_DISABLE_JIT is set" in done.stderr
