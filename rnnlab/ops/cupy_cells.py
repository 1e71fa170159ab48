"""The recurrent cells' primitives on CuPy; :mod:`rnnlab.ops.numpy_cells` says what each does."""

from __future__ import annotations

from typing import Any

from rnnlab.ops.cupy_kernels import check_whole, each

__all__ = [
    "gru_candidate_backward",
    "gru_candidate_dropped_backward",
    "gru_candidate_dropped_forward",
    "gru_candidate_forward",
    "gru_gates_backward",
    "gru_gates_forward",
    "lstm_backward",
    "lstm_dropped_backward",
    "lstm_dropped_forward",
    "lstm_forward",
    "rnn_backward",
    "rnn_forward",
    "simplified_gru_backward",
    "simplified_gru_dropped_backward",
    "simplified_gru_dropped_forward",
    "simplified_gru_forward",
]

Array = Any


def rnn_forward(a: Array, h: Array) -> None:
    """h = tanh(a)."""
    check_whole(a, h)
    each("rnn_forward", h.size, h, a, h, h.size)


def rnn_backward(dh: Array, h: Array, da: Array) -> None:
    """da = dh (1 - h^2)."""
    check_whole(dh, h, da)
    each("rnn_backward", h.size, h, dh, h, da, h.size)


def lstm_forward(gates: Array, prev_c: Array, c: Array, tanh_c: Array, h: Array) -> None:
    """All of a step but the products."""
    _cell("lstm_forward", (gates, None, prev_c, c, tanh_c, h), h.shape)


def lstm_dropped_forward(gates: Array, keep: Array, prev_c: Array, c: Array, tanh_c: Array, h: Array) -> None:
    """:func:`lstm_forward` with keep g for g."""
    _cell("lstm_forward", (gates, keep, prev_c, c, tanh_c, h), h.shape)


def lstm_backward(dh: Array, dc: Array, gates: Array, prev_c: Array, tanh_c: Array, da: Array) -> None:
    """Write da; dc leaves as that of c_{t-1}."""
    _cell("lstm_backward", (dh, dc, gates, None, prev_c, tanh_c, da), dc.shape)


def lstm_dropped_backward(
    dh: Array, dc: Array, gates: Array, keep: Array, prev_c: Array, tanh_c: Array, da: Array
) -> None:
    """Backward of :func:`lstm_dropped_forward`."""
    _cell("lstm_backward", (dh, dc, gates, keep, prev_c, tanh_c, da), dc.shape)


def gru_gates_forward(gates: Array, prev_h: Array, reset_h: Array) -> None:
    """Activate z and r; reset_h = r prev_h."""
    _cell("gru_gates_forward", (gates, prev_h, reset_h), prev_h.shape)


def gru_gates_backward(dreset_h: Array, dh: Array, gates: Array, prev_h: Array, da: Array) -> None:
    """Write the r part of da, add dreset_h r to dh."""
    _cell("gru_gates_backward", (dreset_h, dh, gates, prev_h, da), prev_h.shape)


def gru_candidate_forward(gates: Array, prev_h: Array, h: Array) -> None:
    """h = (1 - z) g + z prev_h."""
    _cell("gru_candidate_forward", (gates, None, prev_h, h), prev_h.shape)


def gru_candidate_dropped_forward(gates: Array, keep: Array, prev_h: Array, h: Array) -> None:
    """:func:`gru_candidate_forward` with keep g for g."""
    _cell("gru_candidate_forward", (gates, keep, prev_h, h), prev_h.shape)


def gru_candidate_backward(dh: Array, gates: Array, prev_h: Array, da: Array) -> None:
    """Write the z and candidate parts of da; dh leaves as dh z."""
    _cell("gru_candidate_backward", (dh, gates, None, prev_h, da), prev_h.shape)


def gru_candidate_dropped_backward(dh: Array, gates: Array, keep: Array, prev_h: Array, da: Array) -> None:
    """Backward of :func:`gru_candidate_dropped_forward`."""
    _cell("gru_candidate_backward", (dh, gates, keep, prev_h, da), prev_h.shape)


def simplified_gru_forward(gates: Array, prev_h: Array, h: Array) -> None:
    """h = (1 - z) g + z prev_h."""
    _cell("simplified_gru_forward", (gates, None, prev_h, h), prev_h.shape)


def simplified_gru_dropped_forward(gates: Array, keep: Array, prev_h: Array, h: Array) -> None:
    """:func:`simplified_gru_forward` with keep g for g."""
    _cell("simplified_gru_forward", (gates, keep, prev_h, h), prev_h.shape)


def simplified_gru_backward(dh: Array, gates: Array, prev_h: Array, da: Array) -> None:
    """Write da; dh leaves as dh z."""
    _cell("simplified_gru_backward", (dh, gates, None, prev_h, da), prev_h.shape)


def simplified_gru_dropped_backward(dh: Array, gates: Array, keep: Array, prev_h: Array, da: Array) -> None:
    """Backward of :func:`simplified_gru_dropped_forward`."""
    _cell("simplified_gru_backward", (dh, gates, keep, prev_h, da), prev_h.shape)


def _cell(name: str, arrays: tuple[Array | None, ...], shape: tuple[int, int]) -> None:
    check_whole(*arrays)
    n, H = shape
    each(name, n * H, arrays[0], *arrays, n, H)
