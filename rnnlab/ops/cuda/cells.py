"""The recurrent cells' primitives on CuPy; :mod:`rnnlab.ops.numpy.cells` says what each does."""

from __future__ import annotations

from typing import Any

from rnnlab.ops.cuda.launch import check_whole, each
from rnnlab.ops.cuda.masks import drawing
from rnnlab.ops.step_masks import StepMasks
from rnnlab.types import Array

__all__ = [
    "gru_candidate_backward",
    "gru_candidate_forward",
    "gru_candidate_regularised_backward",
    "gru_candidate_regularised_forward",
    "gru_gates_backward",
    "gru_gates_forward",
    "lstm_backward",
    "lstm_backward_of_sum",
    "lstm_forward",
    "lstm_regularised_backward",
    "lstm_regularised_forward",
    "rnn_backward",
    "rnn_forward",
    "rnn_regularised_backward",
    "rnn_regularised_forward",
    "simplified_gru_backward",
    "simplified_gru_forward",
    "simplified_gru_regularised_backward",
    "simplified_gru_regularised_forward",
]


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
    _cell("lstm_forward", (gates, prev_c, c, tanh_c, h), h.shape)


def lstm_backward(dh: Array, dc: Array, gates: Array, prev_c: Array, tanh_c: Array, da: Array) -> None:
    """Write da; dc leaves as that of c_{t-1}."""
    _cell("lstm_backward", (dh, None, dc, gates, prev_c, tanh_c, da), dc.shape)


def lstm_backward_of_sum(
    dh: Array, further: Array, dc: Array, gates: Array, prev_c: Array, tanh_c: Array, da: Array
) -> None:
    """:func:`lstm_backward` of dh + further."""
    _cell("lstm_backward", (dh, further, dc, gates, prev_c, tanh_c, da), dc.shape)


def gru_gates_forward(gates: Array, prev_h: Array, reset_h: Array) -> None:
    """Activate z and r; reset_h = r prev_h."""
    _cell("gru_gates_forward", (gates, prev_h, reset_h), prev_h.shape)


def gru_gates_backward(dreset_h: Array, dh: Array, gates: Array, prev_h: Array, da: Array) -> None:
    """Write the r part of da, add dreset_h r to dh."""
    _cell("gru_gates_backward", (dreset_h, dh, gates, prev_h, da), prev_h.shape)


def gru_candidate_forward(gates: Array, prev_h: Array, h: Array) -> None:
    """h = (1 - z) g + z prev_h."""
    _cell("gru_candidate_forward", (gates, prev_h, h), prev_h.shape)


def gru_candidate_backward(dh: Array, gates: Array, prev_h: Array, da: Array) -> None:
    """Write the z and candidate parts of da; dh leaves as dh z."""
    _cell("gru_candidate_backward", (dh, gates, prev_h, da), prev_h.shape)


def simplified_gru_forward(gates: Array, prev_h: Array, h: Array) -> None:
    """h = (1 - z) g + z prev_h."""
    _cell("simplified_gru_forward", (gates, prev_h, h), prev_h.shape)


def simplified_gru_backward(dh: Array, gates: Array, prev_h: Array, da: Array) -> None:
    """Write da; dh leaves as dh z."""
    _cell("simplified_gru_backward", (dh, gates, prev_h, da), prev_h.shape)


# Noise is drawn in the kernels. Nothing is left to be added after the products, so that nothing is returned.


def rnn_regularised_forward(a: Array, prev_h: Array, made: Array, h: Array, noise: StepMasks) -> None:
    """:func:`rnn_forward` and zoneout."""
    _cell("rnn_regularised_forward", (a, prev_h, made, h), h.shape, drawing(noise, 1, drops=False))


def rnn_regularised_backward(dh: Array, made: Array, da: Array, noise: StepMasks) -> Array | None:
    """Write da; dh leaves as what goes past the cell."""
    _cell("rnn_regularised_backward", (dh, made, da), dh.shape, drawing(noise, 1, drops=False))
    return None


def lstm_regularised_forward(
    gates: Array, prev_h: Array, prev_c: Array, c: Array, tanh_c: Array, h: Array, noise: StepMasks
) -> None:
    """:func:`lstm_forward` and noise."""
    arrays = gates, prev_h, prev_c, c, tanh_c, h
    _cell("lstm_regularised_forward", arrays, h.shape, drawing(noise, 2, drops=True))


def lstm_regularised_backward(
    dh: Array, dc: Array, gates: Array, prev_c: Array, tanh_c: Array, da: Array, noise: StepMasks
) -> Array | None:
    """Write da; dc leaves as that of c_{t-1}, dh as what goes past the cell."""
    arrays = dh, dc, gates, prev_c, tanh_c, da
    _cell("lstm_regularised_backward", arrays, dc.shape, drawing(noise, 2, drops=True))
    return None


def gru_candidate_regularised_forward(gates: Array, prev_h: Array, h: Array, noise: StepMasks) -> None:
    """:func:`gru_candidate_forward` and noise."""
    _cell("gru_candidate_regularised_forward", (gates, prev_h, h), h.shape, drawing(noise, 1, drops=True))


def gru_candidate_regularised_backward(
    dh: Array, gates: Array, prev_h: Array, da: Array, noise: StepMasks
) -> Array | None:
    """Write the z and candidate parts of da; dh leaves as dh z and what goes past the cell."""
    _cell(
        "gru_candidate_regularised_backward", (dh, gates, prev_h, da), dh.shape, drawing(noise, 1, drops=True)
    )
    return None


def simplified_gru_regularised_forward(gates: Array, prev_h: Array, h: Array, noise: StepMasks) -> None:
    """:func:`simplified_gru_forward` and noise."""
    _cell("simplified_gru_regularised_forward", (gates, prev_h, h), h.shape, drawing(noise, 1, drops=True))


def simplified_gru_regularised_backward(
    dh: Array, gates: Array, prev_h: Array, da: Array, noise: StepMasks
) -> Array | None:
    """Write da; dh leaves as dh z and what goes past the cell."""
    _cell(
        "simplified_gru_regularised_backward",
        (dh, gates, prev_h, da),
        dh.shape,
        drawing(noise, 1, drops=True),
    )
    return None


def _cell(name: str, arrays: tuple[Array, ...], shape: tuple[int, int], noise: tuple[Any, ...] = ()) -> None:
    check_whole(*arrays)
    n, H = shape
    each(name, n * H, arrays[0], *arrays, n, H, *noise)
