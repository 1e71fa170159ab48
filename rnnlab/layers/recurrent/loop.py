"""The loop over time, one for all cells, with or without regularisation and attention.

    a_t = x_t Wx + b  (+ contexts)              for a chunk of steps at a time, one matrix product
    state_t = cell(a_t, state_{t-1})            step by step

Backward, from the last step to the first:

    da_t, dstate_{t-1} = cell's backward of (dstate_t + the gradient of h_t)
    dx_t = da_t Wx^T        dWx += x_t^T da_t        db += da_t        for a chunk of steps at a time

Arrays are packed: see :mod:`rnnlab.layers.recurrent.packing`. Without attention between the steps, a cell
runs many of them at once if it can (:class:`~rnnlab.layers.recurrent.cell.ChunkedCell`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from rnnlab.errors import InputError
from rnnlab.layers.checks import check_gradient, ops_of
from rnnlab.layers.overlap import in_same_memory
from rnnlab.layers.recurrent.cell import Cell
from rnnlab.layers.recurrent.cell_run import CellRun
from rnnlab.layers.recurrent.packing import Packing, as_rows
from rnnlab.layers.recurrent.regularisation import Draws
from rnnlab.ops import ops_for
from rnnlab.ops.steps import StepInputs
from rnnlab.types import Array, Params, State


class RecurrentCache(NamedTuple):
    """What the backward of a sequence needs; packed, see :mod:`rnnlab.layers.recurrent.packing`."""

    x: Array  # (N, T, D)
    states: State  # each (N + M, H), the initial states first
    gates: Array  # (M, G) activations; for a custom cell without ``prepare``, pre-activations
    saved: Any  # (M, H) what else the cell's backward reads, such as an LSTM's tanh(c); (M, 0) if nothing
    params: Params
    given_states: int  # how many initial states the caller gave; the others are zeros
    cell: Cell
    draws: Draws
    packing: Packing

    @property
    def last_state(self) -> State:
        """The state after each sequence's last real step, arrays (N, H)."""
        return tuple(each[self.packing.final] for each in self.states)

    @property
    def h(self) -> Array:
        """(N + M, H) the initial hidden states, then those after each step."""
        return self.states[0]

    @property
    def c(self) -> Array:
        """(N + M, H) the cell states of an LSTM, likewise."""
        return self.states[1]


class Contexts(Protocol):
    """The work of attention between the steps of the loop."""

    def before_step(self, t: int, rows: slice, h: Array, gates: Array) -> None:
        """Attend from the states h (n, H) before step t, and add to its pre-activations (n, G)."""

    def after_step(self, rows: slice, h: Array) -> None:
        """Record the states h (n, H) after a step."""


class ContextsBackward(Protocol):
    """The backward of :class:`Contexts`."""

    def before_step(self, rows: slice, dh: Array) -> None:
        """Add the gradients from later steps that attended to these states to their gradient dh (n, H)."""

    def after_step(self, t: int, rows: slice, da: Array, h: Array, dh: Array) -> None:
        """Add the gradients of step t's queries, the states h before it, to their gradient dh (n, H)."""

    def add_gradients(self, rows: slice, h: Array, da: Array) -> None:
        """Add the parameters' gradients of many steps, h (m, H) the states before each."""


def forward_loop(
    cell: Cell,
    x: Array,
    states: State,
    params: Params,
    packing: Packing,
    draws: Draws,
    *,
    given_states: int,
    contexts: Contexts | None = None,
) -> RecurrentCache:
    """The forward loop. ``states`` (N + M, H) hold the initial states; all later states are written."""
    ops, G, M = ops_for(x), params["Wx"].shape[1], packing.offsets[-1]
    run = CellRun(cell, draws, params, states[0][: len(x)])
    gates, saved = ops.empty((M, G), x.dtype), run.prepared.saved(M, states[0])
    rows_x, from_x, t = as_rows(x), ops.prepacked(params["Wx"]), 0
    chunked = run.chunked if contexts is None else None
    for chunk in packing.chunks(G):
        inputs = StepInputs(packing.pack(rows_x, chunk), from_x, params["b"])
        if chunked is not None and chunked.chunk_forward(
            inputs, gates, states, saved, chunk.steps, run.masks
        ):
            continue
        ops.affine_into(*inputs, gates[chunk.rows])
        for rows, before, after in chunk.steps:
            prev, now = _part(states, before), _part(states, after)
            if contexts is not None:
                contexts.before_step(t, rows, prev[0], gates[rows])
            run.prepared.forward(run.step(gates[rows], prev, now, saved[rows], rows.start))
            if contexts is not None:
                contexts.after_step(rows, now[0])
            t += 1
    return RecurrentCache(x, states, gates, saved, params, given_states, cell, draws, packing)


