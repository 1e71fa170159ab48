from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rnnlab.parameters import Parameters, merged

SHAPES = {"W": (2, 3), "none": (0, 4), "b": (3,), "scalar": ()}


@pytest.fixture
def params():
    params = Parameters(SHAPES)
    params.flat[...] = np.arange(10)
    return params


def test_views_of_one_buffer(params):
    np.testing.assert_array_equal(params["W"], [[0, 1, 2], [3, 4, 5]])
    np.testing.assert_array_equal(params["b"], [6, 7, 8])
    assert params["scalar"] == 9
    assert params["none"].shape == (0, 4)
    params["W"][1, 2] = 50
    assert params.flat[5] == 50
    params.flat[6] = 60
    assert params["b"][0] == 60
    assert params.flat.flags.c_contiguous


def test_setting_copies_into_the_view(params):
    view, value = params["b"], np.array([1.0, 2.0, 3.0])
    params["b"] = value
    assert params["b"] is view
    value[0] = 100
    np.testing.assert_array_equal(params["b"], [1, 2, 3])
    params["scalar"] = 4
    assert params.flat[-1] == 4
    params["b"] += 1
    np.testing.assert_array_equal(params.flat[6:9], [2, 3, 4])


def test_setting_keeps_the_numbers():
    params = Parameters({"W": (2, 3)}, np.float32)
    with pytest.raises(TypeError, match="parameter 'W' is set to a MaskedArray, expected a plain array"):
        params["W"] = np.ma.ones((2, 3))
    with pytest.raises(TypeError, match="parameter 'W' is set to complex128, expected real numbers"):
        params["W"] = np.full((2, 3), 1j)
    with pytest.raises(ValueError, match="parameter 'W': a value is too large for float32"):
        params["W"] = np.full((2, 3), 1e300)
    assert not params.flat.any()
    params["W"] = np.full((2, 3), np.inf)
    assert np.isinf(params.flat).all()


@pytest.mark.parametrize(
    ("value", "found"), [(np.zeros((3, 2)), r"\(3, 2\)"), (1.0, r"\(\)"), ([[1, 2, 3]], r"\(1, 3\)")]
)
def test_setting_checks_the_shape(params, value, found):
    with pytest.raises(ValueError, match=rf"parameter 'W' has shape \(2, 3\), the array given has {found}"):
        params["W"] = value
    np.testing.assert_array_equal(params.flat, np.arange(10))


def test_unknown_names(params):
    for use in (lambda: params["V"], lambda: params.__setitem__("V", 1)):
        with pytest.raises(KeyError, match="no parameter 'V'; there are W, none, b, scalar"):
            use()
    assert "V" not in params


def test_an_attribute_is_no_parameter():
    """As in PyTorch, it would have no effect."""
    params = Parameters({"Wx": (2,), "flat": (1,), "on_complete": (1,)})
    with pytest.raises(TypeError, match=r"parameter 'Wx' is set by params\['Wx'\] = ..., not as an attrib"):
        params.Wx = np.ones(2)
    params.flat, params.on_complete = np.ones(4), print
    assert params["Wx"].tolist() == [1, 1]


def test_names_cannot_go(params):
    with pytest.raises(TypeError, match="'W' is a view of a shared buffer and cannot be deleted"):
        del params["W"]


def test_is_a_mapping_in_the_order_of_the_buffer(params):
    assert list(params) == list(SHAPES)
    assert len(params) == 4
    assert {name: array.shape for name, array in params.items()} == params.shapes == SHAPES
    params.update({"W": np.ones((2, 3)), "scalar": 2})
    assert params.flat.sum() == 6 + 6 + 7 + 8 + 2


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda params: pickle.loads(pickle.dumps(params))])
def test_copies_of_python_have_views_of_their_own_buffer(params, copied):
    params.on_complete = print
    other = copied({"model": params, "same": params})
    assert other["model"] is other["same"]
    other = other["model"]
    other["b"] = [1, 2, 3]
    np.testing.assert_array_equal(other.flat, [0, 1, 2, 3, 4, 5, 1, 2, 3, 9])
    np.testing.assert_array_equal(params.flat, np.arange(10))
    assert other.on_complete is None


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_copies_share_nothing(params, dtype):
    params = Parameters(SHAPES, dtype, flat=params.flat.astype(dtype))
    for other, expected in ((params.copy(), params.flat), (params.zeros_like(), np.zeros(10))):
        assert other.dtype == dtype
        assert other.shapes == params.shapes
        np.testing.assert_array_equal(other.flat, expected)
        assert not np.shares_memory(other.flat, params.flat)


def test_zeros_like_is_zero_where_there_was_nan(params):
    params["W"] = np.full((2, 3), np.nan)
    np.testing.assert_array_equal(params.zeros_like().flat, 0)


@pytest.mark.parametrize(
    "flat", [np.zeros(9, np.float32), np.zeros((10, 1), np.float32), np.zeros(10, np.float64)]
)
def test_buffer_must_fit(flat):
    with pytest.raises(ValueError, match=r"flat has shape .* and dtype .*, expected \(10,\) and float32"):
        Parameters(SHAPES, flat=flat)


