"""Contexts in a recurrent cell: the work of attention between the steps of the loop, and its backward.

:mod:`rnnlab.layers.attention.decoder` has the equations and runs a sequence,
:mod:`rnnlab.layers.attention.decoding` runs one step at a time. Both use the arithmetic of this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, NamedTuple, TypeAlias

from rnnlab.errors import InputError
from rnnlab.layers.attention.scores import (
    SCORES,
    Attention,
    AttentionBackward,
    AttentionCache,
    Keys,
    Selector,
    Workspace,
    score_axes,
)
from rnnlab.layers.attention.source_rows import SourceRows
from rnnlab.layers.attention.target import histories
from rnnlab.layers.checks import check_gradient, check_state
from rnnlab.layers.parameters import select_params
from rnnlab.layers.recurrent.cell import Cell, gates_axis
from rnnlab.layers.recurrent.packing import Packing
from rnnlab.layers.recurrent.sequence import check_params, named_states
from rnnlab.ops import ops_for, unchecked
from rnnlab.options import AttentionScore, Range, check_option
from rnnlab.types import Array, Params, State

Delay: TypeAlias = Annotated[int, Range("[2, inf)")]  # one step back is the state that the cell reads anyway
WEIGHTS = {"source": "Wz", "target": "Wt"}  # the weight of each context


class Attends(NamedTuple):
    """What a cell attends to, and with which score."""

    score: AttentionScore
    source: bool
    selector: bool
    target: bool
    delay: int | None  # read the state this many steps back; None to attend to all

    @property
    def names(self) -> tuple[str, ...]:
        """The names "source" and "target" of the attentions in use, in the order of their contexts."""
        used = {"source": self.source, "target": self.target}
        return tuple(name for name, is_used in used.items() if is_used)

    def delay_of(self, name: str) -> int | None:
        """The delay of an attention, which only the target may have."""
        return self.delay if name == "target" else None

    def score_of(self, name: str) -> AttentionScore:
        """The score of an attention. One state has the weight 1 with any score; "dot" has no parameters."""
        return self.score if self.delay_of(name) is None else "dot"

    def check(self, function: str) -> None:
        """Raise ValueError for an unknown score, nothing to attend to, or an option that has no effect."""
        score_axes(function, self.score)
        if self.delay is not None:
            check_option(function, "target_delay", Delay, self.delay)
            if not self.target:
                raise InputError(
                    f"{function}: target_delay is {self.delay} and target is False, expected True"
                )
        if not self.names:
            raise InputError(f"{function}: neither a memory nor a target is given, expected one to attend to")
        if self.selector and not self.source:
            raise InputError(f"{function}: selector is True and no memory is given, expected one")


def check_inputs(
    function: str,
    cell: Cell,
    attends: Attends,
    x: Array | None,
    state: State,
    memory: Array | None,
    params: Params,
) -> dict[str, Array]:
    """Check the arguments; return the parameters of this cell and its attention.

    Raises
    ------
    ValueError, TypeError
        If a shape or a dtype is wrong, or something is missing.
    """
    attends.check(function)
    check_state(function, state, cell.num_states)
    axes = _attention_axes(attends, gates_axis(cell))
    own = select_params(function, params, dict.fromkeys(cell.shapes(1, 1), "") | axes)
    arguments = ({} if x is None else {"x": (x, "N T D")}) | named_states(state)
    if memory is not None:
        arguments["memory"] = (memory, "N L H" if attends.score == "dot" else "N L C")
    check_params(function, cell, arguments, own, axes)
    if attends.selector and own["selector_b"].shape != (1,):
        raise InputError(f"{function}: selector_b has shape {own['selector_b'].shape}, expected (1,)")
    return own


def _attention_axes(attends: Attends, G: str) -> dict[str, str]:
    """The axes of the parameters of attention, by name."""
    axes = {}
    for name, letters in (("source", {"C": "C", "A": "A"}), ("target", {"C": "H", "A": "B"})):
        if name in attends.names:
            score = attends.score_of(name)
            C = "H" if score == "dot" else letters["C"]
            axes[WEIGHTS[name]] = f"{C} {G}"
            for own, of_score in SCORES[score].items():
                axes[f"{name}_{own}"] = " ".join(letters.get(axis, axis) for axis in of_score.split())
    if attends.selector:
        axes |= {"selector_w": "H", "selector_b": "I"}
    return axes


class Context:
    """One attention and the weight of its context, prepacked for many steps."""

    def __init__(self, name: str, attends: Attends, params: Params, like: Array) -> None:
        self._ops, self._score = unchecked(ops_for(like)), attends.score_of(name)
        self._grows, self.delay = name == "target", attends.delay_of(name)
        self._params = {own: params[f"{name}_{own}"] for own in SCORES[self._score]}
        self._selector: Selector | None = None
        if name == "source" and attends.selector:
            self._selector = params["selector_w"], params["selector_b"]
        self.keys = Keys(self._score, self._params, reused=True, like=like)
        self._attention = Attention(self._score, self._params, self._selector, reused=True, like=like)
        self._to_gates = self._ops.prepacked(params[WEIGHTS[name]])

    def cache(self, keys: Array, memory: Array, slots: Array, num_queries: int) -> AttentionCache:
        """A cache for this number of queries, with slots (N, L)."""
        workspace = self.workspace(keys, memory, num_queries, slots.shape[1])
        return AttentionCache(
            self._score, self._params, self._selector, keys, memory, slots, workspace, self._grows, self.delay
        )

    def workspace(self, keys: Array, memory: Array, num_queries: int, num_slots: int) -> Workspace:
        """The arrays that this number of queries writes."""
        additive, selector = self._score == "additive", self._selector is not None
        return Workspace.of(num_queries, num_slots, keys, memory, additive=additive, selector=selector)

    def step(
        self, h: Array, keys: Array, memory: Array, slots: Array, workspace: Workspace, gates: Array
    ) -> None:
        """Attend, and add the product of the context and its weight to the pre-activations."""
        if self._grows and not slots.shape[1]:  # the first steps may have no past to attend to
            workspace.context[...] = 0
            return
        self._attention.attend(h, keys, memory, slots, workspace)
        self._ops.matmul_add(workspace.context, self._to_gates, gates)


class SequenceContexts:
    """The contexts of all steps of a sequence: see :class:`~rnnlab.layers.recurrent.loop.Contexts`.

    Parameters
    ----------
    function : str
        The name of the calling function, for the errors.
    attends : Attends
    params : mapping of str to array
    packing : Packing
    states : tuple of arrays (N + M, H)
        The hidden states, which the loop writes.
    memory : (N, L, C) or None
    mask : (N, L), optional

    Attributes
    ----------
    caches : dict of str to AttentionCache
        By the names of ``attends``.
    real_rows : (R,) or None
        The indices of the memory's real rows; None if all are real.
    """

    def __init__(
        self,
        function: str,
        attends: Attends,
        params: Params,
        packing: Packing,
        states: State,
        memory: Array | None,
        mask: Array | None,
    ) -> None:
        self._each = {name: Context(name, attends, params, states[0]) for name in attends.names}
        self.caches: dict[str, AttentionCache] = {}
        self.real_rows = None
        M = packing.offsets[-1]
        if memory is not None:
            rows, slots, self.real_rows = SourceRows.of(function, memory, mask)
            source = self._each["source"]
            self.caches["source"] = source.cache(source.keys.of(rows), rows, slots[packing.order], M)
        if attends.target:
            rows, target = states[0][packing.shape[0] :], self._each["target"]
            keys = target.keys.workspace(M, rows)
            self.caches["target"] = target.cache(keys, rows, histories(packing), M)

    def before_step(self, t: int, rows: slice, h: Array, gates: Array) -> None:
        """Attend from the states h (n, H)."""
        for name, each in self._each.items():
            each.step(h, *self.caches[name].at(rows, t), gates)

    def after_step(self, rows: slice, h: Array) -> None:
        """Write the keys of the states h, which later steps attend to."""
        if "target" in self._each:
            self._each["target"].keys.write(h, self.caches["target"].keys[rows])


class ContextBackward:
    """The backward of one attention and of the weight of its context.

    Parameters
    ----------
    name : str
    attention : AttentionCache
    W : (C, G)
        The weight of its context.
    dcontexts : (N, T, C) or None
    dweights : (N, T, L) or None
    packing : Packing
    grads : mapping of str to array
        Arrays that the gradients of the parameters are added to.

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
        packing: Packing,
        grads: Params,
    ) -> None:
        ops = self._ops = unchecked(ops_for(W))
        self._name, self._attention, self._grads = name, attention, grads
        self._own = {own: grads[f"{name}_{own}"] for own in attention.params}
        self._to_context = ops.prepacked(W.T)
        self._backward = AttentionBackward(attention, reused=True)
        self._keys = Keys(attention.score, attention.params, reused=True, like=W)
        workspace = attention.workspace
        self.dkeys = self._backward.dkeys
        self.dattended = (
            ops.zeros(workspace.context.shape, W.dtype) if dcontexts is None else packing.gather(dcontexts)
        )
        self._dscores = (
            ops.zeros(workspace.weights.shape, W.dtype) if dweights is None else packing.gather(dweights)
        )
        self._dmemory = ops.zeros(attention.memory.shape, W.dtype) if attention.grows else None

    def step(self, t: int, rows: slice, da: Array, h: Array, dh: Array) -> None:
        """Add to dh (n, H), the gradient of the queries h, and to the gradient of the keys."""
        slots, columns = self._attention.slots_at(rows, t), self._attention.columns(t)
        if self._attention.grows and not slots.shape[1]:
            return
        dcontext, dscores = self.dattended[rows], self._dscores[rows, columns]
        self._ops.matmul_add(da, self._to_context, dcontext)
        self._backward.attend(rows, columns, slots, dcontext, dscores, h, dh)
        if self._dmemory is not None:
            weights = self._attention.workspace.weights[rows, columns]
            self._ops.attention_memory_gradient(dcontext, weights, slots, self._dmemory)

    def add_state_gradient(self, rows: slice, dh: Array) -> None:
        """Add to dh (n, H) the gradient that these rows' states get as memory of later steps."""
        if self._dmemory is not None:
            dh += self._dmemory[rows]
            self._keys.backward(self.dkeys[rows], dh)

    def add_gradients(self, rows: slice, h: Array, da: Array) -> None:
        """Add the gradients of the weights of contexts and of queries, for the queries h of some rows."""
        context = self._attention.workspace.context[rows]
        ops_for(da).matmul_add(context.T, da, self._grads[WEIGHTS[self._name]])
        self._backward.add_query_gradient(rows, h, self._own)
        if self._attention.selector is not None:
            dw, db = self._grads["selector_w"], self._grads["selector_b"]
            self._backward.add_selector_gradients(rows, h, dw, db)

    def finish(self) -> None:
        """Add the gradients that are complete after the last step only."""
        self._backward.add_score_gradient(self._own)
        self._keys.add_gradients(self._attention.memory, self.dkeys, self._own)

    def memory_gradient(self, shape: tuple[int, ...], real_rows: Array | None, packing: Packing) -> Array:
        """The gradient of a source's memory (N, L, C), whose ``real_rows`` (all if None) have keys."""
        weights = packing.spread(self._attention.workspace.weights)
        dmemory = self._ops.matmul(weights.swapaxes(1, 2), packing.spread(self.dattended))
        rows = dmemory.reshape(-1, shape[2])
        if real_rows is None:
            self._keys.backward(self.dkeys, rows)
        else:
            through_keys = self._ops.zeros(self._attention.memory.shape, rows.dtype)
            self._keys.backward(self.dkeys, through_keys)
            rows[real_rows] += through_keys
        return dmemory


