"""Every layer of rnnlab.plain with inputs, called by the same code in rnnlab.plain and in rnnlab.layers."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from rnnlab import layers, plain

Array = Any
Lib = Any

MODULES = [
    importlib.import_module(f"rnnlab.plain.{found.name}") for found in pkgutil.iter_modules(plain.__path__)
]
PLAIN = SimpleNamespace(
    **{
        name: value
        for module in MODULES
        for name, value in vars(module).items()
        if callable(value) and getattr(value, "__module__", None) == module.__name__
    }
)
GATES = {"rnn": 1, "lstm": 4, "gru": 3, "simplified_gru": 2}


class Case(NamedTuple):
    """One layer with its inputs.

    ``forward(lib, **inputs)`` returns outputs and a cache. ``backward(lib, *douts, cache)`` returns one
    gradient for each input. ``lib`` is PLAIN or rnnlab.layers.
    """

    inputs: dict[str, Array]
    forward: Callable[..., tuple[Any, ...]]
    backward: Callable[..., tuple[Array, ...]]


def tuple_of(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def function_case(name: str, inputs: dict[str, Array], **options: Any) -> Case:
    """A layer whose forward takes the inputs by position, and whose backward returns their gradients."""
    return Case(
        inputs,
        lambda lib, **arrays: getattr(lib, f"{name}_forward")(*arrays.values(), **options),
        lambda lib, *douts: tuple_of(getattr(lib, f"{name}_backward")(*douts)),
    )


def normal(rng: np.random.Generator, **shapes: tuple[int, ...]) -> dict[str, Array]:
    return {name: rng.standard_normal(shape) for name, shape in shapes.items()}


# ---------------------------------------------------------------- cases: (rng, N, T, lengths) -> Case


def cell(name: str, *, c0: bool = False) -> Callable[..., Case]:
    def make(rng: np.random.Generator, N: int, T: int, lengths: Array) -> Case:
        D, H, G = 2, 3, 3 * GATES[name]
        inputs = normal(rng, x=(N, T, D), h0=(N, H), Wx=(D, G), Wh=(H, G), b=(G,))
        inputs |= normal(rng, c0=(N, H)) if c0 else {}

        def forward(lib: Lib, **arrays: Array) -> tuple[Any, ...]:
            options = {"c0": arrays.pop("c0")} if c0 else {}
            return getattr(lib, f"{name}_forward")(*arrays.values(), **options, lengths=lengths)

        return Case(inputs, forward, lambda lib, *douts: getattr(lib, f"{name}_backward")(*douts))

    return make


def step(name: str) -> Callable[..., Case]:
    def make(rng: np.random.Generator, N: int, T: int, lengths: Array) -> Case:
        D, H, G = 2, 3, 3 * GATES[name]
        states = {"prev_h": (N, H)} | ({"prev_c": (N, H)} if name == "lstm" else {})
        return function_case(f"{name}_step", normal(rng, x=(N, D), **states, Wx=(D, G), Wh=(H, G), b=(G,)))

    return make


def score_params(score: str, H: int, C: int, A: int = 3) -> dict[str, tuple[int, ...]]:
    return {
        "additive": {"Wq": (H, A), "Wm": (C, A), "b": (A,), "v": (A,)},
        "dot": {},
        "bilinear": {"W": (H, C)},
    }[score]


def real_slots(rng: np.random.Generator, N: int, L: int) -> Array:
    """A mask with holes; the first query has no real slot in half of the draws."""
    mask = rng.random((N, L)) < 0.7
    mask[0] &= rng.random() < 0.5
    return mask


def attention_keys(score: str) -> Callable[..., Case]:
    def make(rng: np.random.Generator, N: int, T: int, lengths: Array) -> Case:
        used = {"additive": ("Wm", "b"), "dot": (), "bilinear": ("W",)}[score]
        shapes = {name: shape for name, shape in score_params(score, 2, 2).items() if name in used}
        others = {name: np.zeros(shape) for name, shape in score_params(score, 2, 2).items()}

        def forward(lib: Lib, memory: Array, **params: Array) -> tuple[Any, ...]:
            all_params = {name: array.astype(memory.dtype) for name, array in others.items()} | params
            return lib.attention_keys_forward(memory, all_params, score=score)

        def backward(lib: Lib, *douts: Array) -> tuple[Array, ...]:
            dmemory, dparams = lib.attention_keys_backward(*douts)
            return dmemory, *(dparams[name] for name in used)

        return Case(normal(rng, memory=(N, T, 2), **shapes), forward, backward)

    return make


def attention_step(score: str) -> Callable[..., Case]:
    def make(rng: np.random.Generator, N: int, T: int, lengths: Array) -> Case:
        used = ("Wq", "v") if score == "additive" else ()
        shapes = {name: shape for name, shape in score_params(score, 2, 2).items() if name in used}
        inputs = normal(rng, query=(N, 2), keys=(N, T, 3 if used else 2), memory=(N, T, 2), **shapes)
        others = {name: np.zeros(shape) for name, shape in score_params(score, 2, 2).items()}
        mask = real_slots(rng, N, T)

        def forward(lib: Lib, query: Array, keys: Array, memory: Array, **params: Array) -> tuple[Any, ...]:
            all_params = {name: array.astype(query.dtype) for name, array in others.items()} | params
            return lib.attention_step_forward(query, keys, memory, all_params, score=score, mask=mask)

        def backward(lib: Lib, dcontext: Array, dweights: Array, cache: Any) -> tuple[Array, ...]:
            *gradients, dparams = lib.attention_step_backward(dcontext, cache, dweights=dweights)
            return *gradients, *(dparams[name] for name in used)

        return Case(inputs, forward, backward)

    return make


def target_attention(score: str) -> Callable[..., Case]:
    def make(rng: np.random.Generator, N: int, T: int, lengths: Array) -> Case:
        inputs = normal(rng, h=(N, T, 2), h0=(N, 2), **score_params(score, 2, 2))

        def forward(lib: Lib, h: Array, h0: Array, **params: Array) -> tuple[Any, ...]:
            return lib.target_attention_forward(h, h0, params, score=score, lengths=lengths)

        def backward(lib: Lib, dcontexts: Array, dweights: Array, cache: Any) -> tuple[Array, ...]:
            dh, dh0, dparams = lib.target_attention_backward(dcontexts, cache, dweights=dweights)
            return dh, dh0, *(dparams[name] for name in score_params(score, 2, 2))

        return Case(inputs, forward, backward)

    return make


def attentive(name: str, score: str, **options: Any) -> Callable[..., Case]:
    def make(rng: np.random.Generator, N: int, T: int, lengths: Array) -> Case:
        D, H, L, source = 2, 3, 3, options.get("source", True)
        C = H if score == "dot" else 2
        shapes = layers.attentive_shapes(
            name,
            input_dim=D,
            hidden_dim=H,
            attention_dim=2,
            memory_dim=C if source else None,
            score=score,
            selector=options.get("selector", False),
            target=options.get("target", False),
        )
        states = {"h0": (N, H)} | ({"c0": (N, H)} if name == "lstm" else {})
        memory = {"memory": (N, L, C)} if source else {}
        inputs = normal(rng, x=(N, T, D), **states, **memory, **shapes)
        mask = real_slots(rng, N, L) if source else None
        kind = {key: value for key, value in options.items() if key != "source"}
        parts = ["source"] * source + ["target"] * options.get("target", False)

        def forward(lib: Lib, **arrays: Array) -> tuple[Any, ...]:
            h, contexts, weights, _, cache = lib.attentive_forward(
                arrays["x"],
                tuple(arrays[state] for state in states),
                arrays.get("memory"),
                {key: arrays[key] for key in shapes},
                cell=name,
                score=score,
                memory_mask=mask,
                lengths=lengths,
                **kind,
            )
            return h, contexts, *(weights[part] for part in parts), cache

        def backward(lib: Lib, dh: Array, dcontexts: Array, *rest: Any) -> tuple[Array, ...]:
            *dweights, cache = rest
            by_part = dict(zip(parts, dweights, strict=True))
            dx, dstate, dmemory, dparams = lib.attentive_backward(dh, dcontexts, cache, dweights=by_part)
            return dx, *dstate, *([dmemory] if source else []), *(dparams[key] for key in shapes)

        return Case(inputs, forward, backward)

    return make


def arnet(*, h0: bool) -> Callable[..., Case]:
    def make(rng: np.random.Generator, N: int, T: int, lengths: Array) -> Case:
        shapes = {"Wx": (2, 12), "Wh": (3, 12), "b": (12,), "W": (3, 2), "b_out": (2,)}
        first = {"h0": (N, 2)} if h0 else {}

        def forward(lib: Lib, h: Array, h0: Array | None = None, **params: Array) -> tuple[Any, ...]:
            return lib.arnet_forward(h, h0, params, lengths=lengths)

        def backward(lib: Lib, dloss: float, cache: Any) -> tuple[Array, ...]:
            dh, dh0, dparams = lib.arnet_backward(dloss, cache)
            return dh, *([dh0] if first else []), *(dparams[name] for name in shapes)

        return Case(normal(rng, h=(N, T, 2), **first, **shapes), forward, backward)

    return make


class Draws:
    """A generator that repeats given numbers."""

    def __init__(self, numbers: Array) -> None:
        self._numbers = numbers

    def random(self, shape: tuple[int, ...]) -> Array:
        assert shape == self._numbers.shape
        return self._numbers


def dropout(rng: np.random.Generator, N: int, T: int, lengths: Array) -> Case:
    """The plain layer drops what the mask of the library's own layer drops."""
    mask, _ = layers.dropout_forward(np.ones((N, T, 3)), 0.4, rng=np.random.default_rng(N))
    draws = Draws(np.where(mask == 0, 0.0, 0.9))

    def forward(lib: Lib, x: Array) -> tuple[Any, ...]:
        return lib.dropout_forward(x, 0.4, rng=draws if lib is PLAIN else np.random.default_rng(N))

    return Case(normal(rng, x=(N, T, 3)), forward, lambda lib, *douts: (lib.dropout_backward(*douts),))


