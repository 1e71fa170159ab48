"""One step of each cell behind one signature, for loops that put more into the pre-activations.

A step works on rows of packed arrays, as :mod:`rnnlab.layers.recurrent.packing` tells. ``prev`` and ``after`` are
the states before and after it, (h,) or (h, c), each (n, H). ``gates`` (n, G) come in as a part of the
pre-activations, the recurrent product is added to them, and they leave as activations. ``kept`` (n, H) is
what the backward needs besides.

With noise (:mod:`rnnlab.layers.recurrent.regularisation`), ``read`` (n, H) is what the recurrent products read instead
of prev's h, and ``dread`` what its gradient is added to; there is none in a cell that carries no h, without
``noise``, where dstate leaves as the gradient of ``read``. ``noise`` is what the primitives draw: with it a
backward returns what is to be added to the gradient of prev's h after all products, or None.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from rnnlab.layers.recurrent import gru
from rnnlab.ops import StepMasks
from rnnlab.types import Array

State = tuple[Array, ...]


class CellSteps(NamedTuple):
    """A cell's step and its backward."""

    gates: int  # G = gates H
    states: int  # arrays in a state
    carries_h: bool  # whether h reaches the next step by itself, not only through the recurrent product
    lay_out: Callable[..., Any]  # (ops, Wh) -> Wh as ``forward`` takes it
    lay_out_transposed: Callable[..., Any]  # (ops, Wh) -> Wh as ``backward`` takes it
    forward: Callable[..., None]  # (ops, Wh, gates, prev, after, kept, read=, noise=)
    # (ops, Wh^T, dstate, gates, prev, after, kept, da, read=, dread=, noise=): dstate leaves as of prev
    backward: Callable[..., Array | None]
    add_gradient: Callable[..., None]  # (ops, h before each row, kept, da, dWh), for many steps at once


def cell_steps(function: str, cell: str) -> CellSteps:
    """The steps of the cell of that name.

    Raises
    ------
    ValueError
        If there is none.
    """
    if cell not in _CELLS:
        raise ValueError(f"{function}: cell is {cell!r}, expected one of {', '.join(_CELLS)}")
    return _CELLS[cell]


def _packed(ops: Any, Wh: Array) -> Any:
    return ops.prepacked(Wh)


def _packed_transposed(ops: Any, Wh: Array) -> Any:
    return ops.prepacked(Wh.T)


def _add_gradient(ops: Any, prev_h: Array, kept: Array, da: Array, dWh: Array) -> None:
    ops.matmul_add(prev_h.T, da, dWh)


def _rnn_forward(
    ops: Any, Wh: Any, gates: Array, prev: State, after: State, kept: Array,
    *, read: Array | None = None, noise: StepMasks | None = None,
) -> None:  # fmt: skip
    ops.matmul_add(prev[0] if read is None else read, Wh, gates)
    if noise is None:
        ops.rnn_forward(gates, after[0])
    else:
        ops.rnn_regularised_forward(gates, prev[0], kept, after[0], noise)


def _rnn_backward(
    ops: Any, to_h: Any, dstate: State, gates: Array, prev: State, after: State, kept: Array, da: Array,
    *, read: Array | None = None, dread: Array | None = None, noise: StepMasks | None = None,
) -> Array | None:  # fmt: skip
    if noise is None:
        ops.rnn_backward(dstate[0], after[0], da)
        ops.matmul_into(da, to_h, dstate[0])
        return None
    past = ops.rnn_regularised_backward(dstate[0], kept, da, noise)
    ops.matmul_add(da, to_h, dstate[0] if dread is None else dread)
    return past


def _lstm_forward(
    ops: Any, Wh: Any, gates: Array, prev: State, after: State, kept: Array,
    *, read: Array | None = None, noise: StepMasks | None = None,
) -> None:  # fmt: skip
    ops.matmul_add(prev[0] if read is None else read, Wh, gates)
    if noise is None:
        ops.lstm_forward(gates, prev[1], after[1], kept, after[0])
    else:
        ops.lstm_regularised_forward(gates, *prev, after[1], kept, after[0], noise)


def _lstm_backward(
    ops: Any, to_h: Any, dstate: State, gates: Array, prev: State, after: State, kept: Array, da: Array,
    *, read: Array | None = None, dread: Array | None = None, noise: StepMasks | None = None,
) -> Array | None:  # fmt: skip
    if noise is None:
        ops.lstm_backward(*dstate, gates, prev[1], kept, da)
        ops.matmul_into(da, to_h, dstate[0])
        return None
    past = ops.lstm_regularised_backward(*dstate, gates, prev[1], kept, da, noise)
    ops.matmul_add(da, to_h, dstate[0] if dread is None else dread)
    return past


def _simplified_gru_forward(
    ops: Any, Wh: Any, gates: Array, prev: State, after: State, kept: Array,
    *, read: Array | None = None, noise: StepMasks | None = None,
) -> None:  # fmt: skip
    ops.matmul_add(prev[0] if read is None else read, Wh, gates)
    if noise is None:
        ops.simplified_gru_forward(gates, prev[0], after[0])
    else:
        ops.simplified_gru_regularised_forward(gates, prev[0], after[0], noise)


def _simplified_gru_backward(
    ops: Any, to_h: Any, dstate: State, gates: Array, prev: State, after: State, kept: Array, da: Array,
    *, read: Array | None = None, dread: Array | None = None, noise: StepMasks | None = None,
) -> Array | None:  # fmt: skip
    past = None
    if noise is None:
        ops.simplified_gru_backward(dstate[0], gates, prev[0], da)
    else:
        past = ops.simplified_gru_regularised_backward(dstate[0], gates, prev[0], da, noise)
    ops.matmul_add(da, to_h, dstate[0] if dread is None else dread)
    return past


def _gru_packed(ops: Any, Wh: Array) -> Any:
    return gru._packed(ops, gru._parts(Wh))


def _gru_packed_transposed(ops: Any, Wh: Array) -> Any:
    return gru._packed(ops, gru._transposed(gru._parts(Wh)))


def _gru_forward(
    ops: Any, Wh: Any, gates: Array, prev: State, after: State, kept: Array, **noise: Any
) -> None:
    gru._step(ops, Wh, gates, prev[0], kept, after[0], **noise)


def _gru_backward(
    ops: Any, to_h: Any, dstate: State, gates: Array, prev: State, after: State, kept: Array, da: Array,
    **noise: Any,
) -> Array | None:  # fmt: skip
    return gru._step_backward(ops, to_h, dstate[0], gates, prev[0], da, **noise)


def _gru_add_gradient(ops: Any, prev_h: Array, kept: Array, da: Array, dWh: Array) -> None:
    gru._add_recurrent_gradient(ops, prev_h, kept, da, gru._parts(dWh))


_CELLS = {
    "rnn": CellSteps(1, 1, False, _packed, _packed_transposed, _rnn_forward, _rnn_backward, _add_gradient),
    "lstm": CellSteps(4, 2, False, _packed, _packed_transposed, _lstm_forward, _lstm_backward, _add_gradient),
    "gru": CellSteps(
        3, 1, True, _gru_packed, _gru_packed_transposed, _gru_forward, _gru_backward, _gru_add_gradient
    ),
    "simplified_gru": CellSteps(
        2,
        1,
        True,
        _packed,
        _packed_transposed,
        _simplified_gru_forward,
        _simplified_gru_backward,
        _add_gradient,
    ),
}
