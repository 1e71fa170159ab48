"""Rounding to bfloat16 bit by bit, and which factors of products on NumPy are rounded."""

import math
import struct

import numpy as np
import pytest

from rnnlab.ops import numpy as numpy_ops
from rnnlab.ops import unchecked
from rnnlab.ops.numpy.bfloat16 import rounded_to_bfloat16
from rnnlab.ops.precision import products_in
from rnnlab.ops.steps import Steps

from ..chunk_cases import lstm_steps_forward

MODULES = {"checked": numpy_ops, "unchecked": unchecked(numpy_ops)}


@pytest.fixture(params=MODULES)
def ops(request):
    return MODULES[request.param]


def nearest(number: float) -> float:
    """The nearest bfloat16 of a float32, by comparing its two neighbours."""
    if not math.isfinite(number):
        return number
    (bits,) = struct.unpack("<I", struct.pack("<f", number))
    below = bits >> 16
    two = [struct.unpack("<f", struct.pack("<I", half << 16))[0] for half in (below, below + 1)]
    # Beyond the largest bfloat16 comes infinity, which rounding takes for 2^128.
    values = [math.copysign(2.0**128, each) if math.isinf(each) else each for each in two]
    distances = [abs(number - each) for each in values]
    if distances[0] == distances[1]:
        return two[below % 2]
    return two[distances[1] < distances[0]]


def numbers():
    rng = np.random.default_rng(0)
    bits = rng.integers(2**32, size=3000, dtype=np.uint32)
    ties = (rng.integers(2**16, size=500, dtype=np.uint32) << 16) | 0x8000
    near = np.concatenate([ties - 1, ties + 1])
    nans = np.array([0x7F800001, 0xFF800001, 0x7FFFFFFF, 0xFFFFFFFF], np.uint32)
    special = np.array(
        [0.0, -0.0, np.inf, -np.inf, 3.4028235e38, -3.4028235e38, 3.3961775e38, 1e-45, -1e-40], np.float32
    )
    return np.concatenate([bits, ties, near, nans, special.view(np.uint32)]).view(np.float32)


def test_rounding_bit_by_bit():
    x = numbers()
    before = x.copy()
    found = rounded_to_bfloat16(x)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(x.view(np.uint32), before.view(np.uint32))
    expected = np.array([nearest(float(each)) for each in x], np.float32)
    np.testing.assert_array_equal(found, expected)
    is_number = ~np.isnan(x)
    np.testing.assert_array_equal(np.signbit(found[is_number]), np.signbit(expected[is_number]))
    assert not (found[is_number].view(np.uint32) & 0xFFFF).any()
    np.testing.assert_array_equal(rounded_to_bfloat16(found), found)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (2, 3, 4)], ids=str)
def test_shapes_and_layouts(shape, rng):
    x = np.asarray(rng.standard_normal(shape), np.float32)
    expected = np.reshape([nearest(float(each)) for each in x.flat], shape)
    for view in (x, np.asfortranarray(x), np.repeat(x[..., None], 2, axis=-1)[..., 0]):
        np.testing.assert_array_equal(rounded_to_bfloat16(view), expected)


def drawn(rng, dtype, *shapes):
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


def products(ops, x, w, b, out):
    """The results of every product."""
    found = [ops.matmul(x, w), ops.matmul(x[None], w), ops.affine(x, w, b)]
    for write in (
        lambda place: ops.affine_into(x, w, b, place),
        lambda place: ops.matmul_into(x, ops.prepacked(w), place),
        lambda place: ops.matmul_add(x, ops.prepacked(w), place),
    ):
        write(place := out.copy())
        found.append(place)
    return found


def test_factors_are_rounded_and_nothing_else(ops, rng):
    x, w, b, out = drawn(rng, np.float32, (3, 5), (5, 4), (4,), (3, 4))
    expected = products(ops, rounded_to_bfloat16(x), rounded_to_bfloat16(w), b, out)
    plain = products(ops, x, w, b, out)
    with products_in("bfloat16"):
        found = products(ops, x, w, b, out)
    for one, other, full in zip(found, expected, plain, strict=True):
        assert one.dtype == np.float32
        np.testing.assert_array_equal(one, other)
        assert (one != full).any()
        np.testing.assert_allclose(one, full, atol=0.1)


@pytest.mark.parametrize(("matmul", "dtype"), [("tf32", np.float32), ("bfloat16", np.float64)])
def test_what_is_not_rounded(ops, matmul, dtype, rng):
    given = drawn(rng, dtype, (3, 5), (5, 4), (4,), (3, 4))
    plain = products(ops, *given)
    with products_in(matmul):
        found = products(ops, *given)
    for one, other in zip(found, plain, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("columns", [2, 6])
def test_column_sums_are_not_rounded(ops, columns, rng):
    x, dout, dW, db = drawn(rng, np.float32, (5, columns), (5, 3), (columns, 3), (3,))
    factors = rounded_to_bfloat16(x.T).astype(float) @ rounded_to_bfloat16(dout)
    added, expected = db.copy(), db + dout.sum(axis=0, dtype=float)
    with products_in("bfloat16"):
        ops.add_column_sums(dout, added)
        ops.add_affine_gradients(x, dout, found := dW.copy(), db)
    for sums in (added, db):
        np.testing.assert_allclose(sums, expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found, dW + factors, rtol=1e-5, atol=1e-6)


def test_steps_of_an_lstm_are_rounded(ops, rng):
    N, H = 3, 4
    gates, Wh, h, c, tanh_c = drawn(rng, np.float32, (N, 4 * H), (H, 4 * H), (2 * N, H), (2 * N, H), (N, H))
    steps = Steps(N, [N])
    results = []
    for matmul, weight, states in (
        ("bfloat16", Wh, h),
        ("float32", rounded_to_bfloat16(Wh), np.concatenate([rounded_to_bfloat16(h[:N]), h[N:]])),
    ):
        arrays = [array.copy() for array in (gates, states, c, tanh_c)]
        with products_in(matmul):
            lstm_steps_forward(ops, arrays[0], weight, *arrays[1:], steps)
        results.append((arrays[0], arrays[1][N:], arrays[2]))
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)
