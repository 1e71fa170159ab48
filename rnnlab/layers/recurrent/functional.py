"""An adapter that lets the loop run a cell which has step functions only, such as a custom cell."""

from __future__ import annotations

from typing import Any

from rnnlab.errors import InputError
from rnnlab.layers.recurrent.cell import Cell, Step
from rnnlab.ops import Primitives, StepMasks
from rnnlab.types import Array, Params, State


class StepCaches:
    """The caches of the steps of a sequence: for the packed rows of a step, a list with its cache."""

    def __init__(self) -> None:
        self._caches: dict[int, list[Any]] = {}

    def __getitem__(self, rows: slice) -> list[Any]:
        return self._caches.setdefault(rows.start, [])


class FunctionalCell:
    """A :class:`~rnnlab.layers.recurrent.cell.PreparedCell` made of ``step_forward`` and ``step_backward``.

    Their return values are checked, because a gradient that is missing or has a wrong shape would make
    training silently wrong. All errors are ValueErrors, even those about dtypes, because they concern the
    cell, which a user names on the command line.
    """

    def __init__(self, cell: Cell, ops: Primitives, params: Params) -> None:
        self._cell, self._ops, self._params, self._name = cell, ops, params, type(cell).__name__
        self._dparams: dict[str, Array] = {}

    def saved(self, rows: int, like: Array) -> StepCaches:
        """Where the caches of all steps are stored."""
        return StepCaches()

    def forward(self, step: Step) -> None:
        """See :class:`~rnnlab.layers.recurrent.cell.PreparedCell`."""
        options = {} if step.masks is None else self._candidate_mask(step.read, step.masks)
        # after dropout it is a workspace that all steps share, so the cell's cache needs a copy
        read = step.read if step.read is step.prev[0] else step.read.copy()
        found = self._cell.step_forward(step.gates, (read, *step.prev[1:]), self._params, **options)
        state, cache = self._unpacked("step_forward", found, ("next_state", "cache"))
        self._check_state("step_forward", "next_state", state, step.next)
        for k, (prev, now, new) in enumerate(zip(step.prev, step.next, state, strict=True)):
            stays = None if step.masks is None else self._stays(k, prev, step.masks)
            now[...] = new if stays is None else new + stays * (prev - new)
        step.saved[:] = [cache]

    def backward(self, step: Step, dstate: State, dread: Array, da: Array) -> Array | None:
        """See :class:`~rnnlab.layers.recurrent.cell.PreparedCell`."""
        stays = [None if step.masks is None else self._stays(k, d, step.masks) for k, d in enumerate(dstate)]
        past = [None if s is None else s * d for s, d in zip(stays, dstate, strict=True)]
        through = tuple(d.copy() if p is None else d - p for d, p in zip(dstate, past, strict=True))
        found = self._cell.step_backward(through, self._params, step.saved[0])
        da_new, dprev, dparams = self._unpacked("step_backward", found, ("da", "dprev_state", "dparams"))
        self._check_array("step_backward", "da", da_new, da)
        self._check_state("step_backward", "dprev_state", dprev, dstate)
        self._add(dparams)
        da[...] = da_new
        dstate[0][...] = 0
        dread += dprev[0]
        for d, new, p in zip(dstate[1:], dprev[1:], past[1:], strict=True):
            d[...] = new if p is None else new + p
        return past[0]

    def add_gradients(self, read: Array, saved: Any, da: Array, grads: Params) -> None:
        """Add the gradients that the steps have returned since the last call."""
        for name, gradient in self._dparams.items():
            grads[name][...] += gradient
        self._dparams = {}

    def _candidate_mask(self, like: Array, masks: StepMasks) -> dict[str, Array]:
        _, p, seeds, start = masks
        if not p or seeds is None:
            return {}
        mask = self._ops.empty(like.shape, like.dtype)
        self._ops.dropout_mask(p, seeds[2], start, mask)
        return {"candidate_mask": mask}

    def _stays(self, k: int, like: Array, masks: StepMasks) -> Any:
        """The zoneout mask of array k of a state, 1 where a unit keeps its value, or its expectation."""
        zoneout, _, seeds, start = masks
        p = zoneout[k] if k < len(zoneout) else 0.0
        if not p:
            return None
        if seeds is None:
            return p
        mask = self._ops.empty(like.shape, like.dtype)
        self._ops.dropout_mask(p, seeds[k], start, mask)
        return (mask == 0).astype(like.dtype)

    def _add(self, dparams: Any) -> None:
        if not isinstance(dparams, dict) or dparams.keys() != set(self._params):
            found = ", ".join(map(str, dparams)) if isinstance(dparams, dict) else type(dparams).__name__
            raise InputError(
                f"{self._name}.step_backward: dparams is {found or 'empty'}, "
                f"expected the gradients of {', '.join(self._params)} by name"
            )
        for name, gradient in dparams.items():
            self._check_array("step_backward", f"dparams[{name!r}]", gradient, self._params[name])
            if name in self._dparams:
                self._dparams[name] += gradient
            else:
                self._dparams[name] = gradient.copy()  # the cell may return the same array at the next step

    def _unpacked(self, function: str, found: Any, names: tuple[str, ...]) -> tuple[Any, ...]:
        if not isinstance(found, tuple) or len(found) != len(names):
            kind = f"a tuple of {len(found)}" if isinstance(found, tuple) else f"a {type(found).__name__}"
            raise InputError(f"{self._name}.{function}: returned {kind}, expected {', '.join(names)}")
        return found

    def _check_state(self, function: str, name: str, state: Any, like: State) -> None:
        if not isinstance(state, tuple) or len(state) != len(like):
            kind = f"a tuple of {len(state)}" if isinstance(state, tuple) else f"a {type(state).__name__}"
            raise InputError(
                f"{self._name}.{function}: {name} is {kind}, expected a tuple of {len(like)} arrays"
            )
        for k, (array, expected) in enumerate(zip(state, like, strict=True)):
            self._check_array(function, f"{name}[{k}]", array, expected)

    def _check_array(self, function: str, name: str, array: Any, like: Array) -> None:
        if getattr(array, "shape", None) != like.shape:
            found = f"of shape {array.shape}" if hasattr(array, "shape") else f"a {type(array).__name__}"
            raise InputError(f"{self._name}.{function}: {name} is {found}, expected shape {like.shape}")
        if array.dtype != like.dtype:
            raise InputError(
                f"{self._name}.{function}: {name} has dtype {array.dtype}, expected {like.dtype}"
            )
