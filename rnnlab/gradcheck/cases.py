"""The layers that :mod:`rnnlab.gradcheck.run` checks, with every option that changes a gradient.

A layer's :class:`Case` names its forward, its backward and inputs drawn from a seeded generator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from rnnlab import layers
from rnnlab.layers.arnet import arnet_shapes
from rnnlab.layers.attention.decoder import attentive_shapes
from rnnlab.layers.attention.query import attention_shapes
from rnnlab.layers.attention.scores import SCORES
from rnnlab.layers.discriminative import discriminative_shapes
from rnnlab.layers.recurrent.cell import Cell, cell_for
from rnnlab.layers.review import review_shapes
from rnnlab.options import AttentionScore
from rnnlab.types import Array

BEYOND_ADDITIVE: tuple[AttentionScore, ...] = ("dot", "bilinear")
CELLS = ("rnn", "lstm", "gru", "simplified_gru")  # the built-in cells
N, T, D, H, V = 3, 4, 5, 4, 6  # three sequences, of which one is empty
LENGTHS = np.array([2, T, 0])
A, L = 2, 3  # units of additive scores, slots of a memory; all slots of one sequence are masked
REVIEWERS: dict[str, dict[str, bool]] = {  # the rows of Jiang, Ma and Lu (2020), table 4
    "all connections": {},
    "without intra-block connections": {"intra": False},
    "without inter-block connections": {"inter": False},
    "without both": {"inter": False, "intra": False},
}
MEMORY_MASK = np.array([[True, False, True], [False, False, False], [True, True, True]])


class Case(NamedTuple):
    """A layer to check."""

    name: str
    forward: Callable[..., tuple[Any, ...]]  # (**inputs) -> (*outs, cache)
    backward: Callable[..., Any]  # (*douts, cache) -> the inputs' gradients, in their order
    inputs: dict[str, Array]


def layer_cases(rng: np.random.Generator) -> Iterator[Case]:
    """Every layer with every option that changes its gradient."""

    def normal(*shape: int) -> Array:
        return rng.standard_normal(shape)

    yield Case(
        "affine",
        layers.affine_forward,
        layers.affine_backward,
        {"x": normal(N, 2, D), "w": normal(2 * D, H), "b": normal(H)},
    )
    yield Case(
        "temporal_affine",
        layers.temporal_affine_forward,
        layers.temporal_affine_backward,
        {"x": normal(N, T, D), "w": normal(D, H), "b": normal(H)},
    )
    yield Case("relu", layers.relu_forward, layers.relu_backward, {"x": normal(N, D)})
    yield Case("tanh", layers.tanh_forward, layers.tanh_backward, {"x": normal(N, D)})
    yield Case(
        "word_embedding",
        partial(layers.word_embedding_forward, rng.integers(V, size=(N, T))),
        layers.word_embedding_backward,
        {"W": normal(V, D)},
    )
    yield Case(
        "dropout",
        lambda x: layers.dropout_forward(x, 0.4, rng=np.random.default_rng(1)),
        layers.dropout_backward,
        {"x": normal(N, D)},
    )
    tokens, mask = rng.integers(V, size=(N, T)), rng.random((N, T)) < 0.7
    loss = partial(layers.softmax_loss, y=tokens[:, 0])
    yield _loss("softmax_loss", loss, normal(N, V))
    yield _loss("softmax_loss, smoothed labels", partial(loss, label_smoothing=0.1), normal(N, V))
    for average in ("batch", "token"):
        loss = partial(layers.temporal_softmax_loss, y=tokens, mask=mask, average=average)
        yield _loss(f"temporal_softmax_loss, average per {average}", loss, normal(N, T, V))
    for name in CELLS:
        yield from _course_cases(name, cell_for("layer_cases", name), normal)
    for score in SCORES:
        yield from _attention_cases(score, normal)
    yield Case(
        "selector",
        layers.selector_forward,
        layers.selector_backward,
        {"context": normal(N, D), "h": normal(N, H), "w": normal(H), "b": normal(1)},
    )
    yield _loss(
        "doubly_stochastic_loss",
        lambda x: layers.doubly_stochastic_loss(x, LENGTHS, memory_mask=MEMORY_MASK),
        rng.random((N, T, L)),
    )
    for name in CELLS:
        for parts in ("source", "target", "selector and target"):
            yield _attentive_case(name, name, "additive", parts, normal)
    for score in BEYOND_ADDITIVE:
        yield _attentive_case("gru", "gru", score, "source and target", normal)
    yield _arnet_case("arnet", normal, h0=True)
    yield _arnet_case("arnet, from a state of zeros", normal, h0=False)
    yield _review_case("review, Review Net", normal, blocks=1, intra=False)
    for kind, options in REVIEWERS.items():
        yield _review_case(f"review, {kind}", normal, blocks=2, **options)
    for name in CELLS:
        yield from _regularised_cases(name, name, normal)
    yield _discriminative_case(normal)


def check_cell(cell: str | Cell, rng: np.random.Generator) -> None:
    """Check what numeric gradients in float64 do not see of a cell.

    Raises
    ------
    ValueError, TypeError
        If it does not work in float32, or ``carries_h`` is False and h_{t-1} reaches the next state other
        than through its parameters: dropout of the state would drop that share too.
    """
    found = cell_for("check_cell", cell)
    case = _recurrent_case(
        "", cell, lambda *shape: rng.standard_normal(shape).astype(np.float32), {}, LENGTHS
    )
    *outs, cache = case.forward(**case.inputs)
    case.backward(*outs, cache)
    zeros = {name: np.zeros(shape) for name, shape in found.recurrent_shapes(H).items()}
    a, state = rng.standard_normal((N, found.num_gates * H)), rng.standard_normal((found.num_states, N, H))
    other = rng.standard_normal((N, H)), *state[1:]
    ends = (found.step_forward(a, given, zeros)[0] for given in (tuple(state), other))
    if not found.carries_h and any((one != two).any() for one, two in zip(*ends, strict=True)):
        raise ValueError(
            f"{type(found).__name__}: carries_h is False, but with recurrent parameters of zero the next "
            "state depends on h_{t-1}, expected carries_h = True"
        )


def cell_cases(cell: str | Cell, rng: np.random.Generator) -> Iterator[Case]:
    """The cases of one cell: over sequences, with each regularisation that it allows, and with attention.

    Parameters
    ----------
    cell : str or Cell
        As in :func:`~rnnlab.layers.recurrent_forward`.
    rng : numpy Generator
        Draws the inputs.
    """

    def normal(*shape: int) -> Array:
        return rng.standard_normal(shape)

    check_cell(cell, rng)
    name = cell if isinstance(cell, str) else type(cell).__name__
    yield _recurrent_case(name, cell, normal, {}, None)
    yield _recurrent_case(f"{name}, lengths", cell, normal, {}, LENGTHS)
    yield from _regularised_cases(name, cell, normal)
    for parts in ("source", "target", "selector and target"):
        yield _attentive_case(name, cell, "additive", parts, normal)


def _loss(name: str, loss: Callable[[Array], tuple[float, Array]], x: Array) -> Case:
    """A function that returns its gradient as a case: the gradient is its cache."""
    return Case(name, loss, lambda dout, dx: dout * dx, {"x": x})


def _course_cases(name: str, cell: Cell, normal: Callable[..., Array]) -> Iterator[Case]:
    """The step and sequence functions with the course's signatures."""
    gates, states = cell.num_gates, cell.num_states
    forward, backward = (getattr(layers, f"{name}_step_{way}") for way in ("forward", "backward"))
    previous = {key: normal(N, H) for key in ("prev_h", "prev_c")[:states]}
    weights = {"Wx": normal(D, gates * H) / 2, "Wh": normal(H, gates * H) / 2, "b": normal(gates * H)}
    yield Case(f"{name}_step", forward, backward, {"x": normal(N, D), **previous, **weights})

    forward, backward = (getattr(layers, f"{name}_{way}") for way in ("forward", "backward"))
    inputs = {"x": normal(N, T, D), "h0": normal(N, H), **weights}
    yield Case(name, forward, backward, inputs)
    if states == 2:
        inputs["c0"] = normal(N, H)
    finals = ("dfinal_h", "dfinal_c")[:states]

    def backward_with_state(dh: Array, *rest: Any) -> Any:
        *dfinals, cache = rest
        return backward(dh, cache, **dict(zip(finals, dfinals, strict=True)))

    for lengths in (None, LENGTHS):
        kind = "final state" if lengths is None else "final state, lengths"
        yield Case(
            f"{name}, {kind}",
            partial(forward, lengths=lengths, return_state=True),
            backward_with_state,
            inputs,
        )


