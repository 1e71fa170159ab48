"""Compiled steps of the cells against the reference."""

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("threadpoolctl")

from rnnlab.ops import numba as numba_ops
from rnnlab.ops import numpy as numpy_ops
from rnnlab.ops.numba import kernel as kernels

from ..cases import CELLS, SHAPES, TOLERANCE, cell_arguments, named
from .compare import assert_same, assert_same_arguments, every_dtype, strided


@pytest.mark.parametrize("name", CELLS)
def test_a_kernel_has_the_arguments_of_the_reference(name):
    assert_same_arguments(name)


@every_dtype
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", CELLS)
def test_cells(name, shape, dtype, normal):
    assert_same(name, cell_arguments(name, *shape, normal))


@pytest.mark.usefixtures("lenient")
@every_dtype
@pytest.mark.parametrize("name", CELLS)
def test_cells_on_arrays_that_no_kernel_takes(name, dtype, normal):
    arguments = cell_arguments(name, 5, 7, normal)
    assert_same(name, arguments, view=strided)
    assert_same(name, arguments, view=lambda a: np.asfortranarray(a))


def read_only(a):
    a = a.copy()
    a.flags.writeable = False
    return a


@pytest.mark.usefixtures("lenient")
@pytest.mark.parametrize("view", [strided, np.asfortranarray, read_only])
def test_copies_of_such_arrays_are_the_kernel_s(view, rng):
    """The same bits, where NumPy rounds differently."""
    dh, gates = rng.standard_normal((2, 40, 300), np.float32)
    expected, found = np.empty((2, 40, 300), np.float32)
    numba_ops.rnn_backward(dh, gates, expected)
    numba_ops.rnn_backward(view(dh), view(gates), found)
    np.testing.assert_array_equal(found, expected)
    numpy_ops.rnn_backward(dh, gates, found)
    assert (found != expected).any()


@pytest.mark.usefixtures("lenient")
@pytest.mark.parametrize("parts", [1, 2, 3])
def test_copies_are_the_kernel_s_in_any_number_of_parts(parts, rng, monkeypatch):
    monkeypatch.setattr(kernels, "_threads", parts)
    dh, gates = rng.standard_normal((2, 9, 70), np.float32)
    expected, found = np.empty((2, 9, 70), np.float32)
    with kernels.always_parallel():
        numba_ops.rnn_backward(dh, gates, expected)
        numba_ops.rnn_backward(dh, strided(gates), found)
        np.testing.assert_array_equal(found, expected)
        with pytest.raises(ValueError, match="rnn_backward: da, which is written, overlaps gates in memory"):
            numba_ops.rnn_backward(dh, gates[::-1], gates)


def test_the_refusal_names_the_array(rng):
    dh, gates = rng.standard_normal((2, 4, 6), np.float32)
    with pytest.raises(TypeError, match="rnn_backward: gates strided, read-only or unaligned; "):
        numba_ops.rnn_backward(dh, read_only(gates), np.empty_like(dh))


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("dtype", [np.float16])
def test_cells_in_half_precision(name, dtype, normal):
    for ops in (numpy_ops, numba_ops):
        with pytest.raises(
            TypeError, match=f"{name}: [a-z_]* has dtype float16, expected float32 or float64"
        ):
            named(ops, name)(*cell_arguments(name, 3, 5, normal))


@every_dtype
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", CELLS)
def test_nan_and_infinity_propagate(name, bad, dtype, normal):
    arguments = cell_arguments(name, 4, 20, normal)
    for k, array in enumerate(arguments):
        spoilt = [a.copy() for a in arguments]
        spoilt[k][array.shape[0] // 2, :: array.shape[1] // 9 + 1] = bad
        assert_same(name, spoilt)


@every_dtype
def test_a_state_may_lie_in_one_array_with_the_next(dtype, normal):
    states, gates, tanh_c = normal(9, 6), normal(3, 24), normal(3, 6)
    expected = states.copy()
    numpy_ops.lstm_forward(gates.copy(), expected[:3], expected[3:6], tanh_c.copy(), expected[6:])
    numba_ops.lstm_forward(gates.copy(), states[:3], states[3:6], tanh_c, states[6:])
    np.testing.assert_allclose(states, expected, **TOLERANCE[dtype])
