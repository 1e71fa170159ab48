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

from rnnlab.errors import InputError, InputTypeError
from rnnlab.layers.checks import (
    check_cache,
    check_gradient,
    check_rng,
    check_shapes,
    check_state,
    ops_of,
)
from rnnlab.layers.overlap import in_same_memory
from rnnlab.layers.parameters import gradient_arrays, gradients_of, select_params
from rnnlab.layers.recurrent.cell import Cell, cell_for, gates_axis
from rnnlab.layers.recurrent.cell_run import CellRun
from rnnlab.layers.recurrent.packing import Packing, as_rows
from rnnlab.layers.recurrent.regularisation import UNREGULARISED, Draws, Regularisation
from rnnlab.ops import Primitives, ops_for
from rnnlab.ops.steps import StepInputs
from rnnlab.types import Array, Params, Random, State


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


def sequence_forward(
    function: str,
    cell: Cell,
    x: Array,
    given: State,
    params: Params,
    *,
    lengths: Array | None = None,
    mask: Array | None = None,
    regularisation: Regularisation = UNREGULARISED,
    rng: Random = None,
) -> tuple[Array, State, RecurrentCache]:
    """Check the arguments and run a cell over a batch of sequences: the body of the public functions.

    ``given`` are the first arrays of the initial state; the others are zeros.
    """
    ops = check_params(function, cell, {"x": (x, "N T D"), **named_states(given)}, params)
    packing = Packing.of(function, x.shape[:2], lengths=lengths, mask=mask, like=x)
    draws = Draws.of(regularisation, rng, ops)
    zeros = [packing.zero_states(given[0]) for _ in range(cell.num_states - len(given))]
    states = (*(packing.states(first) for first in given), *zeros)
    cache = forward_loop(cell, x, states, params, packing, draws, given_states=len(given))
    return packing.after_each(states[0]), _part(states, packing.final), cache


def recurrent_forward(
    x: Array,
    state: State,
    params: Mapping[str, Array],
    *,
    cell: str | Cell,
    lengths: Array | None = None,
    mask: Array | None = None,
    regularisation: Regularisation | Mapping[str, Any] | None = None,
    rng: Random = None,
) -> tuple[Array, State, RecurrentCache]:
    """Any cell over a batch of sequences, with any regularisation.

    Parameters
    ----------
    x : (N, T, D)
    state : (h0,), or (h0, c0) for an LSTM, each (N, H)
    params : mapping of str to array
        Wx (D, G), b (G,), and the cell's own, Wh (H, G) for most cells; others are ignored.
    cell : str or Cell
        The name of a registered cell, "package.module:Name", or a cell.
    lengths : (N,) integers, optional
        The real steps of each sequence. Past them the state is carried through unchanged, and x is not read.
    mask : (N, T), optional
        Instead of ``lengths``: ones for the real steps of each sequence, then zeros.
    regularisation : Regularisation, or a mapping of its fields, optional
    rng : numpy Generator, optional
        The source of dropout and zoneout. Without it the cell runs as in inference.

    Returns
    -------
    h : (N, T, H)
        The hidden state after every step.
    final_state : as ``state``
        After each sequence's last real step.
    cache : RecurrentCache

    Raises
    ------
    ValueError, TypeError
        If a shape, a length, a dtype or a probability is wrong, or a parameter is missing.
    """
    function = "recurrent_forward"
    check_rng(function, rng)
    cell, regularisation = cell_for(function, cell), Regularisation.of(function, regularisation)
    regularisation.check(function, cell)
    check_state(function, state, cell.num_states)
    own = select_params(function, params, cell.shapes(1, 1))
    return sequence_forward(
        function, cell, x, state, own, lengths=lengths, mask=mask, regularisation=regularisation, rng=rng
    )


def recurrent_backward(
    dh: Array | None,
    cache: RecurrentCache,
    *,
    dfinal: State | None = None,
    into: Mapping[str, Array] | None = None,
    total_dh: Array | None = None,
) -> tuple[Array, State, dict[str, Array]]:
    """Backward of :func:`recurrent_forward`.

    Parameters
    ----------
    dh : (N, T, H) or None
        Gradient of the loss with respect to ``h``, without what flows back from later steps. None for zeros,
        if the loss reads the final state alone.
    dfinal : as ``state``, optional
        Gradients with respect to the final state.
    into : mapping of str to array, optional
        Arrays that the gradients of the parameters are added to. By default they are new arrays. Others are
        not changed.
    total_dh : (N, T, H), optional
        Overwritten with the total gradient of the loss with respect to each h_t: ``dh``, what comes back
        from later steps, and ``dfinal``. Zero in padding: the last real state gets the gradients of its
        copies there. The cell then runs step by step, so that results may differ by rounding. Its memory is
        not that of x or of ``into``.

    Returns
    -------
    dx : (N, T, D)
    dstate : as ``state``
    dparams : dict of str to array

    Raises
    ------
    ValueError, TypeError
        If a gradient or an array of ``into`` is invalid.
    """
    function = "recurrent_backward"
    check_recurrent_cache(function, cache)
    grads = gradients_of(function, cache.params, cache.x, into, x=cache.x, dh=dh)
    finals = named_finals(function, dfinal, cache)
    dx, dstate = backward_loop(function, dh, cache, grads, dfinal=finals, total_dh=total_dh)
    return dx, dstate, grads