def embedding(rng: np.random.Generator, N: int, T: int, lengths: Array) -> Case:
    tokens = rng.integers(0, 4, (N, T))
    return Case(
        normal(rng, W=(4, 3)),
        lambda lib, W: lib.word_embedding_forward(tokens, W),
        lambda lib, *douts: (lib.word_embedding_backward(*douts),),
    )


def review(blocks: int, **options: Any) -> Callable[..., Case]:
    """``lengths`` are the real slots of the memory, of which there are T."""

    def make(rng: np.random.Generator, N: int, T: int, lengths: Array) -> Case:
        C, H, names = 2, 3, [f"thoughts{b}" for b in range(blocks)]
        structure = {"blocks": blocks, "steps": 2} | options
        shapes = layers.review_shapes(memory_dim=C, hidden_dim=H, attention_dim=2, **structure)
        inputs = normal(rng, memory=(N, T, C), h0=(N, H), c0=(N, H), **shapes)
        mask = np.arange(T) < lengths[:, None]

        def forward(lib: Lib, *, memory: Array, h0: Array, c0: Array, **params: Array) -> tuple[Any, ...]:
            thoughts, final, _, cache = lib.review_forward(
                memory, (h0, c0), params, memory_mask=mask, **structure
            )
            return *thoughts, *final, cache

        def backward(lib: Lib, *douts: Array) -> tuple[Array, ...]:
            dthoughts, (dh, dc, cache) = douts[: len(names)], douts[len(names) :]
            dmemory, dstate, dparams = lib.review_backward(dthoughts, (dh, dc), cache)
            return dmemory, *dstate, *dparams.values()

        return Case(inputs, forward, backward)

    return make


