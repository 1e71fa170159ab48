"""The stand-in's arrays raise the errors that CuPy raises."""

from __future__ import annotations

import copy
import operator
import pickle

import numpy as np
import pytest


def test_library_is_known_by_the_type(device, x):
    assert type(x).__module__ == type(x + 1).__module__ == "cupy"
    assert isinstance(x, device.ndarray)
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
def test_no_implicit_conversion(device, x):
    for function in (np.asarray, np.array, np.float64):
        with pytest.raises(TypeError):
            function(x)
    with pytest.raises(TypeError):
        np.empty(4)[:] = x[0]


OPERATORS = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.lt,
    operator.eq,
    operator.matmul,
]


@pytest.mark.parametrize("operation", OPERATORS)
def test_operators(device, x, operation):
    other = x.T.copy() if operation is operator.matmul else x * 2
    result = operation(x, other)
    assert isinstance(result, device.ndarray)
    np.testing.assert_allclose(result.get(), operation(x.get(), other.get()), rtol=1e-12)
    for left, right in ((x, other.get()), (x.get(), other)):
        with pytest.raises(TypeError):
            operation(left, right)


def test_scalars_keep_the_dtype(device, x):
    x = x.astype("float32")
    assert (2 * x).dtype == (x + 1.5).dtype == (x / np.float32(3)).dtype == "float32"
    assert (-x).dtype == "float32"
    np.testing.assert_array_equal((1 - x).get(), 1 - x.get())


def test_in_place(device, x):
    expected = x.get()
    same = x
    x += 1
    x *= x
    x[0] -= x[1]
    expected = (expected + 1) ** 2
    expected[0] -= expected[1]
    assert same is x
    np.testing.assert_allclose(x.get(), expected)
    with pytest.raises(TypeError):
        x += np.ones((3, 4))
    with pytest.raises(TypeError):
        x += [1, 2, 3, 4]


def test_numpy_functions_on_device_arrays(device, x):
    np.testing.assert_allclose(np.exp(x).get(), np.exp(x.get()))
    out = device.empty_like(x)
    assert np.multiply(x, 2, out=out) is out
    np.testing.assert_array_equal(out.get(), 2 * x.get())
    np.testing.assert_array_equal(np.concatenate([x, x]).get(), np.concatenate([x.get(), x.get()]))
    with pytest.raises(TypeError):
        np.add(x, 1, out=np.empty((3, 4)))
    with pytest.raises(TypeError):
        np.concatenate([x, x.get()])


@pytest.mark.parametrize("name", ["sum", "max", "min", "mean", "argmax", "argmin", "any", "all"])
def test_reductions(device, x, name):
    for options in ({}, {"axis": 1}, {"axis": 0, "keepdims": True}):
        result = getattr(x, name)(**options)
        assert isinstance(result, device.ndarray)
        np.testing.assert_allclose(result.get(), getattr(x.get(), name)(**options))
    np.testing.assert_allclose(getattr(device, name)(x, axis=0).get(), getattr(np, name)(x.get(), axis=0))


def test_zero_dimensions(device, x):
    assert x[1, 2].shape == x.sum().shape == ()
    assert isinstance(x[1, 2], device.ndarray)
    assert float(x[1, 2]) == x.get()[1, 2] == x[1, 2].item()
    assert bool(x[0, 0] == x[0, 0])
    with pytest.raises(TypeError):
        [10, 20, 30][device.asarray(1)]
    with pytest.raises(TypeError, match="Unsupported type"):
        x + np.array(1.0)
    with pytest.raises(ValueError, match="size|more than one element"):  # as NumPy's versions say it
        bool(x)
    with pytest.raises(TypeError):
        iter(x[0, 0]).__next__()


KEYS = [
    0,
    -1,
    slice(1, None),
    (slice(None), 2),
    (Ellipsis, None),
    (None, 1),
    [0, 2],
    (slice(None, None, 2), [1, 3]),
]


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_indexing(device, x, key):
    np.testing.assert_array_equal(x[key].get(), x.get()[key])
    expected = x.get()
    expected[key] = 7
    x[key] = 7
    np.testing.assert_array_equal(x.get(), expected)


