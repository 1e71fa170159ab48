"""A cell over a batch of sequences: checks of the arguments around :mod:`rnnlab.layers.recurrent.loop`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rnnlab.errors import InputError, InputTypeError
from rnnlab.layers.checks import check_cache, check_rng, check_shapes, check_state, ops_of
from rnnlab.layers.parameters import gradient_arrays, gradients_of, select_params
from rnnlab.layers.recurrent.cell import Cell, cell_for, gates_axis
from rnnlab.layers.recurrent.loop import RecurrentCache, backward_loop, forward_loop
from rnnlab.layers.recurrent.packing import Packing
from rnnlab.layers.recurrent.regularisation import UNREGULARISED, Draws, Regularisation
from rnnlab.ops import Primitives
from rnnlab.types import Array, Params, Random, State


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
    return packing.after_each(states[0]), cache.last_state, cache


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
