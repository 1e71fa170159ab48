"""Reviewer: LSTMs that read the encoder's memory before the decoder starts (Jiang, Ma and Lu 2020, eqs 6-8).

There are B blocks of L steps. Step i of block b, both counted from 1, has its own LSTM and its own b
attentions:

    z_j    = attention of h_{t-1} to A_j,  j = 0 .. b - 1            inter-block connections, eq. 8
    Z_t    = [z_0, ..., z_{b-1}]
    P_t    = [h_{t-i}, ..., h_{t-1}]                                 intra-block connections, eq. 7
    a_t    = Z_t Wz + P_t Wh + b,   then the LSTM's step from c_{t-1}

t = (b - 1) L + i counts the steps of all blocks; h_0 and c_0 are the encoder's state. A_0 is the encoder's
memory, and A_b = (h of each step of block b) are the *thought vectors* of block b. P_t holds the state at the
start of the block and the states after its earlier steps, the oldest first. The state runs through all steps
of all blocks. The decoder attends to the last block's thought vectors and starts from the last state. Without
inter-block connections z_0 is the only context; without intra-block connections P_t is h_{t-1} alone. Review
Net (Yang et al. 2016) is one block without intra-block connections.

The names of the parameters of step i of block b begin with "block{b}_step{i}_". J is the number of its
attentions, and D the sum over its memories of the size of a vector:

    Wz (D, 4H), Wh (i H, 4H), b (4H,)                        LSTM, gates stacked i, f, o, g
    Wq (H, J A), Wm (D, A), bm (J A,), v (J A,)              additive scores of all J attentions

The rows of Wz and Wm, the columns of Wq, and bm and v are in the order of the memories.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rnnlab.errors import InputError, InputTypeError
from rnnlab.layers.attention.memories import MemoriesCache, attend, attend_backward
from rnnlab.layers.attention.source_rows import SourceRows
from rnnlab.layers.checks import check_cache, check_gradient, check_shapes, check_state, ops_of
from rnnlab.layers.copying import copy_of
from rnnlab.layers.dropout import DropoutCache, dropout_backward, dropout_forward
from rnnlab.layers.parameters import gradients_of, select_params
from rnnlab.layers.recurrent.packing import as_rows
from rnnlab.ops import ops_for
from rnnlab.options import Count, check_option
from rnnlab.parameters import scoped
from rnnlab.types import Array, Params, Random, Shapes, State


class Connections(NamedTuple):
    """The steps of a reviewer and what each of them reads."""

    blocks: int  # B
    steps: int  # L
    inter: bool
    intra: bool

    def check(self, function: str) -> None:
        """Raise ValueError if a number is not an integer of at least 1."""
        check_option(function, "blocks", Count, self.blocks)
        check_option(function, "steps", Count, self.steps)

    def memories(self, block: int) -> int:
        """The number of memories that a step of this block attends to."""
        return block if self.inter else 1

    def states(self, step: int) -> int:
        """The number of states that this step of a block reads."""
        return step if self.intra else 1

    def scopes(self) -> Iterator[tuple[int, int, str]]:
        """Block, step and the prefix of the step's parameters."""
        for block in range(1, self.blocks + 1):
            for step in range(1, self.steps + 1):
                yield block, step, f"block{block}_step{step}_"


class ReviewStepCache(NamedTuple):
    """The saved arrays of one step of a block."""

    attended: MemoriesCache
    gates: Array  # (N, 4H)
    tanh_c: Array  # (N, H)
    c: Array  # (N, H), the cell state before the step


class BlockCache(NamedTuple):
    """The saved arrays of one block."""

    history: Array  # (N, L + 1, H), the states at the start of the block and after each step
    steps: tuple[ReviewStepCache, ...]
    dropped: DropoutCache


class ReviewCache(NamedTuple):
    """What the backward of a reviewer needs."""

    connections: Connections
    params: dict[str, Array]
    memory: Array  # (N, M, C)
    rows: SourceRows  # rows of the memory
    blocks: tuple[BlockCache, ...]


