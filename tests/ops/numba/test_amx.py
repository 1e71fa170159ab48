"""Tiles of products in the tile registers, each in a kernel of its own."""

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("threadpoolctl")

import numba

from rnnlab.ops.numba import amx
from rnnlab.ops.numba.amx import LINE, TILE, release_tiles, set_tiles, sum_tiles
from rnnlab.ops.numpy.bfloat16 import rounded_to_bfloat16

here = pytest.mark.skipif(
    not amx.permitted(), reason="this processor, or the system, has no AMX for bfloat16"
)


@numba.njit
def tile(both, depth, x, x_step, w, first, with_first, first_step, out):
    set_tiles()
    at = first.ctypes.data if with_first else 0
    sum_tiles(
        both, depth, x.ctypes.data, x_step, w.ctypes.data, at, first_step, out.ctypes.data, out.strides[0]
    )
    release_tiles()


def pairs(a):
    """Numbers (lines, 2 n) as pairs of bfloat16 (lines, n)."""
    bits = a.view(np.uint32) >> 16
    return bits[:, ::2] | bits[:, 1::2] << 16


def tiles(a):
    """Pairs (lines, n) tile by tile: (lines / 16, n / 16, 16, 16)."""
    return np.ascontiguousarray(a.reshape(a.shape[0] // 16, 16, -1, 16).swapaxes(1, 2))


@here
@pytest.mark.parametrize(("both", "rows", "columns"), [(True, 32, 32), (False, 16, 64)], ids=["both", "one"])
@pytest.mark.parametrize("depth", [1, 3])
def test_sums(depth, both, rows, columns, rng):
    """The first half of a panel's columns, or all; numbers beside the result stay as they were."""
    x, w = rng.standard_normal((rows, 32 * depth)), rng.standard_normal((32 * depth, 64))
    x, w = (rounded_to_bfloat16(a.astype(np.float32)) for a in (x, w))
    of_x = tiles(pairs(x))
    of_w = tiles(pairs(w.T.copy()).T.copy())
    assert of_w.shape == (depth, 4, 16, 16)  # four tiles side by side in a panel
    assert of_x[0, 0].nbytes == TILE == 16 * LINE
    wide = rng.standard_normal((rows + 1, columns + 3)).astype(np.float32)
    out, saved = wide[:rows, :columns], wide.copy()
    start, row = out.copy(), rng.standard_normal((1, columns)).astype(np.float32)
    for first, step, before in ((None, 0, 0), (row, 0, row), (start, start.strides[0], start)):
        given = start if first is None else first
        tile(both, depth, of_x, depth * TILE, of_w, given, first is not None, step, out)
        np.testing.assert_allclose(out, before + x @ w[:, :columns], rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(wide[rows], saved[rows])
    np.testing.assert_array_equal(wide[:, columns:], saved[:, columns:])


def test_a_processor_without_amx_is_not_asked(monkeypatch):
    monkeypatch.setattr(amx, "AMX", False)
    monkeypatch.setattr(amx, "ctypes", None)
    assert not amx.permitted()


@pytest.mark.parametrize(("answer", "permitted"), [(0, True), (-1, False)])
def test_the_system_is_asked(answer, permitted, monkeypatch):
    asked = []

    class Library:
        @staticmethod
        def syscall(*arguments):
            asked.append(arguments)
            return answer

    monkeypatch.setattr(amx, "AMX", True)
    monkeypatch.setattr(amx.sys, "platform", "linux")
    monkeypatch.setattr(amx.ctypes, "CDLL", lambda name: Library)
    assert amx.permitted() == permitted
    assert asked == [(158, 0x1023, 18)]  # arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA)
