"""The parts of a cell that attends: what its step is made of, forward and backward.

:mod:`rnnlab.layers.attention.decoder` has the equations and the loop over time, :mod:`rnnlab.layers.attention.decoding` a
step alone; the arithmetic of both is here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from rnnlab.layers.attention.own_states import gather, spread
from rnnlab.layers.attention.scores import (
    SCORES,
    Attention,
    AttentionBackward,
    AttentionCache,
    Keys,
    Room,
    Selector,
    score_axes,
    select_params,
)
from rnnlab.layers.checks import check_shapes
from rnnlab.layers.recurrent.cell import cell_steps
from rnnlab.layers.recurrent.packing import Steps
from rnnlab.layers.recurrent.regularisation import RegularisedSteps
from rnnlab.ops import ops_for
from rnnlab.types import Array

State = tuple[Array, ...]
Params = Mapping[str, Array]

WEIGHTS = {"source": "Wz", "target": "Wt"}  # of the contexts


class Kind(NamedTuple):
    """What attends to what, and how."""

    cell: str
    score: str
    source: bool
    selector: bool
    target: bool

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of the attentions, in the order of their contexts."""
        return ("source",) * self.source + ("target",) * self.target

    def check(self, function: str) -> None:
        """Raise ValueError if there is no such cell or score, nothing to attend to, or nothing to select."""
        cell_steps(function, self.cell)
        score_axes(function, self.score)
        if not self.parts:
            raise ValueError(f"{function}: neither a memory nor a target is given, expected one to attend to")
        if self.selector and not self.source:
            raise ValueError(f"{function}: selector is True and no memory is given, expected one")


def check_inputs(
    function: str,
    kind: Kind,
    x: tuple[Array, str] | None,
    state: State,
    memory: Array | None,
    params: Params,
) -> dict[str, Array]:
    """Check what comes in; return the parameters of this kind.

    Raises
    ------
    ValueError, TypeError
        If a shape or a dtype does not fit, or something is missing.
    """
    kind.check(function)
    cell = cell_steps(function, kind.cell)
    if not isinstance(state, tuple) or len(state) != cell.states:
        raise ValueError(f"{function}: state is {_counted(state)}, expected a tuple of {cell.states} arrays")
    G = f"{cell.gates if cell.gates > 1 else ''}H"
    axes = {"Wx": f"D {G}", "Wh": f"H {G}", "b": G}
    for part, letters in (("source", {"C": "C", "A": "A"}), ("target", {"C": "H", "A": "B"})):
        if part in kind.parts:
            axes[WEIGHTS[part]] = f"{letters['C']} {G}"
            for name, of_score in SCORES[kind.score].items():
                axes[f"{part}_{name}"] = " ".join(letters.get(axis, axis) for axis in of_score.split())
    if kind.selector:
        axes |= {"selector_w": "H", "selector_b": "I"}
    own = select_params(function, params, axes)
    arguments = {} if x is None else {"x": x}
    arguments |= {f"state[{k}]": (array, "N H") for k, array in enumerate(state)}
    if memory is not None:
        arguments["memory"] = (memory, "N L H" if kind.score == "dot" else "N L C")
        if kind.score == "dot":
            axes["Wz"] = f"H {G}"
    arguments |= {name: (own[name], axes[name]) for name in own}
    ops_for(*(array for array, _ in arguments.values()))
    check_shapes(function, **arguments)
    if kind.selector and own["selector_b"].shape != (1,):
        raise ValueError(f"{function}: selector_b has shape {own['selector_b'].shape}, expected (1,)")
    return own


class Part:
    """One attention with the weight of its context, laid out for many steps."""

    def __init__(self, name: str, kind: Kind, params: Params, like: Array) -> None:
        self._ops, self._score, self._grows = ops_for(like), kind.score, name == "target"
        self._params = {own: params[f"{name}_{own}"] for own in SCORES[kind.score]}
        self._selector: Selector | None = None
        if name == "source" and kind.selector:
            self._selector = params["selector_w"], params["selector_b"]
        self.keys = Keys(kind.score, self._params, often=True, like=like)
        self._attention = Attention(kind.score, self._params, self._selector, often=True, like=like)
        self._to_gates = self._ops.prepacked(params[WEIGHTS[name]])

    def cache(self, keys: Array, memory: Array, cells: Array, queries: int) -> AttentionCache:
        """Room for all steps' queries to the cells (N, L)."""
        room = self.room(keys, memory, queries, cells.shape[1])
        return AttentionCache(
            self._score, self._params, self._selector, keys, memory, cells, room, self._grows
        )

    def room(self, keys: Array, memory: Array, queries: int, cells: int) -> Room:
        """Room for so many queries."""
        additive, selector = self._score == "additive", self._selector is not None
        return Room.of(queries, cells, keys, memory, additive=additive, selector=selector)

    def step(self, h: Array, keys: Array, memory: Array, cells: Array, room: Room, gates: Array) -> None:
        """Attend, and add the context's product to the pre-activations."""
        if self._grows and not cells.shape[1]:  # the first step has no past to read, and nothing to add
            room.context[...] = 0
            return
        self._attention.attend(h, keys, memory, cells, room)
        self._ops.matmul_add(room.context, self._to_gates, gates)