def review_shapes(
    *,
    memory_dim: int,
    hidden_dim: int,
    attention_dim: int,
    blocks: int,
    steps: int,
    inter: bool = True,
    intra: bool = True,
) -> Shapes:
    """The shapes of all parameters by their names; see :mod:`rnnlab.layers.review`.

    Raises
    ------
    ValueError
        If a size is not an integer of at least 1.
    """
    sizes = {"memory_dim": memory_dim, "hidden_dim": hidden_dim, "attention_dim": attention_dim}
    for name, size in sizes.items():
        check_option("review_shapes", name, Count, size)
    connections = Connections(blocks, steps, inter, intra)
    connections.check("review_shapes")
    H, A, shapes = hidden_dim, attention_dim, Shapes()
    for block, step, prefix in connections.scopes():
        J = connections.memories(block)
        D = memory_dim + (J - 1) * H
        own = {"Wz": (D, 4 * H), "Wh": (connections.states(step) * H, 4 * H), "b": (4 * H,)}
        shapes |= scoped(prefix, own | {"Wq": (H, J * A), "Wm": (D, A), "bm": (J * A,), "v": (J * A,)})
    return shapes


def review_forward(
    memory: Array,
    state: State,
    params: Params,
    *,
    blocks: int,
    steps: int,
    inter: bool = True,
    intra: bool = True,
    memory_mask: Array | None = None,
    dropout: float = 0.0,
    rng: Random = None,
) -> tuple[tuple[Array, ...], State, tuple[tuple[Array, ...], ...], ReviewCache]:
    """Review a memory.

    Parameters
    ----------
    memory : (N, M, C)
        The encoder's outputs.
    state : (h0, c0), each (N, H)
        The encoder's state.
    params : mapping of str to array
        The parameters of :func:`review_shapes`. Others are ignored.
    blocks, steps : int
        B and L, at least 1.
    inter : bool
        Whether a block attends to the thought vectors of all earlier blocks.
    intra : bool
        Whether a step reads all earlier states of its block.
    memory_mask : (N, M), optional
        True (or 1) for the real slots of the memory, which may be anywhere; the others are not read.
    dropout : float in [0, 1)
        Probability of dropping an element of the thought vectors. The states that the steps pass on and that
        intra-block connections read have no dropout.
    rng : numpy Generator, optional
        Draws the dropout masks. Without it there is no dropout.

    Returns
    -------
    thoughts : B arrays (N, L, H)
        The thought vectors of each block.
    final_state : (h, c), each (N, H)
    weights : B tuples of arrays
        ``weights[b][j]`` (N, L, slots) holds the attention weights of the steps of block b + 1 over memory j.
        Memory 0 is the encoder's; memory j is the thought vectors of block j.
    cache : ReviewCache

    Raises
    ------
    ValueError, TypeError
        If a shape, a dtype or an option is wrong, or a parameter is missing.
    """
    function, connections = "review_forward", Connections(blocks, steps, inter, intra)
    own = _checked(function, connections, memory, state, params)
    (h, c), rows = state, SourceRows.of(function, memory, memory_mask)
    memories, thoughts, weights, caches = [rows], [], [], []
    for block in range(1, blocks + 1):
        read = memories[: connections.memories(block)]
        history, c, alphas, step_caches = _block_forward(connections, block, read, h, c, own)
        dropped, dropout_cache = dropout_forward(copy_of(history[:, 1:]), dropout, rng=rng)
        memories.append(SourceRows.of(function, dropped, None))
        h = copy_of(history[:, -1])
        # copies, because a caller may change its arrays, and the backward reads the originals
        thoughts.append(dropped if block == blocks else copy_of(dropped))
        weights.append(tuple(map(copy_of, alphas)))
        caches.append(BlockCache(history, step_caches, dropout_cache))
    return tuple(thoughts), (h, c), tuple(weights), ReviewCache(connections, own, memory, rows, tuple(caches))


