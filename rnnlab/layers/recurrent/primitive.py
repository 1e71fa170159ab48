"""The base of the library's own cells: their step functions call the prepared cell."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import Any

from rnnlab.errors import InputTypeError
from rnnlab.layers.recurrent.cell import Cell, PreparedCell, Step
from rnnlab.ops import ChunkMasks, ops_for
from rnnlab.ops.steps import StepInputs, Steps
from rnnlab.types import Array, Params, State


class PrimitiveCell(Cell):
    """A cell whose step functions call what :meth:`prepare` returns."""

    drops_candidate = True

    @abstractmethod
    def prepare(self, ops: Any, params: Params) -> PreparedCell:
        """See :class:`~rnnlab.layers.recurrent.cell.Cell`."""

    def step_forward(self, a: Array, state: State, params: Params, **options: Any) -> tuple[State, Step]:
        """See :class:`~rnnlab.layers.recurrent.cell.Cell`. Masks are an option of the prepared cell only.

        Raises
        ------
        TypeError
            If an option is given, because it would have no effect.
        """
        if options:
            found = ", ".join(options)
            raise InputTypeError(f"{type(self).__name__}.step_forward: found {found}, expected no option")
        prepared = self.prepare(ops_for(a), params)
        after = tuple(ops_for(a).empty(each.shape, each.dtype) for each in state)
        step = Step(a.copy(), state, after, prepared.saved(len(a), state[0]), state[0])
        prepared.forward(step)
        return after, step

    def step_backward(
        self, dstate: State, params: Params, cache: Step
    ) -> tuple[Array, State, dict[str, Array]]:
        """See :class:`~rnnlab.layers.recurrent.cell.Cell`."""
        ops = ops_for(cache.gates)
        prepared, da = self.prepare(ops, params), ops.empty(cache.gates.shape, cache.gates.dtype)
        dprev = tuple(each.copy() for each in dstate)
        prepared.backward(cache, dprev, dprev[0], da)
        grads = {name: ops.zeros(weight.shape, da.dtype) for name, weight in params.items()}
        prepared.add_gradients(cache.read, cache.saved, da, grads)
        return da, dprev, grads


class RecurrentProduct:
    """Products with Wh (H, G) and with its transpose, each prepacked when it is first needed."""

    def __init__(self, ops: Any, Wh: Array) -> None:
        self._ops, self._Wh = ops, Wh

    @cached_property
    def forward_weight(self) -> Any:
        """Wh, prepacked."""
        return self._ops.prepacked(self._Wh)

    @cached_property
    def backward_weight(self) -> Any:
        """Wh^T, prepacked."""
        return self._ops.prepacked(self._Wh.T)

    def add(self, read: Array, gates: Array) -> None:
        """gates += read Wh, (n, H) -> (n, G)."""
        self._ops.matmul_add(read, self.forward_weight, gates)

    def add_backward(self, da: Array, dread: Array) -> None:
        """dread += da Wh^T, (n, G) -> (n, H)."""
        self._ops.matmul_add(da, self.backward_weight, dread)

    def write_backward(self, da: Array, dread: Array) -> None:
        """dread = da Wh^T, (n, G) -> (n, H)."""
        self._ops.matmul_into(da, self.backward_weight, dread)

    def add_gradient(self, read: Array, da: Array, dWh: Array) -> None:
        """dWh += read^T da, of many steps."""
        ops_for(da).matmul_add(read.T, da, dWh)


class PreparedPrimitive:
    """The base of the library's own prepared cells: many steps at once, if the primitives can.

    Parameters
    ----------
    ops : module of primitives
    cell : str
        The name of the cell that the primitives know.
    *products : RecurrentProduct
        Those of a step, in its order.
    """

    def __init__(self, ops: Any, cell: str, *products: RecurrentProduct) -> None:
        self._ops, self._cell, self._products = ops, cell, products

    def chunk_forward(
        self,
        inputs: StepInputs,
        gates: Array,
        states: State,
        saved: Array,
        steps: Steps,
        masks: ChunkMasks | None,
    ) -> bool:
        """See :class:`~rnnlab.layers.recurrent.cell.ChunkedCell`."""
        weights = [product.forward_weight for product in self._products]
        return self._ops.steps_forward(self._cell, gates, weights, states, saved, steps, inputs, masks)

    def chunk_backward(
        self,
        dh: Array,
        dstate: State,
        gates: Array,
        states: State,
        saved: Array,
        da: Array,
        steps: Steps,
        masks: ChunkMasks | None,
    ) -> bool:
        """See :class:`~rnnlab.layers.recurrent.cell.ChunkedCell`."""
        weights = [product.backward_weight for product in self._products]
        return self._ops.steps_backward(
            self._cell, dh, dstate, gates, weights, states, saved, da, steps, masks
        )
