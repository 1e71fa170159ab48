"""The four cells with inputs for their tests, and the checks that the tests of all layers share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from rnnlab import layers
from rnnlab.gradcheck.numeric import eval_numerical_gradient_array, projected_check, relative_distance
from rnnlab.gradcheck.side_effects import check_untouched
from rnnlab.plain.gru import gru_step_forward
from rnnlab.plain.lstm import lstm_step_forward
from rnnlab.plain.padding import real_steps
from rnnlab.plain.rnn import rnn_step_forward
from rnnlab.plain.simplified_gru import simplified_gru_step_forward

Array = Any
State = tuple[Array, ...]


# ---------------------------------------------------------------- the four cells


class Cell(NamedTuple):
    """A recurrent cell: its four functions in rnnlab.layers, and its step in rnnlab.plain."""

    name: str
    gates: int
    states: tuple[str, ...]
    plain_step: Callable[..., tuple[Any, ...]]

    def __getattr__(self, function: str) -> Callable[..., Any]:
        """``cell.forward`` is ``lstm_forward``, and so on."""
        return getattr(layers, f"{self.name}_{function}")

    def weights(self, rng: np.random.Generator, D: int, H: int) -> dict[str, Array]:
        G = self.gates * H
        return {
            "Wx": rng.standard_normal((D, G)) / 2,
            "Wh": rng.standard_normal((H, G)) / 2,
            "b": rng.standard_normal(G) / 2,
        }

    def step_inputs(
        self, rng: np.random.Generator, N: int = 3, D: int = 4, H: int = 5, dtype: Any = np.float64
    ) -> dict[str, Array]:
        """The arguments of the step function, in its order."""
        inputs = {"x": rng.standard_normal((N, D))}
        inputs |= {f"prev_{state}": rng.standard_normal((N, H)) for state in self.states}
        inputs |= self.weights(rng, D, H)
        return {name: array.astype(dtype) for name, array in inputs.items()}

    def inputs(
        self,
        rng: np.random.Generator,
        N: int = 3,
        T: int = 4,
        D: int = 4,
        H: int = 5,
        dtype: Any = np.float64,
    ) -> dict[str, Array]:
        """The arguments of the sequence function in its order, and c0 for the LSTM: the gradients' order."""
        inputs = {"x": rng.standard_normal((N, T, D)), "h0": rng.standard_normal((N, H))}
        inputs |= self.weights(rng, D, H)
        if "c" in self.states:
            inputs["c0"] = rng.standard_normal((N, H))
        return {name: array.astype(dtype) for name, array in inputs.items()}

    def backward_all(self, *douts: Array) -> tuple[Array, ...]:
        """The backward of a forward with ``return_state``: of dh, a gradient for each state, the cache."""
        dh, *dfinals, cache = douts
        names = [f"dfinal_{state}" for state in self.states]
        return self.backward(dh, cache, **dict(zip(names, dfinals, strict=True)))

    def reference_step(self, x: Array, state: State, Wx: Array, Wh: Array, b: Array) -> State:
        """The states (N, H) after one step, by the plain text."""
        *after, _ = self.plain_step(x, *state, Wx, Wh, b)
        return tuple(after)

    def reference(self, inputs: dict[str, Array], lengths: Array | None = None) -> tuple[Array, ...]:
        """h (N, T, H) and the final states (N, H), by the plain text."""
        x, h0 = inputs["x"], inputs["h0"]
        N, T, _ = x.shape
        weights = [inputs[name] for name in ("Wx", "Wh", "b")]
        real, h = real_steps(lengths, N, T) > 0, np.zeros((N, T, h0.shape[1]))
        state: State = tuple(inputs.get(f"{name}0", np.zeros(h0.shape)) for name in self.states)
        for t in range(T):
            after = self.reference_step(x[:, t], state, *weights)
            state = tuple(np.where(real[t], new, old) for new, old in zip(after, state, strict=True))
            h[:, t] = state[0]
        return (h, *state)


CELLS = (
    Cell("rnn", 1, ("h",), rnn_step_forward),
    Cell("lstm", 4, ("h", "c"), lstm_step_forward),
    Cell("gru", 3, ("h",), gru_step_forward),
    Cell("simplified_gru", 2, ("h",), simplified_gru_step_forward),
)
every_cell = pytest.mark.parametrize("cell", CELLS, ids=[cell.name for cell in CELLS])
every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


# ---------------------------------------------------------------- checks of a layer


def assert_gradients(
    forward: Callable[..., tuple[Any, ...]],
    backward: Callable[..., Any],
    inputs: dict[str, Array],
    rng: np.random.Generator,
    tolerance: float = 1e-7,
    directions: int | None = None,
) -> None:
    """Check every gradient against central differences of sum(out * dout), over all outputs.

    ``forward(**inputs)`` returns outputs and a cache, ``backward(*douts, cache)`` a gradient for each input;
    neither may write into what it is given. Each number of each input is perturbed, or with ``directions``
    all numbers of an input at once, along so many random directions.
    """
    *outs, cache = forward(**inputs)
    douts = [rng.standard_normal(np.shape(out)) for out in outs]
    grads = dict(zip(inputs, as_tuple(backward(*douts, cache)), strict=True))

    def loss() -> float:
        return float(joined(forward(**inputs)[:-1]) @ joined(douts))

    if directions is None:
        assert_close(grads, numerical_gradients(forward, inputs, douts), tolerance)
    else:
        for name, array in inputs.items():
            assert grads[name].shape == array.shape, name
            for _ in range(directions):
                assert projected_check(loss, array, grads[name], rng=rng) < tolerance, name
    assert check_untouched(forward, backward, inputs, tuple(douts)) == []


def numerical_gradients(
    forward: Callable[..., tuple[Any, ...]], inputs: dict[str, Array], douts: list[Array]
) -> dict[str, Array]:
    """The gradient of sum(out * dout) with respect to each input."""
    return {
        name: eval_numerical_gradient_array(lambda _: joined(forward(**inputs)[:-1]), array, joined(douts))
        for name, array in inputs.items()
    }


def joined(arrays: Any) -> Array:
    """All numbers of several arrays."""
    return np.concatenate([np.ravel(array) for array in arrays])


def assert_close(actual: dict[str, Array], expected: dict[str, Array], tolerance: float) -> None:
    """The same shapes, finite, and each array as a whole within a relative distance."""
    for name, array in expected.items():
        assert actual[name].shape == array.shape, name
        assert np.isfinite(actual[name]).all(), name
        assert relative_distance(actual[name], array) < tolerance, name


def assert_same(actual: Any, expected: Any) -> None:
    """Two gradients, or tuples of them, equal to the last bit."""
    for one, other in zip(as_tuple(actual), as_tuple(expected), strict=True):
        np.testing.assert_array_equal(one, other)


def as_tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def spoil(*arrays: Array) -> None:
    """Overwrite arrays, as a caller may who works in place."""
    for array in arrays:
        array[...] = 1e6


class CupyArray:
    """An object whose type names CuPy as its library."""

    shape, dtype = (3, 5), np.dtype(np.float64)


CupyArray.__module__ = "cupy"
