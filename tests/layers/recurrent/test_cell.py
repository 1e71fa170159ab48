"""What the four recurrent cells have in common, each test for all of them."""

import re

import numpy as np
import pytest

from ..reference import (
    CupyArray,
    assert_close,
    assert_gradients,
    assert_same,
    every_cell,
    every_dtype,
    numerical_gradients,
    spoil,
)

RAGGED = np.array([2, 4, 0])  # of inputs with N, T = 3, 4: neither sorted nor without an empty sequence
every_lengths = pytest.mark.parametrize(
    "lengths",
    [None, RAGGED, np.array([3, 1, 2]), np.array([4, 4, 4]), np.array([0, 0, 0])],
    ids=lambda lengths: "none" if lengths is None else ",".join(map(str, lengths)),
)
every_shape = pytest.mark.parametrize(
    ("N", "T", "lengths"),
    [
        (1, 1, None),
        (1, 4, None),
        (3, 1, None),
        (3, 1, [1, 0, 1]),
        (3, 0, None),
        (3, 0, [0, 0, 0]),
        (3, 4, [0, 0, 0]),
        (1, 3, [0]),
        (0, 4, None),
        (0, 4, []),
        (0, 0, None),
    ],
)


# ---------------------------------------------------------------- one step


@every_cell
def test_step_is_the_equations(cell, rng):
    inputs = cell.step_inputs(rng)
    *states, _ = cell.step_forward(**inputs)
    x, *previous = (inputs[name] for name in ("x", *(f"prev_{state}" for state in cell.states)))
    weights = [inputs[name] for name in ("Wx", "Wh", "b")]
    np.testing.assert_allclose(states, cell.reference_step(x, tuple(previous), *weights), rtol=1e-12)


@every_cell
@pytest.mark.parametrize("N", [0, 1, 7])
def test_step_gradients(cell, N, rng):
    assert_gradients(cell.step_forward, cell.step_backward, cell.step_inputs(rng, N, D=3, H=2), rng)


@every_cell
@every_dtype
def test_step_keeps_the_dtype(cell, dtype, rng):
    *states, cache = cell.step_forward(**cell.step_inputs(rng, dtype=dtype))
    grads = cell.step_backward(*states, cache)
    assert {array.dtype for array in (*states, *grads)} == {np.dtype(dtype)}


@every_cell
def test_step_outputs_and_gradients_may_be_overwritten(cell, rng):
    *states, cache = cell.step_forward(**cell.step_inputs(rng))
    douts = [rng.standard_normal(state.shape) for state in states]
    first = cell.step_backward(*douts, cache)
    kept = tuple(grad.copy() for grad in first)
    spoil(*first, *states)
    assert_same(cell.step_backward(*douts, cache), kept)


# ---------------------------------------------------------------- a sequence


@every_cell
@every_lengths
def test_sequence_is_the_equations(cell, lengths, rng):
    inputs = cell.inputs(rng)
    *actual, _ = cell.forward(**inputs, lengths=lengths, return_state=True)
    for array, expected in zip(actual, cell.reference(inputs, lengths), strict=True):
        np.testing.assert_allclose(array, expected, rtol=1e-12)


@pytest.mark.one_in(2)
@every_cell
@every_lengths
def test_sequence_gradients(cell, lengths, rng):
    assert_gradients(
        lambda **inputs: cell.forward(**inputs, lengths=lengths, return_state=True),
        cell.backward_all,
        cell.inputs(rng, D=5, H=2),
        rng,
    )


@pytest.mark.one_in(3)
@every_cell
@every_shape
def test_edge_shapes(cell, N, T, lengths, rng):
    """No step, no sequence, one of each: the same equations and gradients."""
    inputs = cell.inputs(rng, N, T, D=5, H=2)
    lengths = None if lengths is None else np.array(lengths, dtype=int)

    def forward(**inputs):
        return cell.forward(**inputs, lengths=lengths, return_state=True)

    *outs, cache = forward(**inputs)
    for out, expected in zip(outs, cell.reference(inputs, lengths), strict=True):
        assert out.shape == expected.shape
        np.testing.assert_allclose(out, expected, rtol=1e-12)
    douts = [rng.standard_normal(out.shape) for out in outs]
    grads = dict(zip(inputs, cell.backward_all(*douts, cache), strict=True))
    assert_close(grads, numerical_gradients(forward, inputs, douts), 1e-7)


@every_cell
def test_a_mask_says_the_same_as_lengths(cell, rng):
    inputs = cell.inputs(rng)
    h, cache = cell.forward(**inputs, lengths=RAGGED)
    dh = rng.standard_normal(h.shape)
    for dtype in (bool, np.int32, np.float64):
        mask = (np.arange(4) < RAGGED[:, None]).astype(dtype)
        masked, mask_cache = cell.forward(**inputs, mask=mask)
        assert_same(masked, h)
        assert_same(cell.backward(dh, mask_cache), cell.backward(dh, cache))