def _regularised_cases(name: str, cell: str | Cell, normal: Callable[..., Array]) -> Iterator[Case]:
    """A cell with each regularisation that it allows."""
    kinds: dict[str, dict[str, Any]] = {
        "zoneout": {"zoneout_h": 0.3},
        "zoneout of h and c": {"zoneout_h": 0.3, "zoneout_c": 0.4},
        "recurrent dropout of the state": {"recurrent_dropout": 0.3},
        "recurrent dropout of the candidate": {"recurrent_dropout": 0.3, "recurrent_dropout_on": "candidate"},
        "DropConnect": {"weight_dropout": 0.3},
    }
    for kind, options in kinds.items():
        if allows(cell, options):
            yield _recurrent_case(f"{name}, {kind}", cell, normal, options, LENGTHS)


def allows(cell: str | Cell, options: dict[str, Any]) -> bool:
    """Whether a cell may be regularised so."""
    try:
        layers.Regularisation(**options).check("gradcheck", cell_for("gradcheck", cell))
    except ValueError:
        return False
    return True


def _recurrent_case(
    name: str,
    cell: str | Cell,
    normal: Callable[..., Array],
    regularisation: dict[str, Any],
    lengths: Array | None,
) -> Case:
    """A cell over sequences, through all its outputs."""
    found = cell_for("gradcheck", cell)
    shapes, states = found.shapes(D, H), [f"state{k}" for k in range(found.num_states)]
    inputs = {"x": normal(N, T, D)} | {key: normal(N, H) for key in states}
    inputs |= {key: normal(*shape) / 2 for key, shape in shapes.items()}

    def forward(**given: Array) -> tuple[Any, ...]:
        h, final, cache = layers.recurrent_forward(
            given["x"],
            tuple(given[key] for key in states),
            {key: given[key] for key in shapes},
            cell=cell,
            regularisation=regularisation,
            rng=np.random.default_rng(1),
            lengths=lengths,
        )
        return h, *final, cache

    def backward(dh: Array, *rest: Any) -> tuple[Array, ...]:
        *dfinal, cache = rest
        dx, dstate, dparams = layers.recurrent_backward(dh, cache, dfinal=tuple(dfinal))
        return dx, *dstate, *dparams.values()

    return Case(f"recurrent, {name}", forward, backward, inputs)


