"""MKL: its numbers, when it is refused, and peace with PyTorch's threads."""

import importlib.util
import os
import re
import subprocess
import sys
from importlib import metadata

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("threadpoolctl")

from rnnlab.ops.numba import mkl, threads

try:
    MKL = mkl.Mkl(threads())  # as the kernels' own, if they have one
except mkl.MklUnavailableError as reason:
    pytest.skip(f"MKL is not used here: {reason}", allow_module_level=True)


def test_what_it_covers():
    x, w, out = np.ones((3, 4)), np.ones((4, 5)), np.ones((3, 5))
    assert MKL.covers(x, w, out)
    assert MKL.covers(np.asfortranarray(x), w.copy("F"), out)
    assert not MKL.covers(x.astype(np.float32), w, out)
    assert not MKL.covers(x.astype(np.float16), w.astype(np.float16), out.astype(np.float16))
    assert not MKL.covers(x, w, out.copy("F"))
    assert not MKL.covers(np.ones((6, 8))[::2, ::2], w, out)
    assert not MKL.covers(np.broadcast_to(x[0], x.shape), w, out)


# ---------------------------------------------------------------- whether MKL is used


def test_it_is_refused_where_it_multiplies_wrongly(monkeypatch):
    right = mkl.Mkl.multiply
    monkeypatch.setattr(
        mkl.Mkl, "multiply", lambda self, x, *rest, **add: right(self, 1.01 * x, *rest, **add)
    )
    with pytest.raises(mkl.MklUnavailableError, match="it multiplies wrongly in this process"):
        mkl.Mkl(threads())


def missing(name):
    raise metadata.PackageNotFoundError(name)


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        (missing, "it is not installed"),
        (lambda name: None, r"no libmkl_rt\.so"),
        (lambda name: [metadata.PackagePath("mkl/libmkl_core.so.2")], r"no libmkl_rt\.so"),
    ],
    ids=["no wheel", "a wheel without files", "other files"],
)
def test_it_is_refused_where_it_is_missing(files, reason, monkeypatch):
    monkeypatch.setattr(metadata, "files", files)
    with pytest.raises(mkl.MklUnavailableError, match=reason):
        mkl.Mkl(threads())


def test_it_is_refused_where_it_cannot_be_loaded(monkeypatch, tmp_path):
    monkeypatch.setattr(mkl, "_path", lambda: str(tmp_path / "libmkl_rt.so"))
    with pytest.raises(mkl.MklUnavailableError, match=r"it cannot be loaded \(.*libmkl_rt\.so"):
        mkl.Mkl(threads())


def test_one_thread_where_openmp_is_missing(monkeypatch):
    monkeypatch.setattr(mkl, "_has_gnu_openmp", lambda: False)
    asked = []
    library = mkl._load(mkl._path())

    class Recorder:
        def MKL_Set_Threading_Layer(self, layer):
            asked.append(layer)
            return layer

        def __getattr__(self, name):
            return getattr(library, name)

    monkeypatch.setattr(mkl, "_load", lambda path: Recorder())
    assert mkl.Mkl(8).threads == 1
    assert asked == [mkl._ONE_THREAD]


def run(code, **environment):
    environment = os.environ | {"RNNLAB_NUM_THREADS": "2", "RNNLAB_OPS": "fused"} | environment
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


WITHOUT_MKL = """
from llvmlite import binding
binding.get_host_cpu_name = lambda: "icelake-server"
from importlib import metadata
def missing(name):
    raise metadata.PackageNotFoundError(name)
metadata.files = missing
import numpy as np
from rnnlab.layers import lstm_backward, lstm_forward
x, weight = np.ones((2, 3, 4), np.float32), np.ones((4, 16), np.float32)
h, cache = lstm_forward(x, np.zeros((2, 4), np.float32), weight, weight, weight[0])
lstm_backward(h, cache)
import rnnlab.ops
print(rnnlab.ops.describe())
"""


@pytest.mark.slow
def test_fused_kernels_without_mkl():
    assert "by NumPy's BLAS if it is faster (not MKL: it is not installed)" in run(WITHOUT_MKL)


FORKED = """
from llvmlite import binding
binding.get_host_cpu_name = lambda: "icelake-server"
import os, signal
import numpy as np
import threadpoolctl
import rnnlab.ops
import rnnlab.ops.numba as ops
x, w = np.random.default_rng(0).standard_normal((2, 512, 512), np.float32)
assert x.size * 512 >= ops.products._LARGE
{before}
expected = ops.matmul(x, w)
child = os.fork()
if not child:
    signal.alarm(60)  # ends this process if it hangs
    rnnlab.ops.ops_for(x)
    {within}
    np.testing.assert_allclose(ops.matmul(x, w), expected, rtol=1e-4, atol=1e-3)
    os._exit(0)
_, status = os.waitpid(child, 0)
print(os.waitstatus_to_exitcode(status), ops.DESCRIPTION)
np.testing.assert_array_equal(ops.matmul(x, w), expected)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("before", ["", "rnnlab.ops.ops_for(x)", "threadpoolctl.threadpool_limits(2)"])
@pytest.mark.parametrize("within", ["", "threadpoolctl.threadpool_limits(2)"])
def test_in_a_forked_process(before, within):
    """GNU's OpenMP hangs there in more than one thread."""
    status, _, said = run(FORKED.format(before=before, within=within)).partition(" ")
    assert status == "0"
    assert re.search(r"MKL \S+ for large matrix products, threads: 2$", said)


BESIDE_PYTORCH = """
from llvmlite import binding
binding.get_host_cpu_name = lambda: "icelake-server"
{imports}
import numpy as np
from rnnlab.ops.numba import products
products._LARGE = 0
rng = np.random.default_rng(0)
ops = rnnlab.ops.ops_for(np.zeros(1))
wrong = 0
for trial in range(120):
    n, K, G = rng.integers(1, 300, 3)
    x, w = rng.standard_normal((n, K), np.float32), rng.standard_normal((K, G), np.float32)
    theirs = (torch.from_numpy(x) @ torch.from_numpy(w)).numpy()
    exact = x.astype(float) @ w
    out = np.empty((n, G), np.float32)
    ops.matmul_into(x, ops.prepacked(w), out)
    wrong += any(abs(ours - exact).max() > 1e-3 for ours in (theirs, ops.matmul(x, w), out))
print(wrong, "wrong;", rnnlab.ops.describe())
"""


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="without PyTorch")
@pytest.mark.parametrize(
    "imports",
    [
        "import torch, rnnlab.ops",
        "import rnnlab.ops, numpy; rnnlab.ops.ops_for(numpy.zeros(1)); import torch",
    ],
    ids=["after PyTorch", "before PyTorch"],
)
def test_beside_pytorch(imports):
    said = run(BESIDE_PYTORCH.format(imports=imports))
    assert said.startswith("0 wrong;")
    assert "MKL" in said
    assert "threads: 2" in said