def discriminative(rng: np.random.Generator, N: int, T: int, lengths: Array) -> Case:
    """T thought vectors score four words; some samples have none, some have a word twice."""
    words = rng.integers(-1, 4, (N, 3))

    def backward(lib: Lib, *douts: Array) -> tuple[Array, ...]:
        dthoughts, dparams = lib.discriminative_backward(*douts)
        return dthoughts, dparams["W"]

    return Case(
        normal(rng, thoughts=(N, T, 2), W=(2, 4)),
        lambda lib, thoughts, W: lib.discriminative_forward(thoughts, words, {"W": W}),
        backward,
    )


CASES: dict[str, Callable[..., Case]] = {
    "affine": lambda rng, N, T, lengths: function_case(
        "affine", normal(rng, x=(N, T, 2), w=(2 * T, 3), b=(3,))
    ),
    "temporal_affine": lambda rng, N, T, lengths: function_case(
        "temporal_affine", normal(rng, x=(N, T, 2), w=(2, 3), b=(3,))
    ),
    "relu": lambda rng, N, T, lengths: function_case("relu", normal(rng, x=(N, T, 2))),
    "tanh": lambda rng, N, T, lengths: function_case("tanh", normal(rng, x=(N, T, 2))),
    "selector": lambda rng, N, T, lengths: function_case(
        "selector", normal(rng, context=(N, T), h=(N, 3), w=(3,), b=(1,))
    ),
    "dropout": dropout,
    "word_embedding": embedding,
    "lstm_with_c0": cell("lstm", c0=True),
    "arnet": arnet(h0=True),
    "arnet_without_h0": arnet(h0=False),
    "discriminative": discriminative,
}
CASES |= {name: cell(name) for name in GATES} | {f"{name}_step": step(name) for name in GATES}
for score in ("additive", "dot", "bilinear"):
    CASES[f"attention_keys_{score}"] = attention_keys(score)
    CASES[f"attention_step_{score}"] = attention_step(score)
    CASES[f"target_attention_{score}"] = target_attention(score)
    CASES[f"attentive_lstm_{score}"] = attentive("lstm", score, selector=True, target=True)
CASES |= {
    "attentive_rnn": attentive("rnn", "additive"),
    "attentive_gru": attentive("gru", "additive", target=True),
    "attentive_gru_target": attentive("gru", "additive", source=False, target=True),
    "attentive_simplified_gru": attentive("simplified_gru", "dot", selector=True),
    "review_net": review(1, intra=False),
    "review": review(3),
    "review_without_inter": review(2, inter=False),
    "review_without_intra": review(2, intra=False),
    "review_without_both": review(2, inter=False, intra=False),
}
