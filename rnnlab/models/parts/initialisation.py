"""Initialisation of parameters."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from rnnlab.errors import InputError
from rnnlab.layers.recurrent.cell import Cell, cell_name
from rnnlab.options import Initialisation
from rnnlab.parameters import Parameters

INIT_SCALE = 0.08  # the default of all models

FanIns: TypeAlias = Mapping[str, int | np.ndarray]

_WEIGHT = re.compile(r"^W|_W|(^|_)[vw]$")  # Wx, W_vocab; source_Wq; v, source_v, selector_w


def initialise(
    params: Parameters,
    kind: Initialisation,
    *,
    scale: float,
    rng: np.random.Generator,
    fan_ins: FanIns = MappingProxyType({}),
) -> None:
    """Fill parameters in place: weights, whose names have a W, v or w, at random, and biases with zero.

    Parameters
    ----------
    params : Parameters
    kind : "course" or "uniform"
        "course": weights from N(0, 1) / sqrt(fan-in), word vectors without a fan-in from N(0, 1) / 100
        (cs231n). "uniform": all weights from U(-scale, scale).
    scale : float > 0
    rng : numpy Generator
    fan_ins : mapping of str to number or array
        The fan-in of weights for which it differs from the number of rows (or the size of a v). It may be an
        array with a fan-in for each row, (rows, 1).
    """
    for name, view in params.items():
        if not _WEIGHT.search(name):
            view[...] = 0
        elif kind == "uniform":
            view[...] = rng.uniform(-scale, scale, view.shape)
        elif name in ("W_embed", "W_source") and name not in fan_ins:
            view[...] = rng.standard_normal(view.shape) / 100
        else:
            fan_in = fan_ins.get(name, len(view))
            view[...] = rng.standard_normal(view.shape) / np.sqrt(fan_in)


def check_forget_bias(function: str, cell: Cell, value: float) -> int | None:
    """Check that a cell has a forget gate, if its bias is not 0, and return the gate's index.

    Raises
    ------
    ValueError
        If the value is not 0 and the cell has no forget gate.
    """
    if value and cell.forget_gate is None:
        raise InputError(
            f"{function}: forget_bias is {value}, but cell {cell_name(cell)!r} has no forget gate, expected 0"
        )
    return cell.forget_gate


def set_forget_bias(function: str, params: Parameters, cell: Cell, value: float) -> None:
    """Set the biases of the forget gates of a model's recurrent layers, in place. 0 changes nothing.

    A positive bias opens the gates at first, so that a state is remembered for longer (Gers et al. 2000;
    Jozefowicz et al. 2015 recommend 1). The biases of the LSTMs of ARNet and of a reviewer are not changed.

    Parameters
    ----------
    function : str
        Name at the beginning of errors.
    params : Parameters
        The bias b of a recurrent layer is recognised by a weight Wx with the same prefix.
    cell : Cell
        The cell of all layers.
    value : float

    Raises
    ------
    ValueError
        As :func:`check_forget_bias`.
    """
    gate = check_forget_bias(function, cell, value)
    if gate is None or not value:
        return
    for name, bias in params.items():
        prefix, is_recurrent = name.removesuffix("b"), f"{name.removesuffix('b')}Wx" in params
        if name.endswith("b") and is_recurrent and "arnet_" not in prefix:
            H = bias.shape[0] // cell.num_gates
            bias[gate * H : (gate + 1) * H] = value
