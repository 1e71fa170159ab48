"""One step of each recurrent cell on CuPy, one launch each. The kernels compute the masks themselves."""

from __future__ import annotations

from typing import Any

from rnnlab.ops.cuda.checks import checked
from rnnlab.ops.cuda.launch import NULL, check_contiguous, each
from rnnlab.ops.cuda.masks import mask_arguments
from rnnlab.ops.step_masks import StepMasks
from rnnlab.types import Array


@checked
def rnn_forward(gates: Array, h: Array) -> None:
    check_contiguous(gates, h)
    each("rnn_forward", h.size, h, gates, h, h.size)


@checked
def rnn_backward(dh: Array, gates: Array, da: Array) -> None:
    check_contiguous(dh, gates, da)
    each("rnn_backward", dh.size, dh, dh, gates, da, dh.size)


@checked
def lstm_forward(gates: Array, prev_c: Array, c: Array, tanh_c: Array, h: Array) -> None:
    _cell("lstm_forward", (gates, prev_c, c, tanh_c, h), h.shape)


@checked
def lstm_backward(dh: Array, dc: Array, gates: Array, prev_c: Array, tanh_c: Array, da: Array) -> None:
    _cell("lstm_backward", (dh, NULL, dc, gates, prev_c, tanh_c, da), dc.shape)


def lstm_backward_of_sum(
    dh: Array, further: Array, dc: Array, gates: Array, prev_c: Array, tanh_c: Array, da: Array
) -> None:
    _cell("lstm_backward", (dh, further, dc, gates, prev_c, tanh_c, da), dc.shape)


@checked
def gru_gates_forward(gates: Array, prev_h: Array, reset_h: Array) -> None:
    _cell("gru_gates_forward", (gates, prev_h, reset_h), prev_h.shape)


@checked
def gru_gates_backward(dreset_h: Array, dh: Array, gates: Array, prev_h: Array, da: Array) -> None:
    _cell("gru_gates_backward", (dreset_h, dh, gates, prev_h, da), prev_h.shape)


@checked
def gru_candidate_forward(gates: Array, prev_h: Array, h: Array) -> None:
    _cell("gru_candidate_forward", (gates, prev_h, h), prev_h.shape)


@checked
def gru_candidate_backward(dh: Array, gates: Array, prev_h: Array, da: Array) -> None:
    _cell("gru_candidate_backward", (dh, gates, prev_h, da), prev_h.shape)


@checked
def simplified_gru_forward(gates: Array, prev_h: Array, h: Array) -> None:
    _cell("simplified_gru_forward", (gates, prev_h, h), prev_h.shape)


@checked
def simplified_gru_backward(dh: Array, gates: Array, prev_h: Array, da: Array) -> None:
    _cell("simplified_gru_backward", (dh, gates, prev_h, da), prev_h.shape)


# With dropout and zoneout. A backward returns None, because the caller has nothing to add after the product.


@checked
def rnn_regularised_forward(gates: Array, prev_h: Array, h: Array, masks: StepMasks) -> None:
    _cell("rnn_regularised_forward", (gates, prev_h, h), h.shape, mask_arguments(masks, 1, drops=False))


@checked
def rnn_regularised_backward(dh: Array, gates: Array, da: Array, masks: StepMasks) -> Array | None:
    _cell("rnn_regularised_backward", (dh, gates, da), dh.shape, mask_arguments(masks, 1, drops=False))
    return None


@checked
def lstm_regularised_forward(
    gates: Array, prev_h: Array, prev_c: Array, c: Array, tanh_c: Array, h: Array, masks: StepMasks
) -> None:
    arrays = gates, prev_h, prev_c, c, tanh_c, h
    _cell("lstm_regularised_forward", arrays, h.shape, mask_arguments(masks, 2, drops=True))


@checked
def lstm_regularised_backward(
    dh: Array, dc: Array, gates: Array, prev_c: Array, tanh_c: Array, da: Array, masks: StepMasks
) -> Array | None:
    arrays = dh, dc, gates, prev_c, tanh_c, da
    _cell("lstm_regularised_backward", arrays, dc.shape, mask_arguments(masks, 2, drops=True))
    return None


@checked
def gru_candidate_regularised_forward(gates: Array, prev_h: Array, h: Array, masks: StepMasks) -> None:
    _cell(
        "gru_candidate_regularised_forward", (gates, prev_h, h), h.shape, mask_arguments(masks, 1, drops=True)
    )


@checked
def gru_candidate_regularised_backward(
    dh: Array, gates: Array, prev_h: Array, da: Array, masks: StepMasks
) -> Array | None:
    _cell(
        "gru_candidate_regularised_backward",
        (dh, gates, prev_h, da),
        dh.shape,
        mask_arguments(masks, 1, drops=True),
    )
    return None


@checked
def simplified_gru_regularised_forward(gates: Array, prev_h: Array, h: Array, masks: StepMasks) -> None:
    _cell(
        "simplified_gru_regularised_forward",
        (gates, prev_h, h),
        h.shape,
        mask_arguments(masks, 1, drops=True),
    )


@checked
def simplified_gru_regularised_backward(
    dh: Array, gates: Array, prev_h: Array, da: Array, masks: StepMasks
) -> Array | None:
    _cell(
        "simplified_gru_regularised_backward",
        (dh, gates, prev_h, da),
        dh.shape,
        mask_arguments(masks, 1, drops=True),
    )
    return None


def _cell(name: str, arrays: tuple[Array, ...], shape: tuple[int, int], masks: tuple[Any, ...] = ()) -> None:
    check_contiguous(*arrays)
    n, H = shape
    each(name, n * H, arrays[0], *arrays, n, H, *masks)