def test_indexing_with_arrays(device, x):
    rows = device.asarray([2, 0, 2])
    np.testing.assert_array_equal(x[rows].get(), x.get()[[2, 0, 2]])
    np.testing.assert_array_equal(x[x > 0].get(), x.get()[x.get() > 0])
    np.testing.assert_array_equal(x.take(rows, axis=0).get(), x.get()[[2, 0, 2]])
    x[x > 0] = 0
    assert float(x.max()) <= 0


def test_views_share_memory(device, x):
    for view in (x[1:], x.T, x.reshape(12), x.ravel(), x.swapaxes(0, 1), x[:, ::2]):
        assert device.shares_memory(view, x)
        assert view.base is x
    x[1:].fill(3)
    x.T[0] = 4
    assert x[2].tolist() == [4, 3, 3, 3]
    assert not device.shares_memory(x.copy(), x)
    assert device.asarray(x) is x
    assert device.ascontiguousarray(x) is x


def test_host_values_are_refused(simulated):
    x = simulated.zeros((3, 4))
    with pytest.raises(TypeError, match="expected a CuPy array or a scalar"):
        x[0] = np.ones(4)
    with pytest.raises(TypeError, match="indexed with a NumPy array"):
        x[np.array([0, 1])]
    with pytest.raises(TypeError, match="NumPy array"):
        simulated.take(x, np.array([0, 1]), axis=0)
    with pytest.raises(TypeError, match="CuPy array"):
        simulated.sum(np.ones(3))
    with pytest.raises(TypeError, match="no option mode"):
        x.take(0, mode="clip")
    square = simulated.ones((2, 2))
    with pytest.raises(ValueError, match="out overlaps a factor"):
        simulated.matmul(square, square, out=square)


def test_get_and_set(device, x):
    host = np.empty((3, 4))
    assert x.get(out=host) is host
    x.set(host + 1)
    np.testing.assert_array_equal(device.asnumpy(x), host + 1)
    with pytest.raises(TypeError):
        x.set(host.astype("float32"))
    with pytest.raises(ValueError, match=r"\(3, 4\)"):
        x.set(host[:2])


def test_copies(device, x):
    for other in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert not device.shares_memory(other, x)
        np.testing.assert_array_equal(other.get(), x.get())


def test_functions(device, x):
    order = device.argsort(x, axis=1)
    np.testing.assert_array_equal(device.take_along_axis(x, order, axis=1).get(), np.sort(x.get(), axis=1))
    np.testing.assert_array_equal(device.where(x > 0, x, 0).get(), np.maximum(x.get(), 0))
    np.testing.assert_array_equal(device.flatnonzero(x > 0).get(), np.flatnonzero(x.get() > 0))
    np.testing.assert_array_equal(device.stack([x, x], axis=1).get(), np.stack([x.get(), x.get()], axis=1))
    np.testing.assert_array_equal(device.arange(2, 9, 3).get(), [2, 5, 8])
    np.testing.assert_array_equal(device.full((2,), 7, dtype="int64").get(), [7, 7])
    device.copyto(x, 5)
    assert float(x.sum()) == 60
    with pytest.raises(ValueError, match="non-scalar"):
        device.copyto(x, np.ones((3, 4)))


def test_division_by_zero_says_nothing(device):
    x = device.zeros(3)
    assert not device.isfinite(1 / x).any()


def test_fresh_memory_holds_no_result(simulated):
    assert simulated.isnan(simulated.empty(5, "float32")).all()
    assert int(simulated.empty(5, "int32").min()) > 10**9


def test_transfers_are_counted(simulated):
    x = simulated.asarray(np.ones(3))
    x.get()
    float(x.sum())
    simulated.cuda.Device().synchronize()
    x[x > 0]
    x += x * 2
    transfers = simulated.transfers
    assert (transfers.to_device, transfers.to_host, transfers.synchronisations) == (1, 2, 2)
