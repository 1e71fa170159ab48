"""Comparison of a primitive on CuPy with the reference, launched at once and by a graph."""

import numpy as np
import pytest

from rnnlab.ops import gpu_training
from rnnlab.ops import numpy as numpy_ops

from ..cases import SCRATCH, TOLERANCE

every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def results(ops, name, arguments, options, captured=False):
    """What a primitive returns, and its arrays afterwards, as NumPy's; done at once, or by a graph."""
    arguments = [ops.asarray(a.copy()) if isinstance(a, np.ndarray) else a for a in arguments]
    made = []

    def work():
        made.append(getattr(ops, name)(*arguments, **options))

    if captured:
        training = gpu_training()
        training.Graph(work, training.GraphMemory()).launch(np.random.default_rng(0), work)
    else:
        work()
    (returned,) = made
    returned = returned if isinstance(returned, tuple) else (returned,)
    arrays = [a for k, a in enumerate(arguments) if hasattr(a, "shape") and k != SCRATCH.get(name)]
    return [ops.asnumpy(a) if hasattr(a, "shape") else a for a in (*returned, *arrays)]


def assert_same(ops, name, arguments, **options):
    dtype = next(a.dtype.type for a in arguments if isinstance(a, np.ndarray) and a.dtype.kind == "f")
    with np.errstate(invalid="ignore", over="ignore"):
        expected = results(numpy_ops, name, arguments, options)
    for captured in (False, True):  # in this order: the first compiles what the second needs
        for a, e in zip(results(ops, name, arguments, options, captured), expected, strict=True):
            if e is None:
                assert a is None
                continue
            assert np.shape(a) == np.shape(e)
            assert np.asarray(a).dtype == np.asarray(e).dtype
            np.testing.assert_allclose(a, e, **TOLERANCE[dtype])


def is_simulated(device):
    """Whether this is CuPy's stand-in."""
    return hasattr(device, "launches")
