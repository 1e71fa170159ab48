import subprocess
import sys

import numpy as np
import pytest

import rnnlab.ops
from rnnlab.ops import describe, ops_for, unchecked
from rnnlab.ops import numpy as numpy_ops
from rnnlab.ops.precision import products_in


def foreign(library, name):
    """An object of a class that another library might have made."""
    return type(name, (), {"__module__": library})()


@pytest.fixture
def choose(monkeypatch):
    """Choose anew, as a process does at its first use."""

    def choose(value):
        monkeypatch.setenv("RNNLAB_OPS", value)
        rnnlab.ops._for_numpy.cache_clear()

    yield choose
    rnnlab.ops._for_numpy.cache_clear()


def test_numpy():
    ops = ops_for(np.zeros(2))
    assert ops.__name__ in ("rnnlab.ops.numpy", "rnnlab.ops.numba")
    assert ops_for(np.zeros(2), np.zeros(3, int), np.float32(1)) is ops


def test_the_reference_on_demand(choose):
    choose("numpy")
    assert ops_for(np.zeros(2)) is numpy_ops
    assert describe() == f"NumPy {np.__version__} (RNNLAB_OPS asks for it)"
    assert rnnlab.ops.warm_up() is None


def test_compiled_primitives_keep_their_checks():
    numba_ops = pytest.importorskip("rnnlab.ops.numba")
    assert unchecked(numba_ops) is numba_ops


def test_the_reference_where_the_extra_is_missing(choose, monkeypatch):
    def missing(name):
        raise ModuleNotFoundError("No module named 'numba'", name="numba")

    monkeypatch.setattr(rnnlab.ops.importlib, "import_module", missing)
    choose("")
    assert ops_for(np.zeros(2)) is numpy_ops
    assert describe().endswith('(numba is not installed: pip install "rnnlab[fast]")')
    choose("fused")
    with pytest.raises(
        ImportError, match=r"RNNLAB_OPS is 'fused', which needs numba: pip install \"rnnlab\[fast"
    ):
        ops_for(np.zeros(2))


def test_a_warning_where_numba_does_not_go_with_numpy(choose, monkeypatch):
    def broken(name):
        raise ImportError("Numba needs NumPy 1.0 or less")

    monkeypatch.setattr(rnnlab.ops.importlib, "import_module", broken)
    choose("")
    with pytest.warns(RuntimeWarning, match="compiled kernels are not used: Numba needs NumPy 1.0 or less"):
        assert ops_for(np.zeros(2)) is numpy_ops
    choose("fused")
    with pytest.raises(ImportError, match="Numba needs NumPy"):
        ops_for(np.zeros(2))


def test_a_warning_where_compiled_products_are_wrong(choose, monkeypatch):
    pytest.importorskip("numba")
    pytest.importorskip("threadpoolctl")
    from rnnlab.ops.numba import gemm

    right = gemm._multiply_panels.run
    monkeypatch.setattr(
        gemm._multiply_panels,
        "run",
        lambda *arguments: right(arguments[0], 1.01 * arguments[1], *arguments[2:]),
    )
    choose("")
    with pytest.warns(RuntimeWarning, match="compiled kernels are not used: compiled matrix products differ"):
        assert ops_for(np.zeros(2)) is numpy_ops
    assert "compiled matrix products differ from NumPy's" in describe()
    choose("fused")
    with pytest.raises(ImportError, match="delete the cache of compiled kernels"):
        ops_for(np.zeros(2))


def test_a_choice_that_there_is_not(choose):
    choose("fast")
    with pytest.raises(ValueError, match="RNNLAB_OPS is 'fast', expected 'numpy' or 'fused'"):
        ops_for(np.zeros(2))


def test_two_libraries_together():
    with pytest.raises(TypeError, match="expected arrays of one library, got NumPy and CuPy arrays together"):
        ops_for(np.zeros(2), foreign("cupy", "ndarray"))


@pytest.mark.parametrize(
    ("arrays", "got"),
    [
        (([1.0],), "builtins.list"),
        ((np.zeros(2), None), "builtins.NoneType, numpy.ndarray"),
        ((foreign("torch", "Tensor"), np.zeros(2)), "numpy.ndarray, torch.Tensor"),
        ((foreign("torch", "Tensor"), foreign("cupy", "ndarray")), "cupy.ndarray, torch.Tensor"),
    ],
)
def test_no_library_with_primitives(arrays, got):
    with pytest.raises(TypeError, match=rf"expected NumPy or CuPy arrays, got {got}$"):
        ops_for(*arrays)


@pytest.mark.parametrize("array", [np.ma.zeros(2), np.zeros(2).view(type("Own", (np.ndarray,), {}))])
def test_subclasses_of_arrays(array):
    with pytest.raises(TypeError, match=f"got a {type(array).__name__}, expected a plain array"):
        ops_for(np.zeros(2), array)


def test_importing_loads_no_package_that_is_slow_to_import():
    slow = {"numba", "cupy", "scipy.sparse", "matplotlib"}
    code = f"import sys, rnnlab.cli, rnnlab.models, rnnlab.training; print({slow} & {{*sys.modules}})"
    found = subprocess.run([sys.executable, "-c", code], timeout=60, stdout=subprocess.PIPE, check=True)
    assert found.stdout.strip() == b"set()"


def test_what_computes_on_a_gpu_is_described(device):
    here = rnnlab.ops.device_of(device.zeros(1))
    gpu, products = rnnlab.ops.describe_on(here)
    assert gpu == rnnlab.ops.describe_gpu()
    assert "CuPy" in gpu
    assert products == rnnlab.ops.describe_products(here)


@pytest.mark.parametrize(
    ("matmul", "factors"),
    [
        ("float32", "full precision"),
        ("tf32", "TF32 factors"),
        ("tf32x3", "factors of two TF32 numbers in large products"),
        ("bfloat16", "bfloat16 factors"),
    ],
)
def test_products_on_a_gpu_are_described(matmul, factors):
    with products_in(matmul):
        assert rnnlab.ops.describe_products("gpu:0") == f"products of float32: {factors}, by cuBLAS"