def _attention_cases(score: AttentionScore, normal: Callable[..., Array]) -> Iterator[Case]:
    """Keys, one query, and the queries of states to those before them."""
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


def _arnet_case(name: str, normal: Callable[..., Array], *, h0: bool) -> Case:
    def forward(h: Array, h0: Array | None = None, **params: Array) -> tuple[Any, ...]:
        return layers.arnet_forward(h, h0, params, lengths=LENGTHS)

    def backward(dloss: float, cache: Any) -> tuple[Array, ...]:
        dh, dh0, dparams = layers.arnet_backward(dloss, cache)
        return dh, *(() if dh0 is None else (dh0,)), *dparams.values()

    inputs = {"h": normal(N, T, H)} | ({"h0": normal(N, H)} if h0 else {})
    return Case(name, forward, backward, inputs | {key: normal(*s) for key, s in arnet_shapes(H, A).items()})


def _review_case(name: str, normal: Callable[..., Array], **options: Any) -> Case:
    """A reviewer of two units and two steps a block, with dropout, through all its outputs."""
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


def _discriminative_case(normal: Callable[..., Array]) -> Case:
    """Three samples: with a word that is listed twice, without a word, and with all words."""
    words = np.array([[2, -1, 2, 4, -1], [-1, -1, -1, -1, -1], [4, 3, 2, 1, 0]])

    def forward(thoughts: Array, W: Array) -> tuple[Any, ...]:
        return layers.discriminative_forward(thoughts, words, {"W": W})

    def backward(dloss: float, cache: Any) -> tuple[Array, ...]:
        dthoughts, dparams = layers.discriminative_backward(dloss, cache)
        return dthoughts, *dparams.values()

    inputs = {"thoughts": normal(N, L, H), "W": normal(*discriminative_shapes(H, V - 1)["W"])}
    return Case("discriminative", forward, backward, inputs)


def _attentive_case(
    name: str, cell: str | Cell, score: AttentionScore, parts: str, normal: Callable[..., Array]
) -> Case:
    """A cell of two units that attends, through all its outputs."""
    states = [f"state{k}" for k in range(cell_for("gradcheck", cell).num_states)]
    H, source, target, selector = 2, parts != "target", "target" in parts, "selector" in parts
    shapes = attentive_shapes(
        cell,
        input_dim=2,
        hidden_dim=H,
        attention_dim=A,
        memory_dim=H if source else None,
        score=score,
        selector=selector,
        target=target,
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
