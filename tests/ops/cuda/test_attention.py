"""Attention on CuPy against the reference."""

import numpy as np
import pytest

from rnnlab.ops import numpy as numpy_ops

from .. import attention_cases as attention
from .compare import every_dtype


@pytest.mark.usefixtures("blocks")
@every_dtype
@pytest.mark.parametrize("shape", [*attention.SHAPES, (3, 300, 520, 512)], ids=str)
@pytest.mark.parametrize("name", attention.NAMES)
def test_attention(name, shape, ops, dtype, rng):
    arguments = attention.arguments_of(name, shape, rng, dtype)
    expected = attention.run(numpy_ops, name, arguments)
    given = {key: ops.asarray(array.copy()) for key, array in arguments.items()}
    getattr(ops, name)(**given)
    tolerance = attention.TOLERANCE[dtype]
    for key, array in given.items():
        np.testing.assert_allclose(ops.asnumpy(array), expected[key], **tolerance, err_msg=key)


@pytest.mark.usefixtures("blocks")
@every_dtype
@pytest.mark.parametrize("name", attention.NAMES)
def test_attention_to_the_first_slots_of_wider_arrays(name, ops, dtype, rng):
    arguments = attention.arguments_of(name, (3, 5, 4, 6), rng, dtype)
    narrow = {"slots", "weights", "dscores"}
    cut = {key: array[:, :2] if key in narrow else array for key, array in arguments.items()}
    expected = attention.run(numpy_ops, name, cut)
    given = {key: ops.asarray(array.copy()) for key, array in arguments.items()}
    views = {key: array[:, :2] if key in narrow else array for key, array in given.items()}
    getattr(ops, name)(**views)
    for key, array in views.items():
        actual = ops.asnumpy(array)
        np.testing.assert_allclose(actual, expected[key], **attention.TOLERANCE[dtype], err_msg=key)
    for key in narrow & set(given):
        np.testing.assert_array_equal(ops.asnumpy(given[key])[:, 2:], arguments[key][:, 2:])


@pytest.mark.parametrize("name", attention.NAMES)
def test_arrays_that_kernels_read_as_a_whole_are_contiguous(name, simulated, ops, rng):
    arguments = attention.arguments_of(name, (3, 5, 4, 6), rng, np.float64)
    for key in arguments.keys() - {"slots", "weights", "dscores"}:
        given = {key: ops.asarray(array) for key, array in arguments.items()}
        given[key] = ops.asarray(np.repeat(arguments[key], 2, axis=-1))[..., ::2]
        with pytest.raises(ValueError, match="expected a C-contiguous array, got strides"):
            getattr(ops, name)(**given)