def sequence_backward(
    function: str,
    cell: type[Cell],
    dh: Array | None,
    cache: RecurrentCache,
    finals: Mapping[str, Array | None],
    into: tuple[Array, Array, Array] | None,
) -> tuple[Array, ...]:
    """Backward of a cell with Wx, Wh and b: the body of the public functions.

    Parameters
    ----------
    finals : mapping of str to array or None
        The gradients of the final state, by the names of the caller's arguments.

    Returns
    -------
    dx, dh0, dWx, dWh, db, then the gradients of the other initial states that the forward was given

    Raises
    ------
    ValueError, TypeError
        If a gradient or an array of ``into`` is invalid, or the cache is from another function.
    """
    check_recurrent_cache(function, cache, cell)
    names = "Wx", "Wh", "b"
    own = {f"d{name}": cache.params[name] for name in names}
    given = gradient_arrays(function, own, cache.x, into, {"x": cache.x, "dh": dh})
    grads = dict(zip(names, given, strict=True))
    dx, dstate = backward_loop(function, dh, cache, grads, dfinal=finals)
    return dx, dstate[0], *grads.values(), *dstate[1 : cache.given_states]


def check_params(
    function: str,
    cell: Cell,
    arguments: Mapping[str, tuple[Array, str]],
    params: Params,
    axes: Mapping[str, str] | None = None,
) -> Primitives:
    """Check a cell's parameters and other arguments; return the module of primitives for their library.

    Parameters
    ----------
    arguments : mapping of str to (array, str)
        Arrays with their axes, as :func:`~rnnlab.layers.checks.check_shapes` takes them. An axis has the size
        that it has in the first array with this axis; the states fix H.
    params : mapping of str to array
    axes : mapping of str to str, optional
        The axes of parameters that are not the cell's.

    Raises
    ------
    ValueError, TypeError
        If one does not fit.
    """
    ops = ops_of(function, **{**params, **{name: array for name, (array, _) in arguments.items()}})
    G = gates_axis(cell)
    known = {"Wx": f"D {G}", "Wh": f"H {G}", "b": G, **(axes or {})}
    arrays = {name: (array, known[name]) for name, array in params.items() if name in known}
    H, dtype = check_shapes(function, **arguments, **arrays)["H"], params["Wx"].dtype
    for name, shape in cell.recurrent_shapes(H).items():
        array = params[name]
        if array.shape != shape:
            raise InputError(f"{function}: {name} has shape {array.shape}, expected {shape}")
        if array.dtype != dtype:
            raise InputTypeError(f"{function}: {name} has dtype {array.dtype}, expected {dtype} as the state")
    return ops


def named_states(state: State) -> dict[str, tuple[Array, str]]:
    """The arrays of a state with their axes, by the names that errors use for them."""
    return {("h0", "c0")[k] if k < 2 else f"state[{k}]": (array, "N H") for k, array in enumerate(state)}


def named_finals(function: str, dfinal: State | None, cache: RecurrentCache) -> dict[str, Array | None]:
    """The gradients of the final state by the names that errors use for them; None for zeros.

    Raises
    ------
    ValueError
        If ``dfinal`` has another number of arrays than the state.
    """
    finals = (None,) * len(cache.states) if dfinal is None else tuple(dfinal)
    if len(finals) != len(cache.states):
        raise InputError(f"{function}: dfinal has {len(finals)} arrays, expected {len(cache.states)}")
    return {f"dfinal[{k}]": each for k, each in enumerate(finals)}


def check_recurrent_cache(function: str, cache: Any, cell: type | None = None) -> None:
    """Check that a cache comes from the forward of a cell of this class, or of any class.

    Raises
    ------
    TypeError
        If it does not.
    """
    check_cache(function, cache, RecurrentCache)
    if cell is not None and not isinstance(cache.cell, cell):
        found = type(cache.cell).__name__
        raise InputTypeError(
            f"{function}: cache is from the forward of {found}, expected that of {cell.__name__}"
        )


def _part(states: State, rows: Any) -> State:
    return tuple([each[rows] for each in states])