@every_cell
def test_return_state_only_adds_the_state(cell, rng):
    inputs = cell.inputs(rng)
    h, cache = cell.forward(**inputs, lengths=RAGGED)
    with_state, *finals, with_cache = cell.forward(**inputs, lengths=RAGGED, return_state=True)
    assert_same(with_state, h)
    np.testing.assert_array_equal(finals[0], h[:, -1])
    dh = rng.standard_normal(h.shape)
    nothing = [np.zeros(final.shape) for final in finals]
    assert_same(cell.backward_all(dh, *nothing, with_cache), cell.backward(dh, cache))


@every_cell
def test_a_sequence_is_its_steps_one_after_another(cell, rng):
    inputs = cell.inputs(rng)
    x, Wx, Wh, b = (inputs[name] for name in ("x", "Wx", "Wh", "b"))
    state = [inputs[f"{name}0"] for name in cell.states]
    caches, hidden = [], []
    for t in range(x.shape[1]):
        *state, cache = cell.step_forward(x[:, t], *state, Wx, Wh, b)
        caches.append(cache)
        hidden.append(state[0])
    h, *finals, cache = cell.forward(**inputs, return_state=True)
    np.testing.assert_allclose(h, np.stack(hidden, axis=1), rtol=1e-12)
    np.testing.assert_allclose(finals, state, rtol=1e-12)

    dh, *dstate = (rng.standard_normal(array.shape) for array in (h, *finals))
    grads = dict(zip(inputs, cell.backward_all(dh, *dstate, cache), strict=True))
    chained = {name: np.zeros_like(array) for name, array in inputs.items()}
    for t in reversed(range(x.shape[1])):
        dstate[0] = dstate[0] + dh[:, t]
        dx, *rest = cell.step_backward(*dstate, caches[t])
        dstate, dweights = rest[: len(dstate)], rest[len(dstate) :]
        chained["x"][:, t] = dx
        for name, dweight in zip(("Wx", "Wh", "b"), dweights, strict=True):
            chained[name] += dweight
    chained |= {f"{name}0": gradient for name, gradient in zip(cell.states, dstate, strict=True)}
    assert_close(grads, chained, 1e-13)


@every_cell
@every_dtype
def test_dtype_in_is_dtype_out(cell, dtype, rng):
    inputs = cell.inputs(rng)
    low = {name: array.astype(dtype) for name, array in inputs.items()}
    *outs, cache = cell.forward(**low, lengths=RAGGED, return_state=True)
    assert {out.dtype for out in outs} == {np.dtype(dtype)}
    for out, expected in zip(outs, cell.reference(inputs, RAGGED), strict=True):
        np.testing.assert_allclose(out, expected, atol=1e-5)

    *_, exact = cell.forward(**inputs, lengths=RAGGED)
    douts = [rng.standard_normal(out.shape) for out in outs]
    grads = cell.backward_all(*(dout.astype(dtype) for dout in douts), cache)
    assert {grad.dtype for grad in grads} == {np.dtype(dtype)}
    expected = dict(zip(inputs, cell.backward_all(*douts, exact), strict=True))
    assert_close(dict(zip(inputs, grads, strict=True)), expected, 1e-5)


@every_cell
@pytest.mark.parametrize("lengths", [None, RAGGED], ids=["full", "ragged"])
def test_outputs_and_gradients_may_be_overwritten(cell, lengths, rng):
    *outs, cache = cell.forward(**cell.inputs(rng), lengths=lengths, return_state=True)
    douts = [rng.standard_normal(out.shape) for out in outs]
    first = cell.backward_all(*douts, cache)
    kept = tuple(grad.copy() for grad in first)
    spoil(*first, *outs)
    assert_same(cell.backward_all(*douts, cache), kept)


@every_cell
def test_what_is_in_padding_is_not_read(cell, rng):
    inputs = cell.inputs(rng)
    padding = np.arange(4) >= RAGGED[:, None]
    h, cache = cell.forward(**inputs, lengths=RAGGED)
    spoiled = inputs | {"x": np.where(padding[:, :, None], np.nan, inputs["x"])}
    h_spoiled, cache_spoiled = cell.forward(**spoiled, lengths=RAGGED)
    assert_same(h_spoiled, h)
    dh = rng.standard_normal(h.shape)
    grads = cell.backward(dh, cache_spoiled)
    assert_same(grads, cell.backward(dh, cache))
    assert not grads[0][padding].any()


@every_cell
def test_large_numbers_saturate(cell, rng):
    """Gates at the ends of their range: finite states and gradients, and no warning."""
    inputs = cell.inputs(rng, dtype=np.float32)
    h, cache = cell.forward(**inputs | {"x": inputs["x"] * np.float32(1e4)})
    assert np.isfinite(h).all()
    assert all(np.isfinite(grad).all() for grad in cell.backward(np.ones_like(h), cache))


# ---------------------------------------------------------------- what is refused