class SequenceContextsBackward:
    """The backward of :class:`SequenceContexts`.

    Parameters
    ----------
    function : str
        The name of the calling function, for the errors.
    caches : mapping of str to AttentionCache
    params, grads : mapping of str to array
    packing : Packing
    dcontexts : (N, T, C), (N, T, H), both side by side, or None
    dweights : mapping of str to array
        (N, T, L) of "source", (N, T, T) of "target".

    Raises
    ------
    ValueError, TypeError
        If a gradient has a wrong shape or dtype.
    """

    def __init__(
        self,
        function: str,
        caches: Mapping[str, AttentionCache],
        params: Params,
        grads: Params,
        packing: Packing,
        dcontexts: Array | None,
        dweights: Mapping[str, Array],
    ) -> None:
        (N, T), dtype = packing.shape, params["Wx"].dtype
        if unknown := dweights.keys() - caches.keys():
            raise InputError(
                f"{function}: dweights has {', '.join(sorted(unknown))}, expected {', '.join(caches)}"
            )
        columns = sum(each.memory.shape[1] for each in caches.values())
        if dcontexts is not None:
            check_gradient(function, dcontexts, (N, T, columns), dtype, "dcontexts")
        self.each: dict[str, ContextBackward] = {}
        start = 0
        for name, cache in caches.items():
            stop = start + cache.memory.shape[1]
            if name in dweights:
                shape = (N, T, cache.workspace.weights.shape[1])
                check_gradient(function, dweights[name], shape, dtype, f"dweights[{name!r}]")
            dcontext = None if dcontexts is None else dcontexts[:, :, start:stop]
            self.each[name] = ContextBackward(
                name, cache, params[WEIGHTS[name]], dcontext, dweights.get(name), packing, grads
            )
            start = stop

    def before_step(self, rows: slice, dh: Array) -> None:
        """Add to dh (n, H) the gradient that these states get as memory of later steps."""
        if "target" in self.each:
            self.each["target"].add_state_gradient(rows, dh)

    def after_step(self, t: int, rows: slice, da: Array, h: Array, dh: Array) -> None:
        """Add to dh (n, H), the gradient of the states h that were the step's queries."""
        for each in self.each.values():
            each.step(t, rows, da, h, dh)

    def add_gradients(self, rows: slice, h: Array, da: Array) -> None:
        """Add the parameters' gradients of many steps."""
        for each in self.each.values():
            each.add_gradients(rows, h, da)

    def finish(self) -> None:
        """Add the gradients that are complete after the last step only."""
        for each in self.each.values():
            each.finish()
