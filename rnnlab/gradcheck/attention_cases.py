"""The attention and the reviewers that :mod:`rnnlab.gradcheck.run` checks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from rnnlab import layers
from rnnlab.gradcheck.cases import LENGTHS, MEMORY_MASK, A, Case, D, H, L, N, T
from rnnlab.layers.attention.decoder import attentive_shapes
from rnnlab.layers.attention.query import attention_shapes
from rnnlab.layers.recurrent.cell import Cell, cell_for
from rnnlab.layers.review import review_shapes
from rnnlab.options import AttentionScore
from rnnlab.types import Array

PARTS = ("source", "target", "selector and target", "delayed state")  # what a cell attends to


def attention_cases(score: AttentionScore, normal: Callable[..., Array]) -> Iterator[Case]:
    """Keys, one query, and the attention of states to the states before them."""
    params = {
        name: normal(*shape)
        for name, shape in attention_shapes(score, query_dim=H, memory_dim=H, attention_dim=A).items()
    }
    of_keys = {"additive": ("Wm", "b"), "dot": (), "bilinear": ("W",)}[score]
    of_query = ("Wq", "v") if score == "additive" else ()

    def keys_forward(memory: Array, **own: Array) -> tuple[Any, ...]:
        return layers.attention_keys_forward(memory, params | own, score=score)

    def keys_backward(dkeys: Array, cache: Any) -> tuple[Array, ...]:
        dmemory, dparams = layers.attention_keys_backward(dkeys, cache)
        return dmemory, *dparams.values()

    yield Case(
        f"attention_keys, {score}",
        keys_forward,
        keys_backward,
        {"memory": normal(N, L, H), **{name: params[name] for name in of_keys}},
    )

    def step_forward(query: Array, keys: Array, memory: Array, **own: Array) -> tuple[Any, ...]:
        return layers.attention_step_forward(query, keys, memory, params | own, score=score, mask=MEMORY_MASK)

    def step_backward(dcontext: Array, dweights: Array, cache: Any) -> tuple[Array, ...]:
        *grads, dparams = layers.attention_step_backward(dcontext, cache, dweights=dweights)
        return *grads, *dparams.values()

    yield Case(
        f"attention_step, {score}",
        step_forward,
        step_backward,
        {
            "query": normal(N, H),
            "keys": normal(N, L, A if score == "additive" else H),
            "memory": normal(N, L, H),
            **{name: params[name] for name in of_query},
        },
    )

    def target_forward(h: Array, h0: Array, **own: Array) -> tuple[Any, ...]:
        return layers.target_attention_forward(h, h0, own, score=score, lengths=LENGTHS)

    def target_backward(dcontexts: Array, dweights: Array, cache: Any) -> tuple[Array, ...]:
        dh, dh0, dparams = layers.target_attention_backward(dcontexts, cache, dweights=dweights)
        return dh, dh0, *dparams.values()

    yield Case(
        f"target_attention, {score}",
        target_forward,
        target_backward,
        {"h": normal(N, T, H), "h0": normal(N, H), **params},
    )


def attentive_case(
    name: str, cell: str | Cell, score: AttentionScore, parts: str, normal: Callable[..., Array]
) -> Case:
    """A cell of two units with attention, with gradients through all of its outputs."""
    states = [f"state{k}" for k in range(cell_for("gradcheck", cell).num_states)]
    H, source, selector = 2, "source" in parts or "selector" in parts, "selector" in parts
    target, delay = "target" in parts or "delayed" in parts, 2 if "delayed" in parts else None
    shapes = attentive_shapes(
        cell,
        input_dim=2,
        hidden_dim=H,
        attention_dim=A,
        memory_dim=H if source else None,
        score=score,
        selector=selector,
        target=target,
        target_delay=delay,
    )
    inputs = {"x": normal(N, T, 2)} | {key: normal(N, H) for key in states}
    if source:
        inputs["memory"] = normal(N, L, H)
    weights = ("source",) * source + ("target",) * target

    def forward(x: Array, memory: Array | None = None, **rest: Array) -> tuple[Any, ...]:
        h, contexts, attended, final, cache = layers.attentive_forward(
            x,
            tuple(rest[key] for key in states),
            memory,
            {name: rest[name] for name in shapes},
            cell=cell,
            score=score,
            memory_mask=MEMORY_MASK if source else None,
            lengths=LENGTHS,
            selector=selector,
            target=target,
            target_delay=delay,
        )
        return h, contexts, *attended.values(), *final, cache

    def backward(dh: Array, dcontexts: Array, *rest: Any) -> tuple[Array, ...]:
        *douts, cache = rest
        dweights, dfinal = dict(zip(weights, douts, strict=False)), tuple(douts[len(weights) :])
        dx, dstate, dmemory, dparams = layers.attentive_backward(
            dh, dcontexts, cache, dweights=dweights, dfinal=dfinal
        )
        return dx, *dstate, *(() if dmemory is None else (dmemory,)), *dparams.values()

    params = {name: normal(*shape) / 2 for name, shape in shapes.items()}
    return Case(f"attentive, {name}, {score}, {parts}", forward, backward, inputs | params)


def review_case(name: str, normal: Callable[..., Array], **options: Any) -> Case:
    """A reviewer with dropout, two units and two steps per block, with gradients through all outputs."""
    H, options = 2, {"steps": 2} | options
    shapes = review_shapes(memory_dim=D, hidden_dim=H, attention_dim=A, **options)

    def forward(memory: Array, h0: Array, c0: Array, **params: Array) -> tuple[Any, ...]:
        thoughts, final, _, cache = layers.review_forward(
            memory,
            (h0, c0),
            params,
            memory_mask=MEMORY_MASK,
            dropout=0.3,
            rng=np.random.default_rng(1),
            **options,
        )
        return *thoughts, *final, cache

    def backward(*douts: Any) -> tuple[Array, ...]:
        *dthoughts, dh, dc, cache = douts
        dmemory, dstate, dparams = layers.review_backward(dthoughts, (dh, dc), cache)
        return dmemory, *dstate, *dparams.values()

    inputs = {"memory": normal(N, L, D), "h0": normal(N, H), "c0": normal(N, H)}
    return Case(name, forward, backward, inputs | {key: normal(*shape) for key, shape in shapes.items()})
