"""The base of the library's own cells: their step functions call the prepared cell."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import Any, ClassVar

from rnnlab.errors import InputTypeError
from rnnlab.layers.checks import check_shapes, ops_of
from rnnlab.layers.recurrent.cell import Cell, PreparedCell, Step, gates_axis
from rnnlab.ops import ChunkMasks, Primitives, ops_for
from rnnlab.ops.steps import StepInputs, Steps
from rnnlab.types import Array, Params, State


class PrimitiveCell(Cell):
    """A cell whose step functions call what :meth:`prepare` returns."""

    drops_candidate = True

    @abstractmethod
    def prepare(self, ops: Primitives, params: Params, *, reused: bool = True) -> PreparedCell:
        """See :class:`~rnnlab.layers.recurrent.cell.Cell`. Weights are prepacked only if they are reused."""

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
        return self.activate(a.copy(), state, params)

    def activate(self, gates: Array, state: State, params: Params) -> tuple[State, Step]:
        """:meth:`step_forward`, which turns ``gates`` (n, G) from pre-activations into activations."""
        ops = ops_for(gates)
        prepared = self.prepare(ops, params, reused=False)
        after = tuple(ops.empty(each.shape, each.dtype) for each in state)
        step = Step(gates, state, after, prepared.saved(len(gates), state[0]), state[0])
        prepared.forward(step)
        return after, step

    def step_backward(
        self, dstate: State, params: Params, cache: Step
    ) -> tuple[Array, State, dict[str, Array]]:
        """See :class:`~rnnlab.layers.recurrent.cell.Cell`."""
        ops = ops_for(cache.gates)
        prepared = self.prepare(ops, params, reused=False)
        da = ops.empty(cache.gates.shape, cache.gates.dtype)
        dprev = tuple(each.copy() for each in dstate)
        prepared.backward(cache, dprev, dprev[0], da)
        grads = {name: ops.zeros(weight.shape, da.dtype) for name, weight in params.items()}
        prepared.add_gradients(cache.read, cache.saved, da, grads)
        return da, dprev, grads


def step_forward(
    function: str, cell: PrimitiveCell, x: Array, state: State, Wx: Array, Wh: Array, b: Array
) -> tuple[State, Step]:
    """Check the arguments and run one step: the body of the public functions of a step.

    Raises
    ------
    ValueError, TypeError
        If a shape or a dtype is wrong.
    """
    G, prev = gates_axis(cell), dict(zip(("prev_h", "prev_c"), state, strict=False))
    ops = ops_of(function, x=x, **prev, Wx=Wx, Wh=Wh, b=b)
    states = {name: (array, "N H") for name, array in prev.items()}
    check_shapes(function, x=(x, "N D"), **states, Wx=(Wx, f"D {G}"), Wh=(Wh, f"H {G}"), b=(b, G))
    return cell.activate(ops.affine(x, Wx, b), state, {"Wh": Wh})


def step_backward(
    function: str, cell: PrimitiveCell, dstate: State, x: Array, Wx: Array, Wh: Array, step: Step
) -> tuple[Array, ...]:
    """Backward of :func:`step_forward`: dx, the gradients of the state before the step, dWx, dWh and db.

    Raises
    ------
    ValueError, TypeError
        If a gradient has a wrong shape or dtype.
    """
    given = dict(zip(("dnext_h", "dnext_c"), dstate, strict=False))
    ops = ops_of(function, **given, x=x)
    gradients = {name: (array, "N H") for name, array in given.items()}
    check_shapes(function, prev_h=(step.read, "N H"), **gradients)
    da, dprev, grads = cell.step_backward(dstate, {"Wh": Wh}, step)
    return ops.matmul(da, Wx.T), *dprev, ops.matmul(x.T, da), grads["Wh"], da.sum(axis=0)


class RecurrentProduct:
    """Products with Wh (H, G) and with its transpose.

    Parameters
    ----------
    ops : module of primitives
    Wh : (H, G)
    reused : bool
        Whether there are many products. Each of the two weights is then prepacked when it is first needed.
    """

    def __init__(self, ops: Primitives, Wh: Array, reused: bool) -> None:
        self._ops, self._Wh, self._reused = ops, Wh, reused

    @cached_property
    def forward_weight(self) -> Any:
        """Wh, perhaps prepacked."""
        return self._ops.prepacked(self._Wh) if self._reused else self._Wh

    @cached_property
    def backward_weight(self) -> Any:
        """Wh^T, perhaps prepacked."""
        return self._ops.prepacked(self._Wh.T) if self._reused else self._Wh.T

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

    Attributes
    ----------
    saves : int
        The number of columns of ``saved`` in units of H.

    Parameters
    ----------
    ops : module of primitives
    cell : str
        The name of the cell that the primitives know.
    *products : RecurrentProduct
        Those of a step, in its order.
    """

    saves: ClassVar[int] = 0

    def __init__(self, ops: Primitives, cell: str, *products: RecurrentProduct) -> None:
        self._ops, self._cell, self._products, self._product = ops, cell, products, products[0]

    def saved(self, rows: int, like: Array) -> Array:
        """(rows, H), or (rows, 0) if the backward reads gates and states only."""
        return self._ops.empty((rows, self.saves * like.shape[1]), like.dtype)

    def add_gradients(self, read: Array, saved: Array, da: Array, grads: Params) -> None:
        """dWh += sum_t h_{t-1}^T da_t."""
        self._product.add_gradient(read, da, grads["Wh"])

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
