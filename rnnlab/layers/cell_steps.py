"""One step of each cell behind one signature, for loops that put more into the pre-activations.

A step works on rows of packed arrays, as :mod:`rnnlab.layers.recurrence` tells. ``prev`` and ``after`` are
the states before and after it, (h,) or (h, c), each (n, H). ``gates`` (n, G) come in as a part of the
pre-activations, the recurrent product is added to them, and they leave as activations. ``kept`` (n, H) is
what the backward needs besides.

With noise (:mod:`rnnlab.layers.regularisation`), ``read`` (n, H) is what the recurrent products read instead
of prev's h, and ``dread`` what its gradient is added to, in cells whose h reaches the next step by itself as
well; in the others dstate leaves as the gradient of ``read``. ``keep`` (n, H) multiplies the candidate.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from rnnlab.layers import gru

Array = Any
State = tuple[Array, ...]


class CellSteps(NamedTuple):
    """A cell's step and its backward."""

    gates: int  # G = gates H
    states: int  # arrays in a state
    carries_h: bool  # whether h reaches the next step by itself, not only through the recurrent product
    lay_out: Callable[..., Any]  # (ops, Wh) -> Wh as ``forward`` takes it
    lay_out_transposed: Callable[..., Any]  # (ops, Wh) -> Wh as ``backward`` takes it
    forward: Callable[..., None]  # (ops, Wh, gates, prev, after, kept, read=, keep=)
    # (ops, Wh^T, dstate, gates, prev, after, kept, da, keep=, read=, dread=): dstate leaves as of prev
    backward: Callable[..., None]
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
    return ops.packed(Wh)


def _packed_transposed(ops: Any, Wh: Array) -> Any:
    return ops.packed(Wh.T)


def _add_gradient(ops: Any, prev_h: Array, kept: Array, da: Array, dWh: Array) -> None:
    ops.matmul_add(prev_h.T, da, dWh)


def _rnn_forward(
    ops: Any, Wh: Any, gates: Array, prev: State, after: State, kept: Array, *, read: Array | None = None
) -> None:
    ops.matmul_add(prev[0] if read is None else read, Wh, gates)
    ops.rnn_forward(gates, after[0])


def _rnn_backward(
    ops: Any, to_h: Any, dstate: State, gates: Array, prev: State, after: State, kept: Array, da: Array
) -> None:
    ops.rnn_backward(dstate[0], after[0], da)
    ops.matmul_into(da, to_h, dstate[0])


def _lstm_forward(
    ops: Any, Wh: Any, gates: Array, prev: State, after: State, kept: Array,
    *, read: Array | None = None, keep: Array | None = None,
) -> None:  # fmt: skip
    ops.matmul_add(prev[0] if read is None else read, Wh, gates)
    if keep is None:
        ops.lstm_forward(gates, prev[1], after[1], kept, after[0])
    else:
        ops.lstm_dropped_forward(gates, keep, prev[1], after[1], kept, after[0])


def _lstm_backward(
    ops: Any, to_h: Any, dstate: State, gates: Array, prev: State, after: State, kept: Array, da: Array,
    *, keep: Array | None = None,
) -> None:  # fmt: skip
    if keep is None:
        ops.lstm_backward(dstate[0], dstate[1], gates, prev[1], kept, da)
    else:
        ops.lstm_dropped_backward(dstate[0], dstate[1], gates, keep, prev[1], kept, da)
    ops.matmul_into(da, to_h, dstate[0])


def _simplified_gru_forward(
    ops: Any, Wh: Any, gates: Array, prev: State, after: State, kept: Array,
    *, read: Array | None = None, keep: Array | None = None,
) -> None:  # fmt: skip
    ops.matmul_add(prev[0] if read is None else read, Wh, gates)
    if keep is None:
        ops.simplified_gru_forward(gates, prev[0], after[0])
    else:
        ops.simplified_gru_dropped_forward(gates, keep, prev[0], after[0])


def _simplified_gru_backward(
    ops: Any, to_h: Any, dstate: State, gates: Array, prev: State, after: State, kept: Array, da: Array,
    *, keep: Array | None = None, read: Array | None = None, dread: Array | None = None,
) -> None:  # fmt: skip
    if keep is None:
        ops.simplified_gru_backward(dstate[0], gates, prev[0], da)
    else:
        ops.simplified_gru_dropped_backward(dstate[0], gates, keep, prev[0], da)
    ops.matmul_add(da, to_h, dstate[0] if dread is None else dread)


def _gru_packed(ops: Any, Wh: Array) -> Any:
    return gru._packed(ops, gru._parts(Wh))


def _gru_packed_transposed(ops: Any, Wh: Array) -> Any:
    return gru._packed(ops, gru._transposed(gru._parts(Wh)))


def _gru_forward(
    ops: Any, Wh: Any, gates: Array, prev: State, after: State, kept: Array, **masks: Array
) -> None:
    gru._step(ops, Wh, gates, prev[0], kept, after[0], **masks)


def _gru_backward(
    ops: Any, to_h: Any, dstate: State, gates: Array, prev: State, after: State, kept: Array, da: Array,
    **masks: Array,
) -> None:  # fmt: skip
    gru._step_backward(ops, to_h, dstate[0], gates, prev[0], da, **masks)


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