def review_backward(
    dthoughts: Sequence[Array | None],
    dfinal: State | None,
    cache: ReviewCache,
    *,
    into: Params | None = None,
    memory_gradient: bool = True,
) -> tuple[Array | None, State, dict[str, Array]]:
    """Backward of :func:`review_forward`.

    Parameters
    ----------
    dthoughts : B arrays (N, L, H), or None for zeros
        Gradients of the loss with respect to the thought vectors of each block.
    dfinal : (dh, dc), or None for zeros
        Gradients with respect to the final state.
    into : mapping of str to array, optional
        Arrays that the gradients of the parameters are added to. By default they are new arrays. Others are
        not changed.
    memory_gradient : bool
        Whether to compute dmemory, which features from a file do not need.

    Returns
    -------
    dmemory : (N, M, C), or None without ``memory_gradient``
    dstate : (dh0, dc0)
    dparams : dict of str to array

    Raises
    ------
    ValueError, TypeError
        If a gradient or an array of ``into`` is invalid, or the cache is from another function.
    """
    check_cache("review_backward", cache, ReviewCache)
    connections, params, memory, rows, blocks = cache
    ops, (N, L, H) = ops_for(memory), (len(memory), connections.steps, blocks[0].history.shape[2])
    grads = gradients_of("review_backward", params, memory, into, memory=memory)
    if len(dthoughts) != connections.blocks:
        raise InputError(
            f"review_backward: dthoughts has {len(dthoughts)} arrays, expected {connections.blocks}, "
            "one for each block"
        )
    dmemory = ops.zeros(rows.rows.shape, memory.dtype) if memory_gradient else None
    dblocks = [_gradient(f"dthoughts[{b}]", each, (N, L, H), memory) for b, each in enumerate(dthoughts)]
    drows = [dmemory, *map(as_rows, dblocks)]
    dfinal = dfinal or (None, None)
    if len(dfinal) != 2:
        raise InputError(f"review_backward: dfinal has {len(dfinal)} arrays, expected 2, dh and dc")
    dh, dc = (_gradient(f"dfinal[{k}]", each, (N, H), memory) for k, each in enumerate(dfinal))
    for b in reversed(range(connections.blocks)):
        block = blocks[b]
        dhistory = ops.zeros(block.history.shape, memory.dtype)
        dhistory[:, 1:] = dropout_backward(dblocks[b], block.dropped)
        dhistory[:, -1] += dh
        _block_backward(connections, b + 1, block, dhistory, dc, drows, params, grads)
        dh = copy_of(dhistory[:, 0])
    if dmemory is not None and rows.real_rows is not None:
        packed, dmemory = dmemory, ops.zeros((N * memory.shape[1], memory.shape[2]), memory.dtype)
        ops.put(packed, rows.real_rows, dmemory)
    return None if dmemory is None else dmemory.reshape(memory.shape), (dh, dc), grads


# ---------------------------------------------------------------- one block


def _block_forward(
    connections: Connections, block: int, memories: Sequence[SourceRows], h: Array, c: Array, params: Params
) -> tuple[Array, Array, tuple[Array, ...], tuple[ReviewStepCache, ...]]:
    """The states (N, L + 1, H) of a block, its last cell state, its attention weights, and its caches."""
    ops, (N, H), L = ops_for(h), h.shape, connections.steps
    history, caches = ops.empty((N, L + 1, H), h.dtype), []
    history[:, 0] = h
    columns = history.reshape(N, (L + 1) * H)
    weights = tuple(ops.zeros((N, L, each.slots.shape[1]), h.dtype) for each in memories)
    for i in range(L):
        p = _step_params(params, block, i + 1)
        gates = ops.empty((N, 4 * H), h.dtype)
        ops.affine_into(columns[:, _read(connections, i, H)], p["Wh"], p["b"], gates)
        attended = attend(history[:, i], memories, p, [each[:, i] for each in weights], gates)
        after, tanh_c, next_c = (ops.empty((N, H), h.dtype) for _ in range(3))
        ops.lstm_forward(gates, c, next_c, tanh_c, after)
        history[:, i + 1] = after
        caches.append(ReviewStepCache(attended, gates, tanh_c, c))
        c = next_c
    return history, c, weights, tuple(caches)