def test_given_buffer_is_used_and_not_copied():
    flat = np.zeros(10, np.float32)
    params = Parameters(SHAPES, flat=flat)
    params["scalar"] = 1
    assert params.flat is flat
    assert flat[-1] == 1


def test_no_parameters():
    assert Parameters({}).flat.shape == (0,)


def test_repr_lists_names_and_shapes(params):
    assert repr(params) == "Parameters(10 x float32)\n  W: (2, 3)\n  none: (0, 4)\n  b: (3,)\n  scalar: ()"


@given(st.lists(st.lists(st.integers(0, 3), max_size=3), max_size=6))
def test_name_at_is_the_parameter_there(shapes):
    params = Parameters({f"p{i}": tuple(shape) for i, shape in enumerate(shapes)})
    for i, array in enumerate(params.values()):
        array[...] = i
    assert [params.name_at(k) for k in range(params.flat.size)] == [f"p{i:.0f}" for i in params.flat]


def test_a_place_is_where_the_view_is(params):
    params.flat[...] = np.arange(10)
    for name, view in params.items():
        np.testing.assert_array_equal(params.flat[params.place(name)], view.reshape(-1))
    with pytest.raises(KeyError, match="no parameter 'V'"):
        params.place("V")


def test_adjacent_places_are_merged():
    places = [slice(7, 9), slice(0, 3), slice(3, 3), slice(3, 5), slice(9, 9), slice(12, 12)]
    assert list(merged(places)) == [slice(0, 5), slice(7, 9)]
    assert list(merged([])) == []


def test_a_scope_has_the_names_without_their_prefix():
    params = Parameters({"a_W": (2, 3), "a_b_W": (3,), "c_W": (1,)})
    scope = params.scope("a_")
    assert (list(scope), len(scope)) == (["W", "b_W"], 2)
    assert scope["W"] is params["a_W"]
    assert scope.scope("b_")["W"] is params["a_b_W"]
    with pytest.raises(KeyError, match="no parameter 'a_V'"):
        scope["V"]
    assert repr(scope) == "Scope('a_': W, b_W)"


@pytest.mark.parametrize("index", [-1, 10])
def test_name_at_outside(params, index):
    with pytest.raises(IndexError, match=f"index {index} is outside the buffer of 10 numbers"):
        params.name_at(index)


def test_equal_to_itself_alone(params):
    assert params == params
    assert params != params.copy()
    assert params in [params.copy(), params]
    assert len({params, params.copy()}) == 2


def test_scopes_are_compared_by_identity():
    params = Parameters({"a_W": (2, 2), "b": (1,)})
    scope = params.scope("a_")
    assert scope == scope
    assert scope != params.copy().scope("a_")
    assert len({scope, params.scope("a_")}) == 2


def test_what_is_assigned_to_flat_is_copied():
    params = Parameters({"W": (2, 2), "b": (1,)})
    flat = params.flat
    params.flat = np.arange(5.0)
    assert params.flat is flat
    assert params["W"].tolist() == [[0, 1], [2, 3]]
    params.flat -= 1
    params.flat = 2 * params.flat
    assert params["b"].tolist() == [6]
    with pytest.raises(ValueError, match=r"flat has shape \(5,\), the array given has \(4,\)"):
        params.flat = np.zeros(4)
    with pytest.raises(TypeError, match="flat is set to complex128, expected real numbers"):
        params.flat = np.zeros(5, complex)
    with pytest.raises(ValueError, match="flat: a value is too large for float32"):
        params.flat = np.full(5, 1e300)
    assert params["b"].tolist() == [6]


def test_flat_on_a_device_is_set_from_the_host(device):
    params = Parameters({"W": (2, 2), "b": (1,)}).on(device.asarray)
    params.flat = np.arange(5.0)
    assert device.asnumpy(params["W"]).tolist() == [[0, 1], [2, 3]]
    params.flat = params.flat * 2
    assert device.asnumpy(params["b"]).tolist() == [8]


@pytest.mark.parametrize(
    ("shapes", "error", "message"),
    [
        ({"a": "x"}, TypeError, "the shape of 'a' is 'x', expected a tuple of integers"),
        ({"a": 3}, TypeError, "the shape of 'a' is 3, expected a tuple of integers"),
        ({"a": (0.5, 2)}, TypeError, "the shape of 'a' is .0.5, 2., expected a tuple of integers"),
        ({"a": (2, -1)}, ValueError, "the shape of 'a' is .2, -1., expected sizes of at least 0"),
        ({"a": ""}, TypeError, "the shape of 'a' is '', expected a tuple of integers"),
        ({"a": {2}}, TypeError, "the shape of 'a' is .2., expected a tuple of integers"),
        ({3: (2,)}, TypeError, "the name 3 is a int, expected a text"),
        ({"": (2,)}, ValueError, "a name is empty, expected a text"),
        ([("a", (2,))], TypeError, "found a list, expected shapes by name, a mapping"),
    ],
)
def test_shapes_that_are_none(shapes, error, message):
    with pytest.raises(error, match=f"^Parameters: {message}"):
        Parameters(shapes)
