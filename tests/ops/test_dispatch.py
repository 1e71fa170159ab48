import numpy as np
import pytest

from rnnlab.ops import numpy_ops, ops_for


def foreign(library, name):
    """An object of a class that another library might have made."""
    return type(name, (), {"__module__": library})()


def test_numpy():
    ops = ops_for(np.zeros(2))
    assert set(numpy_ops.__all__) <= set(dir(ops))
    assert ops_for(np.zeros(2), np.zeros(3, int), np.float32(1)) is ops


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
    with pytest.raises(TypeError, match=rf"expected NumPy arrays, got {got}$"):
        ops_for(*arrays)
