"""Wrong arguments of a primitive on CuPy are refused by name, before a kernel is launched."""

import importlib

import numpy as np
import pytest

from rnnlab.ops.arguments import PRIMITIVES

from ..cases import GATES, step_masks
from ..declared import call, made

# cublas.py checks them
PRODUCTS = {"affine", "affine_into", "matmul_into", "matmul_add"}
NAMES = [
    name
    for name in PRIMITIVES
    if "dropped" not in name and "zoneout" not in name and name not in PRODUCTS | {"flush_subnormals"}
]


def refused(simulated, ops, name, arrays, error, message):
    simulated.launches.clear()
    with pytest.raises(error, match=f"{name}: {message}"):
        call(ops, name, arrays)
    assert not simulated.launches


@pytest.mark.parametrize("name", NAMES)
def test_every_axis_one_short_and_every_dtype(name, simulated, rng):
    ops = importlib.import_module("rnnlab.ops.cuda")
    arguments = PRIMITIVES[name].arguments
    letters = [letter for each in arguments for _, letter in each.axes or ()]

    def arrays():
        return {key: ops.asarray(array) for key, array in made(name, rng).items()}

    call(ops, name, arrays())
    for each in arguments:
        for axis, (_, letter) in enumerate(each.axes or ()):
            if letters.count(letter) > 1:
                given = arrays()
                shorter = np.delete(ops.asnumpy(given[each.name]), -1, axis)
                given[each.name] = ops.asarray(shorter)
                refused(simulated, ops, name, given, ValueError, r"\w+ has shape")
        given = arrays()
        dtype = np.int32 if each.size else np.float16
        given[each.name] = given[each.name].astype(dtype)
        refused(simulated, ops, name, given, TypeError, f"{each.name} has dtype {np.dtype(dtype)}")
        given = arrays()
        given[each.name] = ops.asnumpy(given[each.name])
        refused(simulated, ops, name, given, TypeError, f"{each.name} is numpy.ndarray, expected a CuPy")


@pytest.mark.parametrize("name", NAMES)
def test_arrays_with_gaps_are_read_right_or_refused(name, simulated, rng):
    ops, arrays = importlib.import_module("rnnlab.ops.cuda"), made(name, rng)

    def results(apart=None):
        given = {key: ops.asarray(array.copy()) for key, array in arrays.items()}
        if apart is not None:
            given[apart] = ops.asarray(np.repeat(arrays[apart], 2, axis=-1))[..., ::2]
        returned = call(ops, name, given)
        returned = returned if isinstance(returned, tuple) else (returned,)
        return [ops.asnumpy(each) for each in (*returned, *given.values()) if hasattr(each, "shape")]

    expected = results()
    for apart in arrays:
        try:
            found = results(apart)
        except ValueError as error:
            assert "contiguous" in str(error), apart  # noqa: PT017
            continue
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other, err_msg=apart)


@pytest.mark.parametrize(
    ("b", "message"),
    [(np.zeros(1), r"\(1,\)"), (np.zeros((2, 5)), r"\(2, 5\)"), (np.zeros(5, "f"), "float32")],
    ids=["one", "matrix", "dtype"],
)
def test_the_bias_of_a_product_is_not_broadcast_or_converted(b, message, simulated):
    ops = importlib.import_module("rnnlab.ops.cuda")
    x, w, out = ops.zeros((2, 3)), ops.zeros((3, 5)), ops.zeros((2, 5))
    with pytest.raises(ValueError, match=f"affine: b has .*{message}.*, expected .5,. and float64"):
        ops.affine_into(x, w, ops.asarray(b), out)


@pytest.mark.parametrize("cell", GATES)
def test_regularised_steps_of_wrong_shapes(cell, simulated):
    ops, masks = importlib.import_module("rnnlab.ops.cuda"), step_masks(cell)[-1]
    names = {"lstm": 5}
    rows, short = ops.zeros((3, 4)), ops.zeros((2, 4))
    gates = ops.zeros((3, 4 * GATES[cell]))
    for wrong in range(names.get(cell, 2)):
        states = [short if k == wrong else rows for k in range(names.get(cell, 2))]
        simulated.launches.clear()
        with pytest.raises(ValueError, match=rf"{cell}_regularised_forward: \w+ has shape"):
            getattr(ops, f"{cell}_regularised_forward")(gates, *states, masks)
        assert not simulated.launches
