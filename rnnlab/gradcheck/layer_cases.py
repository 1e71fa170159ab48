"""The layers that :mod:`rnnlab.gradcheck.run` checks, with every option that changes a gradient.

A layer's :class:`~rnnlab.gradcheck.cases.Case` names its forward, its backward and inputs drawn from a seeded
generator. The cases of recurrent layers, and of attention and reviewers, are in files of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from rnnlab import layers
from rnnlab.gradcheck.attention_cases import PARTS, attention_cases, attentive_case, review_case
from rnnlab.gradcheck.cases import CELLS, LENGTHS, MEMORY_MASK, A, Case, D, H, L, N, T, V
from rnnlab.gradcheck.recurrent_cases import course_cases, regularised_cases
from rnnlab.layers.arnet import arnet_shapes
from rnnlab.layers.attention.scores import SCORES
from rnnlab.layers.discriminative import discriminative_shapes
from rnnlab.layers.recurrent.cell import cell_for
from rnnlab.options import AttentionScore
from rnnlab.types import Array

BEYOND_ADDITIVE: tuple[AttentionScore, ...] = ("dot", "bilinear")
REVIEWERS: dict[str, dict[str, bool]] = {  # the rows of Jiang, Ma and Lu (2020), table 4
    "all connections": {},
    "without intra-block connections": {"intra": False},
    "without inter-block connections": {"inter": False},
    "without both": {"inter": False, "intra": False},
}


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
        yield from course_cases(name, cell_for("layer_cases", name), normal)
    for score in SCORES:
        yield from attention_cases(score, normal)
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
        for parts in PARTS:
            yield attentive_case(name, name, "additive", parts, normal)
    for score in BEYOND_ADDITIVE:
        yield attentive_case("gru", "gru", score, "source and target", normal)
    yield _arnet_case("arnet", normal, h0=True)
    yield _arnet_case("arnet, from a state of zeros", normal, h0=False)
    yield review_case("review, Review Net", normal, blocks=1, intra=False)
    for kind, options in REVIEWERS.items():
        yield review_case(f"review, {kind}", normal, blocks=2, **options)
    for name in CELLS:
        yield from regularised_cases(name, name, normal)
    yield _discriminative_case(normal)


def _loss(name: str, loss: Callable[[Array], tuple[float, Array]], x: Array) -> Case:
    """The case of a loss that returns its gradient: the gradient serves as the cache."""
    return Case(name, loss, lambda dout, dx: dout * dx, {"x": x})


def _arnet_case(name: str, normal: Callable[..., Array], *, h0: bool) -> Case:
    def forward(h: Array, h0: Array | None = None, **params: Array) -> tuple[Any, ...]:
        return layers.arnet_forward(h, h0, params, lengths=LENGTHS)

    def backward(dloss: float, cache: Any) -> tuple[Array, ...]:
        dh, dh0, dparams = layers.arnet_backward(dloss, cache)
        return dh, *(() if dh0 is None else (dh0,)), *dparams.values()

    inputs = {"h": normal(N, T, H)} | ({"h0": normal(N, H)} if h0 else {})
    return Case(name, forward, backward, inputs | {key: normal(*s) for key, s in arnet_shapes(H, A).items()})


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
