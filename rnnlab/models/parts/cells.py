"""The recurrent cells behind one signature, so that a model need not know which it has.

A state is a tuple of arrays (N, H): (h,) for most cells, (h, c) for the LSTM.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from rnnlab.layers.recurrent import gru, lstm, rnn, simplified_gru
from rnnlab.layers.recurrent.regularisation import Random, Regularisation, expected_state
from rnnlab.layers.recurrent.sequence import RegularisedCache, regularised_backward, regularised_forward
from rnnlab.types import Array

State = tuple[Array, ...]


class Cell(NamedTuple):
    """One kind of recurrent cell, with or without noise."""

    name: str
    gates: int  # Wx is (D, gates H)
    states: int  # arrays in a state
    # (x, state, Wx, Wh, b, lengths, rng) -> h, cache; there is noise where rng is given
    forward: Callable[..., tuple[Array, Any]]
    # (dh, cache, into=) -> dx, dstate, dWx, dWh, db
    backward: Callable[..., tuple[Array, State, Array, Array, Array]]
    step: Callable[..., State]  # (x, state, Wx, Wh, b) -> state, as in inference
    regularisation: Regularisation | None = None

    def shapes(self, input_dim: int, hidden_dim: int, layer: str = "") -> dict[str, tuple[int, ...]]:
        """The cell's parameters, their names ending in ``layer``."""
        columns = self.gates * hidden_dim
        return {
            f"Wx{layer}": (input_dim, columns),
            f"Wh{layer}": (hidden_dim, columns),
            f"b{layer}": (columns,),
        }


def cell_for(name: str, regularisation: Regularisation | None = None) -> Cell:
    """The cell of that name, with that noise.

    Raises
    ------
    ValueError
        If there is none, or the noise does not fit it.
    """
    if name not in CELLS:
        raise ValueError(f"cell_type is {name!r}, expected one of {', '.join(CELLS)}")
    if regularisation is None:
        return CELLS[name]
    regularisation.check("regularisation", name)
    return _regularised(CELLS[name], regularisation) if any(regularisation.rates) else CELLS[name]


def _regularised(plain: Cell, regularisation: Regularisation) -> Cell:
    def forward(
        x: Array, state: State, Wx: Array, Wh: Array, b: Array, lengths: Array | None, rng: Random = None
    ) -> tuple[Array, RegularisedCache]:
        h, _, cache = regularised_forward(
            x, state, Wx, Wh, b, cell=plain.name, regularisation=regularisation, rng=rng, lengths=lengths
        )
        return h, cache

    def step(x: Array, state: State, Wx: Array, Wh: Array, b: Array) -> State:
        return expected_state(regularisation, state, plain.step(x, state, Wx, Wh, b))

    return plain._replace(
        forward=forward, backward=regularised_backward, step=step, regularisation=regularisation
    )


def _one_state(name: str, gates: int, forward: Any, backward: Any, step_forward: Any) -> Cell:
    """A cell whose state is h alone."""

    def cell_forward(
        x: Array, state: State, Wx: Array, Wh: Array, b: Array, lengths: Array | None, rng: Random = None
    ) -> tuple[Array, Any]:
        return forward(x, state[0], Wx, Wh, b, lengths=lengths)

    def cell_backward(dh: Array, cache: Any, **into: Any) -> tuple[Array, State, Array, Array, Array]:
        dx, dh0, dWx, dWh, db = backward(dh, cache, **into)
        return dx, (dh0,), dWx, dWh, db

    def cell_step(x: Array, state: State, Wx: Array, Wh: Array, b: Array) -> State:
        return step_forward(x, state[0], Wx, Wh, b)[:1]

    return Cell(name, gates, 1, cell_forward, cell_backward, cell_step)


def _lstm_forward(
    x: Array, state: State, Wx: Array, Wh: Array, b: Array, lengths: Array | None, rng: Random = None
) -> tuple[Array, Any]:
    h0, c0 = state
    return lstm.lstm_forward(x, h0, Wx, Wh, b, c0=c0, lengths=lengths)


def _lstm_backward(dh: Array, cache: Any, **into: Any) -> tuple[Array, State, Array, Array, Array]:
    dx, dh0, dWx, dWh, db, dc0 = lstm.lstm_backward(dh, cache, **into)
    return dx, (dh0, dc0), dWx, dWh, db


def _lstm_step(x: Array, state: State, Wx: Array, Wh: Array, b: Array) -> State:
    prev_h, prev_c = state
    return lstm.lstm_step_forward(x, prev_h, prev_c, Wx, Wh, b)[:2]


CELLS = {
    cell.name: cell
    for cell in (
        _one_state("rnn", 1, rnn.rnn_forward, rnn.rnn_backward, rnn.rnn_step_forward),
        Cell("lstm", 4, 2, _lstm_forward, _lstm_backward, _lstm_step),
        _one_state("gru", 3, gru.gru_forward, gru.gru_backward, gru.gru_step_forward),
        _one_state(
            "simplified_gru",
            2,
            simplified_gru.simplified_gru_forward,
            simplified_gru.simplified_gru_backward,
            simplified_gru.simplified_gru_step_forward,
        ),
    )
}
