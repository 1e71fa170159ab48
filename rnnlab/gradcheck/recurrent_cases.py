"""The recurrent layers that :mod:`rnnlab.gradcheck.run` checks: the built-in cells, or a custom one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from rnnlab import layers
from rnnlab.errors import InputError, InputTypeError
from rnnlab.gradcheck.attention_cases import PARTS, attentive_case
from rnnlab.gradcheck.cases import LENGTHS, Case, D, H, N, T
from rnnlab.layers.recurrent.cell import Cell, cell_for
from rnnlab.layers.recurrent.primitive import PrimitiveCell
from rnnlab.types import Array


def check_cell(cell: str | Cell, rng: np.random.Generator) -> None:
    """Check the properties of a cell that numeric gradients in float64 cannot test.

    Raises
    ------
    ValueError, TypeError
        If the cell does not work in float32. If ``carries_h`` is False, but h_{t-1} reaches the next state
        other than through the parameters; dropout of the state would drop that share, too. If
        ``drops_candidate`` is True, but the step functions do not take the mask or ignore it.
    """
    found = cell_for("gradcheck", cell)
    case = _recurrent_case(
        "", cell, lambda *shape: rng.standard_normal(shape).astype(np.float32), {}, LENGTHS
    )
    *outs, cache = case.forward(**case.inputs)
    case.backward(*outs, cache)
    zeros = {name: np.zeros(shape) for name, shape in found.recurrent_shapes(H).items()}
    a, state = rng.standard_normal((N, found.num_gates * H)), rng.standard_normal((found.num_states, N, H))
    other = rng.standard_normal((N, H)), *state[1:]
    ends = (found.step_forward(a, given, zeros)[0] for given in (tuple(state), other))
    if not found.carries_h and any((one != two).any() for one, two in zip(*ends, strict=True)):
        raise InputError(
            f"{type(found).__name__}: carries_h is False, but with recurrent parameters of zero the next "
            "state depends on h_{t-1}, expected carries_h = True"
        )
    if found.drops_candidate and not isinstance(found, PrimitiveCell):  # its prepared cell applies the masks
        kinds = inspect.signature(found.step_forward).parameters
        if "candidate_mask" not in kinds and all(each.kind != each.VAR_KEYWORD for each in kinds.values()):
            raise InputTypeError(
                f"{type(found).__name__}: drops_candidate is True, expected step_forward with candidate_mask"
            )
        masks: tuple[dict[str, Array], ...] = ({}, {"candidate_mask": np.zeros((N, H))})
        ends = (found.step_forward(a, tuple(state), zeros, **mask)[0] for mask in masks)
        if not any((one != two).any() for one, two in zip(*ends, strict=True)):
            raise InputError(
                f"{type(found).__name__}: drops_candidate is True, and step_forward does not multiply by "
                "candidate_mask"
            )


def cell_cases(cell: str | Cell, rng: np.random.Generator) -> Iterator[Case]:
    """The cases of one cell: over sequences, with each regularisation that it allows, and with attention.

    Parameters
    ----------
    cell : str or Cell
        As in :func:`~rnnlab.layers.recurrent_forward`.
    rng : numpy Generator
        Draws the inputs.
    """

    def normal(*shape: int) -> Array:
        return rng.standard_normal(shape)

    check_cell(cell, rng)
    name = cell if isinstance(cell, str) else type(cell).__name__
    yield _recurrent_case(name, cell, normal, {}, None)
    yield _recurrent_case(f"{name}, lengths", cell, normal, {}, LENGTHS)
    yield from regularised_cases(name, cell, normal)
    for parts in PARTS:
        yield attentive_case(name, cell, "additive", parts, normal)


def course_cases(name: str, cell: Cell, normal: Callable[..., Array]) -> Iterator[Case]:
    """The step and sequence functions with the course's signatures."""
    gates, states = cell.num_gates, cell.num_states
    forward, backward = (getattr(layers, f"{name}_step_{way}") for way in ("forward", "backward"))
    previous = {key: normal(N, H) for key in ("prev_h", "prev_c")[:states]}
    weights = {"Wx": normal(D, gates * H) / 2, "Wh": normal(H, gates * H) / 2, "b": normal(gates * H)}
    yield Case(f"{name}_step", forward, backward, {"x": normal(N, D), **previous, **weights})

    forward, backward = (getattr(layers, f"{name}_{way}") for way in ("forward", "backward"))
    inputs = {"x": normal(N, T, D), "h0": normal(N, H), **weights}
    yield Case(name, forward, backward, inputs)
    if states == 2:
        inputs["c0"] = normal(N, H)
    finals = ("dfinal_h", "dfinal_c")[:states]

    def backward_with_state(dh: Array, *rest: Any) -> Any:
        *dfinals, cache = rest
        return backward(dh, cache, **dict(zip(finals, dfinals, strict=True)))

    for lengths in (None, LENGTHS):
        kind = "final state" if lengths is None else "final state, lengths"
        yield Case(
            f"{name}, {kind}",
            partial(forward, lengths=lengths, return_state=True),
            backward_with_state,
            inputs,
        )


def regularised_cases(name: str, cell: str | Cell, normal: Callable[..., Array]) -> Iterator[Case]:
    """A cell with each regularisation that it allows."""
    kinds: dict[str, dict[str, Any]] = {
        "zoneout": {"zoneout_h": 0.3},
        "zoneout of h and c": {"zoneout_h": 0.3, "zoneout_c": 0.4},
        "recurrent dropout of the state": {"recurrent_dropout": 0.3},
        "recurrent dropout of the candidate": {"recurrent_dropout": 0.3, "recurrent_dropout_on": "candidate"},
        "DropConnect": {"weight_dropout": 0.3},
    }
    for kind, options in kinds.items():
        if allows(cell, options):
            yield _recurrent_case(f"{name}, {kind}", cell, normal, options, LENGTHS)


def allows(cell: str | Cell, options: dict[str, Any]) -> bool:
    """Whether a cell allows these options of its regularisation."""
    try:
        layers.Regularisation(**options).check("gradcheck", cell_for("gradcheck", cell))
    except ValueError:
        return False
    return True


def _recurrent_case(
    name: str,
    cell: str | Cell,
    normal: Callable[..., Array],
    regularisation: dict[str, Any],
    lengths: Array | None,
) -> Case:
    """A cell over sequences, with gradients through all of its outputs."""
    found = cell_for("gradcheck", cell)
    shapes, states = found.shapes(D, H), [f"state{k}" for k in range(found.num_states)]
    inputs = {"x": normal(N, T, D)} | {key: normal(N, H) for key in states}
    inputs |= {key: normal(*shape) / 2 for key, shape in shapes.items()}

    def forward(**given: Array) -> tuple[Any, ...]:
        h, final, cache = layers.recurrent_forward(
            given["x"],
            tuple(given[key] for key in states),
            {key: given[key] for key in shapes},
            cell=cell,
            regularisation=regularisation,
            rng=np.random.default_rng(1),
            lengths=lengths,
        )
        return h, *final, cache

    def backward(dh: Array, *rest: Any) -> tuple[Array, ...]:
        *dfinal, cache = rest
        dx, dstate, dparams = layers.recurrent_backward(dh, cache, dfinal=tuple(dfinal))
        return dx, *dstate, *dparams.values()

    return Case(f"recurrent, {name}", forward, backward, inputs)
