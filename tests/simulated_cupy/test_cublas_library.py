"""The stand-in of cuBLAS: results, errors, and products that are executed later."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from . import cublas_library

NOT_INITIALIZED, ALLOC_FAILED, INVALID_VALUE, EXECUTION_FAILED, NOT_SUPPORTED = 1, 3, 7, 13, 15
FLOAT32, FLOAT64, BFLOAT16 = 0, 1, 14
IN_FLOAT32, IN_FLOAT64, IN_TF32 = 68, 70, 77
TYPES = {np.dtype(np.float32): FLOAT32, np.dtype(np.float64): FLOAT64, np.dtype(np.uint16): BFLOAT16}
P = ctypes.c_void_p


@pytest.fixture
def library(simulated) -> ctypes.CDLL:
    return ctypes.CDLL(cublas_library.NAME)


@pytest.fixture
def handle(simulated, library) -> Any:
    handle, workspace = P(), simulated.cuda.alloc(1024)
    assert not library.cublasCreate_v2(ctypes.byref(handle))
    assert not library.cublasSetWorkspace_v2(handle, P(workspace.ptr), ctypes.c_size_t(1024))
    yield handle
    assert not library.cublasDestroy_v2(handle)
    assert library.cublasDestroy_v2(handle) == NOT_INITIALIZED


def gemm(library, handle, a, b, c, beta=0.0, compute=None, **other):
    """C = A B + beta C of arrays in Fortran's order; ``other`` replaces arguments."""
    dtype = c.dtype
    real = ctypes.c_float if dtype == np.float32 else ctypes.c_double
    compute = compute or (IN_FLOAT32 if dtype == np.float32 else IN_FLOAT64)
    given = {
        "handle": handle, "transa": 0, "transb": 0, "m": a.shape[0], "n": b.shape[1], "k": a.shape[1],
        "alpha": ctypes.byref(real(1)),
        "A": P(a.data.ptr), "Atype": TYPES[a.dtype], "lda": max(a.shape[0], 1),
        "B": P(b.data.ptr), "Btype": TYPES[b.dtype], "ldb": max(b.shape[0], 1),
        "beta": ctypes.byref(real(beta)),
        "C": P(c.data.ptr), "Ctype": TYPES[dtype], "ldc": max(c.shape[0], 1),
        "compute": compute, "algo": -1,
    }  # fmt: skip
    assert other.keys() <= given.keys()
    return library.cublasGemmEx(*(given | other).values())


@pytest.fixture
def matrices(simulated, rng):
    """A (3, 4), B (4, 5) and C (3, 5)."""
    return [simulated.array(rng.standard_normal(shape), order="F") for shape in ((3, 4), (4, 5), (3, 5))]


def test_product(library, handle, matrices):
    a, b, c = matrices
    expected = a.get() @ b.get()
    assert not gemm(library, handle, a, b, c)
    np.testing.assert_allclose(c.get(), expected, rtol=1e-12)
    assert not gemm(library, handle, a, b, c, beta=-0.5)
    np.testing.assert_allclose(c.get(), expected / 2, rtol=1e-12)
    assert not gemm(library, handle, b, a, c, transa=1, transb=1, m=5, n=3, k=4, lda=4, ldb=3, ldc=5)
    np.testing.assert_allclose(c.get().reshape(-1, order="F").reshape(3, 5), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("status", "wrong"),
    [
        (INVALID_VALUE, {"m": -1}),
        (INVALID_VALUE, {"n": -1}),
        (INVALID_VALUE, {"k": -1}),
        (INVALID_VALUE, {"lda": 2}),
        (INVALID_VALUE, {"transa": 1}),
        (INVALID_VALUE, {"ldb": 3}),
        (INVALID_VALUE, {"ldc": 2}),
        (INVALID_VALUE, {"ldc": 0, "m": 0}),
        (INVALID_VALUE, {"transb": 9}),
        (INVALID_VALUE, {"alpha": None}),
        (INVALID_VALUE, {"A": None}),
        (NOT_SUPPORTED, {"Atype": FLOAT32}),
        (NOT_SUPPORTED, {"compute": IN_TF32}),
        (EXECUTION_FAILED, {"lda": 4}),  # ends outside its memory
        (EXECUTION_FAILED, {"n": 6}),
        (0, {"m": 0}),
        (0, {"n": 0, "A": None}),
    ],
    ids=str,
)
def test_status(status, wrong, library, handle, matrices):
    before = matrices[2].get()
    assert gemm(library, handle, *matrices, **wrong) == status
    np.testing.assert_array_equal(matrices[2].get(), before)


def test_a_stream_takes_the_workspace_away(simulated, library, handle, matrices):
    assert not library.cublasSetStream_v2(handle, P(8))
    assert gemm(library, handle, *matrices) == ALLOC_FAILED
    workspace = simulated.cuda.alloc(1024)
    assert library.cublasSetWorkspace_v2(handle, P(workspace.ptr + 1), ctypes.c_size_t(1023)) == INVALID_VALUE
    assert not library.cublasSetWorkspace_v2(handle, P(workspace.ptr), ctypes.c_size_t(1024))
    assert not gemm(library, handle, *matrices)


def test_a_handle_that_is_none(library, matrices):
    assert gemm(library, None, *matrices) == NOT_INITIALIZED


def test_memory_that_is_gone(simulated, library, handle, matrices):
    a, b, c = matrices
    address = simulated.zeros((3, 4)).data.ptr
    assert gemm(library, handle, a, b, c, A=P(address)) == EXECUTION_FAILED


def test_products_that_wait(simulated, library, handle, matrices):
    a, b, c = matrices
    before, expected, places = c.get(), a.get() @ b.get(), []
    callback = cublas_library.CALLBACK(lambda place: places.append(place) or INVALID_VALUE * len(places[1:]))
    shim = cublas_library.load()
    shim.shim_on_call(callback)
    assert not gemm(library, handle, a, b, c)
    assert gemm(library, handle, a, b, c, beta=1.0) == INVALID_VALUE, "the result of the callback"
    shim.shim_on_call(cublas_library.CALLBACK())
    np.testing.assert_array_equal(c.get(), before)
    for times, place in enumerate(places, 1):
        assert not shim.shim_replay(place)
        np.testing.assert_allclose(c.get(), times * expected, rtol=1e-12)
    a *= 3  # the product reads the values at its execution
    assert not shim.shim_replay(places[0])
    np.testing.assert_allclose(c.get(), 3 * expected, rtol=1e-12)
    assert shim.shim_replay(10**9) == INVALID_VALUE
    assert not gemm(library, handle, a, b, c)