class Layout:
    """All parameters, laid out for many steps of ``cell``."""

    def __init__(self, kind: Kind, cell: RegularisedSteps, params: Params, like: Array) -> None:
        self._ops = ops_for(like)
        self.cell = cell
        self.Wx, self.b = params["Wx"], params["b"]
        self.from_x = self._ops.prepacked(params["Wx"])
        self._from_h = self.cell.lay_out(self._ops, params["Wh"])
        self.parts = {name: Part(name, kind, params, like) for name in kind.parts}

    def step(
        self,
        reads: Mapping[str, tuple[Array, Array, Array, Room]],
        gates: Array,
        prev: State,
        after: State,
        kept: Array,
        rows: slice,
    ) -> None:
        """One step of some rows; ``gates`` hold the inputs' product.

        ``reads`` are keys, memory, cells and room of each part.
        """
        self.attend(reads, prev[0], gates)
        self.recur(gates, prev, after, kept, rows)

    def attend(self, reads: Mapping[str, tuple[Array, Array, Array, Room]], h: Array, gates: Array) -> None:
        """Write what the queries h attend to, and add the contexts' products to ``gates``."""
        for name, part in self.parts.items():
            part.step(h, *reads[name], gates)

    def recur(self, gates: Array, prev: State, after: State, kept: Array, rows: slice) -> None:
        """The cell's own step, once the products of inputs and contexts are in ``gates``."""
        self.cell.forward(self._ops, self._from_h, gates, prev, after, kept, rows)


class PartBackward:
    """The backward of one attention and of the weight of its context.

    Parameters
    ----------
    name : str
    attention : AttentionCache
    W : (C, G)
        The weight of its context.
    dcontexts : (N, T, C) or None
    dweights : (N, T, L) or None
    steps : Steps
    grads : dict of str to array
        What the parameters' gradients are added into.

    Attributes
    ----------
    dkeys : (R, A)
    dattended : (M, C)
        The gradients of the weighted sums.
    """

    def __init__(
        self,
        name: str,
        attention: AttentionCache,
        W: Array,
        dcontexts: Array | None,
        dweights: Array | None,
        steps: Steps,
        grads: dict[str, Array],
    ) -> None:
        ops = self._ops = ops_for(W)
        self._name, self._attention, self._grads = name, attention, grads
        self._own = {own: grads[f"{name}_{own}"] for own in attention.params}
        self._to_context = ops.prepacked(W.T)
        self._backward = AttentionBackward(attention, often=True)
        self._keys = Keys(attention.score, attention.params, often=True, like=W)
        room = attention.room
        self.dkeys = self._backward.dkeys
        self.dattended = (
            ops.zeros(room.context.shape, W.dtype) if dcontexts is None else gather(steps, dcontexts)
        )
        self._dscores = (
            ops.zeros(room.weights.shape, W.dtype) if dweights is None else gather(steps, dweights)
        )
        self._dmemory = ops.zeros(attention.memory.shape, W.dtype) if attention.grows else None

    def step(self, rows: slice, t: int, da: Array, h: Array, dh: Array) -> None:
        """Add to dh (n, H), the gradient of the queries h, and to that of the keys."""
        cells, dcontext = self._attention.cells_at(rows, t), self.dattended[rows]
        if self._attention.grows and not cells.shape[1]:
            return
        dscores = self._dscores[rows, : cells.shape[1]]
        self._ops.matmul_add(da, self._to_context, dcontext)
        self._backward.attend(rows, cells, dcontext, dscores, h, dh)
        if self._dmemory is not None:
            weights = self._attention.room.weights[rows, : cells.shape[1]]
            self._ops.attention_memory_gradient(dcontext, weights, cells, self._dmemory)

    def add_state_gradient(self, rows: slice, dh: Array) -> None:
        """Add to dh (n, H) what comes back to the states of these rows as memory of later steps."""
        if self._dmemory is not None:
            dh += self._dmemory[rows]
            self._keys.backward(self.dkeys[rows], dh)

    def add_gradients(self, rows: slice, h: Array, da: Array) -> None:
        """Add the gradients of the weights that queries and contexts meet, for the queries h of some rows."""
        self._ops.matmul_add(self._attention.room.context[rows].T, da, self._grads[WEIGHTS[self._name]])
        self._backward.add_query_gradient(rows, h, self._own)
        if self._attention.selector is not None:
            dw, db = self._grads["selector_w"], self._grads["selector_b"]
            self._backward.add_selector_gradients(rows, h, dw, db)

    def finish(self) -> None:
        """Add the gradients that no step is left for."""
        self._backward.add_score_gradient(self._own)
        self._keys.add_gradients(self._attention.memory, self.dkeys, self._own)

    def memory_gradient(self, shape: tuple[int, ...], real: Array | None, steps: Steps) -> Array:
        """The gradient of a source's memory (N, L, C), of which some cells are ``real``, or all."""
        weights = spread(steps, self._attention.room.weights)
        dmemory = self._ops.matmul(weights.swapaxes(1, 2), spread(steps, self.dattended))
        rows = dmemory.reshape(-1, shape[2])
        if real is None:
            self._keys.backward(self.dkeys, rows)
        else:
            through_keys = self._ops.zeros(self._attention.memory.shape, rows.dtype)
            self._keys.backward(self.dkeys, through_keys)
            rows[real] += through_keys
        return dmemory


def _counted(state: Any) -> str:
    return f"a tuple of {len(state)}" if isinstance(state, tuple) else f"a {type(state).__name__}"