def _block_backward(
    connections: Connections,
    block: int,
    cache: BlockCache,
    dhistory: Array,
    dc: Array,
    drows: Sequence[Array | None],
    params: Params,
    grads: Params,
) -> None:
    """Backward of :func:`_block_forward`.

    ``dhistory`` (N, L + 1, H) and ``dc`` (N, H) are the gradients of the states and of the last cell state.
    They are changed in place: afterwards ``dhistory[:, 0]`` and ``dc`` are the gradients of the states before
    the first step. The gradients of the memories are added into ``drows``.
    """
    history, steps, _ = cache
    ops, (N, _, H) = ops_for(history), history.shape
    columns, dcolumns = (each.reshape(N, (connections.steps + 1) * H) for each in (history, dhistory))
    for i in reversed(range(connections.steps)):
        step, p, dp = steps[i], _step_params(params, block, i + 1), _step_params(grads, block, i + 1)
        da, read = ops.empty(step.gates.shape, step.gates.dtype), _read(connections, i, H)
        ops.lstm_backward(copy_of(dhistory[:, i + 1]), dc, step.gates, step.c, step.tanh_c, da)
        ops.add_affine_gradients(columns[:, read], da, dp["Wh"], dp["b"])
        ops.matmul_add(da, p["Wh"].T, dcolumns[:, read])
        attend_backward(step.attended, history[:, i], da, p, dp, dhistory[:, i], drows)


# ---------------------------------------------------------------- parameters and checks

_NAMES = ("Wz", "Wh", "b", "Wq", "Wm", "bm", "v")


def _step_params(params: Params, block: int, step: int) -> dict[str, Array]:
    """The parameters of one step, or their gradients."""
    return {name: params[f"block{block}_step{step}_{name}"] for name in _NAMES}


def _read(connections: Connections, i: int, H: int) -> slice:
    """The columns that step i (from 0) reads, where a block's states are side by side."""
    return slice(0 if connections.intra else i * H, (i + 1) * H)


def _checked(
    function: str, connections: Connections, memory: Array, state: State, params: Params
) -> dict[str, Array]:
    """Check all arguments; return the parameters."""
    connections.check(function)
    check_state(function, state, 2, ", h0 and c0")
    names = [prefix + name for _, _, prefix in connections.scopes() for name in _NAMES]
    own = select_params(function, params, dict.fromkeys(names))
    ops_of(function, memory=memory, h0=state[0], c0=state[1], **own)
    sizes = check_shapes(
        function,
        memory=(memory, "N M C"),
        h0=(state[0], "N H"),
        c0=(state[1], "N H"),
        block1_step1_Wm=(own["block1_step1_Wm"], "C A"),
    )
    expected = review_shapes(
        memory_dim=sizes["C"], hidden_dim=sizes["H"], attention_dim=sizes["A"], **connections._asdict()
    )
    for name, shape in expected.items():
        if own[name].shape != shape:
            raise InputError(f"{function}: {name} has shape {own[name].shape}, expected {shape}")
        if own[name].dtype != memory.dtype:
            raise InputTypeError(
                f"{function}: {name} has dtype {own[name].dtype}, expected {memory.dtype} as memory"
            )
    return own


def _gradient(name: str, given: Array | None, shape: tuple[int, ...], like: Array) -> Array:
    """A copy of a gradient, which is checked, or zeros."""
    if given is None:
        return ops_for(like).zeros(shape, like.dtype)
    check_gradient("review_backward", given, shape, like.dtype, name)
    return copy_of(given)
