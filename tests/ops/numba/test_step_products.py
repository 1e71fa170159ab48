"""Kernels of steps are compiled for exact and for rounded factors."""

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("threadpoolctl")

from rnnlab.ops.numba import bfloat16, gemm
from rnnlab.ops.numba.bfloat16 import rounded_rows
from rnnlab.ops.numba.parallel import share
from rnnlab.ops.numba.step_products import edge_rows, factor_rows, multiply_rows, step_kernels
from rnnlab.ops.numpy.bfloat16 import rounded_to_bfloat16

from .compare import compiled


@step_kernels("T[:,::1], W[:,:,::1], int64, T[:,::1]", arguments="x (n, K); panels (Q, k, C) W; out! (n, G)")
def multiply_in_parts(part, parts, x, panels, first_rows, out):
    for row in share(2, part, parts):  # each half with its own workspaces
        half = slice(row * x.shape[0] // 2, (row + 1) * x.shape[0] // 2)
        x_half, out_half = x[half], out[half]
        rows, edge = factor_rows(x.shape[0], panels), edge_rows(panels, out)
        multiply_rows(x_half, panels, rows, out_half.shape[0] if first_rows else 0, edge, out_half)


@pytest.mark.parametrize("first_rows", [0, 1])
@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize(("n", "K", "G"), [(1, 1, 1), (2, 7, 9), (70, 33, 130), (31, 1100, 65)])
@pytest.mark.parametrize(
    "rounded",
    [False, pytest.param(True, marks=pytest.mark.skipif(bool(bfloat16.missing()), reason="no bfloat16"))],
)
def test_products(rounded, n, K, G, parts, first_rows, rng):
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((n, K), (K, G)))
    out = rng.standard_normal((n, G)).astype(np.float32)
    as_factor = rounded_to_bfloat16 if rounded else np.asarray
    expected = as_factor(x) @ as_factor(w) + first_rows * out
    panels = (bfloat16.RoundedPanels if rounded else gemm.Panels)(w, narrow=True)
    multiply_in_parts[rounded].run(parts, x, panels.panels, first_rows, out)
    np.testing.assert_allclose(out, expected, rtol=0, atol=1e-5 * K**0.5)


@compiled
def rows_of_48(number):
    return rounded_rows(number, 48)


@pytest.mark.parametrize("number", [0, 1, 32, 33])
def test_rows_begin_at_a_cache_line(number):
    rows = rows_of_48(number)
    assert rows.shape == (-(-number // 32) * 32, 48)
    assert rows.ctypes.data % 64 == 0


def test_the_kernels_of_a_function_have_names_of_their_own():
    exact, rounded = multiply_in_parts
    assert exact.cache_name("f") != rounded.cache_name("f")
    assert exact.dtypes == "fd"
    assert rounded.dtypes == bfloat16.VERSIONS