def backward_loop(
    function: str,
    dh: Array | None,
    cache: RecurrentCache,
    grads: Params,
    *,
    dfinal: Mapping[str, Array | None],
    contexts: ContextsBackward | None = None,
    total_dh: Array | None = None,
) -> tuple[Array, State]:
    """The backward loop: add gradients into ``grads``; return those of x and of the initial states.

    The total gradient of each h_t is written into ``total_dh`` (N, T, H), zero in padding, if it is given.
    ``dfinal`` are the gradients of the arrays of the final state, by the names that errors use for them.
    """
    x, states, gates, saved, params, _, cell, draws, packing = cache
    H, G = states[0].shape[1], params["Wx"].shape[1]
    if dh is None:
        if all(each is None for each in dfinal.values()):
            raise InputError(
                f"{function}: dh is None, expected an array, or a gradient in {', '.join(dfinal)}"
            )
        dh = ops_for(x).zeros((*x.shape[:2], H), x.dtype)
    ops = ops_of(function, dh=dh, x=x)
    check_gradient(function, dh, (*x.shape[:2], H), x.dtype, "dh")
    for name, each in dfinal.items():
        if each is not None:
            check_gradient(function, each, (len(x), H), x.dtype, name)
    of_h, *of_others = dfinal.values()
    dstate = packing.incoming(dh, of_h, states[0]), *(packing.incoming(None, d, states[0]) for d in of_others)
    run, workspace = CellRun(cell, draws, params, states[0][: len(x)]), draws.gradient_workspace(grads)
    rows_x, rows_dh, to_x = as_rows(x), as_rows(dh), ops.prepacked(params["Wx"].T)
    dx, t = packing.unpacked(x.shape[2], x), len(packing.offsets) - 1
    whole: Any = None  # (N T, H)
    if total_dh is not None:
        check_gradient(function, total_dh, dh.shape, x.dtype, "total_dh")
        others = {"x": x} | {f"the gradient of {name}": grad for name, grad in grads.items()}
        if shared := in_same_memory({"total_dh": total_dh}, others):
            raise InputError(f"{function}: total_dh is in the memory of {shared[1]}, expected its own")
        whole = packing.unpacked(H, x)
    chunked = run.chunked if contexts is None and whole is None else None
    for chunk in reversed(packing.chunks(G)):
        dh_chunk, da = packing.pack(rows_dh, chunk), ops.empty((chunk.size, G), x.dtype)
        if chunked is None or not chunked.chunk_backward(
            dh_chunk, dstate, gates, states, saved, da, chunk.steps, run.masks
        ):
            for rows, before, after in reversed(chunk.steps):
                t -= 1
                here, prev = chunk.here(rows), _part(states, before)
                dnow = _part(dstate, slice(rows.stop - rows.start))
                dh_now = dnow[0]
                dh_now += dh_chunk[here]
                if contexts is not None:
                    contexts.before_step(rows, dh_now)
                if whole is not None:
                    dh_chunk[here] = dh_now
                step = run.step(gates[rows], prev, _part(states, after), saved[rows], rows.start)
                run.backward(step, dnow, da[here])
                if contexts is not None:
                    contexts.after_step(t, rows, da[here], prev[0], dh_now)
        if whole is not None:
            packing.unpack(dh_chunk, chunk, whole)
        x_chunk = packing.pack(rows_x, chunk)
        ops.add_affine_gradients(x_chunk, da, grads["Wx"], grads["b"])
        ops.matmul_into(da, to_x, x_chunk)  # the memory of the inputs, which are not needed any more
        packing.unpack(x_chunk, chunk, dx)
        h = packing.before_each(states[0], chunk)
        run.add_gradients(h, saved[chunk.rows], da, workspace, chunk)
        if contexts is not None:
            contexts.add_gradients(chunk.rows, h, da)
    draws.finish(workspace, grads)
    if total_dh is not None:
        total_dh[...] = whole.reshape(total_dh.shape)
    return dx.reshape(x.shape), tuple(map(packing.unsort, dstate))


def _part(states: State, rows: Any) -> State:
    return tuple([each[rows] for each in states])