@every_cell
@pytest.mark.parametrize(
    ("name", "axes"), [("h0", "N H"), ("Wx", "D {}H"), ("Wh", "H {}H"), ("b", "{}H"), ("x", "N T D")]
)
def test_a_wrong_shape_is_named(cell, name, axes, rng):
    inputs = cell.inputs(rng)
    axes = axes.format(cell.gates if cell.gates > 1 else "")
    expected = "(" + ", ".join(axes.split()) + ("," if " " not in axes else "") + ")"
    if name == "x":
        wrong = inputs["x"][:, 0]
    else:
        expected += f" = {inputs[name].shape}"
        wrong = inputs[name][1:]
    message = f"{cell.name}_forward: {name} has shape {wrong.shape}, expected {expected}"
    with pytest.raises(ValueError, match=re.escape(message)):
        cell.forward(**inputs | {name: wrong})


@every_cell
@pytest.mark.parametrize("name", ["Wx", "Wh", "b"])
def test_a_step_names_a_wrong_shape(cell, name, rng):
    inputs = cell.step_inputs(rng)
    message = f"{cell.name}_step_forward: {name} has shape {inputs[name][1:].shape}, expected "
    with pytest.raises(ValueError, match=re.escape(message)):
        cell.step_forward(**inputs | {name: inputs[name][1:]})


@every_cell
def test_mixed_dtypes(cell, rng):
    inputs = cell.inputs(rng)
    message = f"{cell.name}_forward: Wh has dtype float32, expected float64 as x"
    with pytest.raises(TypeError, match=message):
        cell.forward(**inputs | {"Wh": inputs["Wh"].astype(np.float32)})


@every_cell
def test_integers(cell, rng):
    inputs = cell.inputs(rng)
    message = f"{cell.name}_forward: x has dtype int64, expected float32 or float64"
    with pytest.raises(TypeError, match=message):
        cell.forward(**inputs | {"x": inputs["x"].astype(np.int64)})


@every_cell
@pytest.mark.parametrize("name", ["x", "h0", "Wx", "Wh", "b"])
def test_mixed_libraries(cell, name, rng):
    with pytest.raises(TypeError, match="arrays of one library, got NumPy and CuPy"):
        cell.forward(**cell.inputs(rng) | {name: CupyArray()})


@every_cell
def test_no_array_at_all(cell, rng):
    for name in ("x", "h0", "b"):
        message = f"^{cell.name}_forward: {name} is a list, expected a NumPy or CuPy array"
        with pytest.raises(TypeError, match=message):
            cell.forward(**cell.inputs(rng) | {name: [0.0]})
    with pytest.raises(TypeError, match=f"^{cell.name}_step_forward: Wh is a list, expected a NumPy or"):
        cell.step_forward(**cell.step_inputs(rng) | {"Wh": [0.0]})
    _, cache = cell.forward(**cell.inputs(rng))
    with pytest.raises(TypeError, match=f"^{cell.name}_backward: dh is a list, expected a NumPy or CuPy"):
        cell.backward([0.0], cache)


@every_cell
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lengths": np.array([1, 5, 2])}, "lengths holds 5, expected numbers from 0 to T = 4"),
        ({"lengths": np.array([1, -1, 2])}, "lengths holds -1, expected numbers from 0 to T = 4"),
        ({"lengths": np.array([1, 2])}, "lengths has shape (2,) and dtype int64, expected 3 integers"),
        ({"lengths": np.ones(3)}, "lengths has shape (3,) and dtype float64, expected 3 integers"),
        ({"mask": np.ones((3, 5))}, "mask has shape (3, 5), expected (N, T) = (3, 4)"),
        ({"mask": [[1, 1, 1, 1], [1, 0, 1, 0], [1, 1, 0, 0]]}, "mask has a hole in row 1"),
        ({"mask": np.ones((3, 4)), "lengths": RAGGED}, "both lengths and mask are given"),
    ],
)
def test_wrong_lengths_and_masks(cell, options, message, rng):
    error = TypeError if "float64" in message else ValueError
    with pytest.raises(error, match=re.escape(f"{cell.name}_forward: {message}")):
        cell.forward(**cell.inputs(rng), **options)


@every_cell
def test_backward_turns_away_gradients_that_do_not_fit(cell, rng):
    h, cache = cell.forward(**cell.inputs(rng))
    message = f"{cell.name}_backward: dh has shape (3, 3, 5), expected (3, 4, 5)"
    with pytest.raises(ValueError, match=re.escape(message)):
        cell.backward(h[:, 1:], cache)
    with pytest.raises(TypeError, match=f"{cell.name}_backward: dh has dtype float32, expected float64"):
        cell.backward(h.astype(np.float32), cache)
    for state in cell.states:
        with pytest.raises(ValueError, match=f"^{cell.name}_backward: dfinal_{state} has shape"):
            cell.backward(h, cache, **{f"dfinal_{state}": h[1:, 0]})
    with pytest.raises(TypeError, match="arrays of one library"):
        cell.backward(CupyArray(), cache)


@every_cell
def test_step_backward_turns_away_gradients_that_do_not_fit(cell, rng):
    *states, cache = cell.step_forward(**cell.step_inputs(rng))
    message = f"{cell.name}_step_backward: dnext_h has shape (2, 5), expected (N, H) = (3, 5)"
    with pytest.raises(ValueError, match=re.escape(message)):
        cell.step_backward(*(state[1:] for state in states), cache)
