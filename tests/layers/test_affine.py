import re

import numpy as np
import pytest

from rnnlab.layers import affine_backward, affine_forward, temporal_affine_backward, temporal_affine_forward
from rnnlab.ops import ops_for

from .reference import CupyArray, assert_gradients, assert_same, every_dtype, spoil

LAYERS = {
    "affine": (affine_forward, affine_backward),
    "temporal_affine": (temporal_affine_forward, temporal_affine_backward),
}
every_affine = pytest.mark.parametrize("name", LAYERS)


def inputs(rng, *shape, D=None, M=2, dtype=np.float64):
    w = rng.standard_normal((shape[-1] if D is None else D, M))
    arrays = {"x": rng.standard_normal(shape), "w": w, "b": rng.standard_normal(M)}
    return {name: array.astype(dtype) for name, array in arrays.items()}


def test_affine_flattens_what_comes_after_the_first_axis(rng):
    given = inputs(rng, 3, 2, 4, D=8)
    out, _ = affine_forward(**given)
    for n in range(3):
        np.testing.assert_allclose(out[n], given["x"][n].ravel() @ given["w"] + given["b"], rtol=1e-12)


def test_affine_of_the_course():
    N, D, M = 2, 120, 3
    out, _ = affine_forward(
        np.linspace(-0.1, 0.5, num=N * D).reshape(N, 4, 5, 6),
        np.linspace(-0.2, 0.3, num=D * M).reshape(D, M),
        np.linspace(-0.3, 0.1, num=M),
    )
    expected = [[1.49834967, 1.70660132, 1.91485297], [3.25553199, 3.5141327, 3.77273342]]
    np.testing.assert_allclose(out, expected, atol=1e-8)


def test_temporal_affine_is_affine_at_every_step(rng):
    given = inputs(rng, 3, 4, 5)
    out, _ = temporal_affine_forward(**given)
    for n, t in np.ndindex(3, 4):
        np.testing.assert_allclose(out[n, t], given["x"][n, t] @ given["w"] + given["b"], rtol=1e-12)


@pytest.mark.parametrize("shape", [(3, 5), (1, 5), (0, 5), (3, 2, 5), (2, 1, 2, 3)])
def test_affine_gradients(shape, rng):
    D = int(np.prod(shape[1:]))
    assert_gradients(*LAYERS["affine"], inputs(rng, *shape, D=D), rng)


@pytest.mark.parametrize("shape", [(3, 4, 5), (1, 1, 5), (0, 4, 5), (3, 0, 5)])
def test_temporal_affine_gradients(shape, rng):
    assert_gradients(*LAYERS["temporal_affine"], inputs(rng, *shape), rng)


def test_the_gradient_of_the_input_is_an_option(rng, monkeypatch):
    out, cache = affine_forward(**inputs(rng, 3, 2, 4, D=8))
    _, *expected = affine_backward(out, cache)
    with monkeypatch.context() as patch:
        patch.delattr(ops_for(out), "matmul")  # its product is left out
        dx, *gradients = affine_backward(out, cache, input_gradient=False)
    assert dx is None
    for gradient, same in zip(gradients, expected, strict=True):
        np.testing.assert_array_equal(gradient, same)


@every_affine
@every_dtype
def test_dtype(name, dtype, rng):
    forward, backward = LAYERS[name]
    out, cache = forward(**inputs(rng, 3, 4, 5, D=20 if name == "affine" else 5, dtype=dtype))
    assert {array.dtype for array in (out, *backward(out, cache))} == {np.dtype(dtype)}


@every_affine
def test_outputs_may_be_overwritten(name, rng):
    forward, backward = LAYERS[name]
    out, cache = forward(**inputs(rng, 3, 4, 5, D=20 if name == "affine" else 5))
    dout = out.copy()
    before = backward(dout, cache)
    spoil(out)
    assert_same(backward(dout, cache), before)


@every_affine
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"w": np.ones((4, 2))}, "w has shape (4, 2), expected (D, M) = (5, 2)"),
        ({"b": np.ones(3)}, "b has shape (3,), expected (M,) = (2,)"),
    ],
)
def test_wrong_shapes(name, wrong, message, rng):
    given = inputs(rng, *((3, 5) if name == "affine" else (3, 4, 5)))
    with pytest.raises(ValueError, match=re.escape(f"{name}_forward: {message}")):
        LAYERS[name][0](**given | wrong)


def test_a_temporal_input_has_three_axes(rng):
    message = "temporal_affine_forward: x has shape (3, 5), expected (N, T, D)"
    with pytest.raises(ValueError, match=re.escape(message)):
        temporal_affine_forward(**inputs(rng, 3, 5))


@every_affine
def test_wrong_gradients(name, rng):
    forward, backward = LAYERS[name]
    out, cache = forward(**inputs(rng, 3, 4, 5, D=20 if name == "affine" else 5))
    for dout in (out[1:], out[..., 1:]):
        with pytest.raises(ValueError, match=f"{name}_backward: dout has shape "):
            backward(dout, cache)
    with pytest.raises(TypeError, match="affine_backward: dout has dtype float32, expected float64 as x"):
        backward(out.astype(np.float32), cache)


@every_affine
@pytest.mark.parametrize("argument", ["x", "w", "b"])
def test_a_list_is_named(argument, name, rng):
    message = f"^{name}_forward: {argument} is a list, expected a NumPy or CuPy array"
    with pytest.raises(TypeError, match=message):
        LAYERS[name][0](**inputs(rng, 3, 4, 5) | {argument: [0.0]})


@every_affine
def test_mixed_libraries(name, rng):
    with pytest.raises(TypeError, match="arrays of one library"):
        LAYERS[name][0](**inputs(rng, 3, 4, 5) | {"w": CupyArray()})


def test_gradients_of_a_temporal_map_are_added(rng):
    x, w, b, dout = (rng.standard_normal(shape) for shape in ((2, 3, 4), (4, 5), (5,), (2, 3, 5)))
    _, cache = temporal_affine_forward(x, w, b)
    _, dw, db = temporal_affine_backward(dout, cache)
    into = np.ones_like(w), np.ones_like(b)
    found = temporal_affine_backward(dout, cache, into=into)
    assert all(one is other for one, other in zip(found[1:], into, strict=True))
    np.testing.assert_allclose(into[0], 1 + dw)
    np.testing.assert_allclose(into[1], 1 + db)
