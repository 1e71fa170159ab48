"""The exercises of the notebooks, by the names of their functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from rnnlab.course.exercise import Draw, Drawn, Exercise, Sizes, shape_of
from rnnlab.errors import InputError, InputTypeError
from rnnlab.options import described
from rnnlab.types import Array

__all__ = ["EXERCISES", "exercise"]


def exercise(name: str) -> Exercise:
    """The exercise of this name, or of a function of it.

    Raises
    ------
    ValueError
        If there is none. The error lists all names.
    TypeError
        If the name is not a string.
    """
    if not isinstance(name, str):
        raise InputTypeError(f"exercise is {described(name)}, expected the name of an exercise")
    known = EXERCISES.get(name.removesuffix("_forward").removesuffix("_backward"))
    if known is None:
        raise InputError(f"exercise is {name!r}, expected one of {', '.join(EXERCISES)}")
    return known


def _tokens(size: str, axes: str) -> Drawn:
    """Integers in [0, size - 1), with repetitions; the largest token does not occur.

    The first and the last sequence begin with the same token.
    """

    def draw(rng: np.random.Generator, sizes: Sizes) -> Array:
        tokens = rng.integers(max(sizes[size] - 1, 1), size=shape_of(axes, sizes))
        tokens[(-1, *[0] * (tokens.ndim - 1))] = tokens.flat[0]
        tokens.flat[1:2] = (tokens.flat[0] + 1) % (sizes[size] - 1)
        return tokens

    return Drawn(axes, draw)


def _mask(rng: np.random.Generator, sizes: Sizes) -> Array:
    """True for real tokens, with padding in at least one sequence and a token in each."""
    lengths = rng.integers(1, sizes["T"] + 1, sizes["N"])
    lengths[0] = max(sizes["T"] - 1, 1)
    return np.arange(sizes["T"]) < lengths[:, None]


def _words(rng: np.random.Generator, sizes: Sizes) -> Array:
    """A row of different words for each sample, and -1 for none."""
    words = np.array([rng.permutation(sizes["K"])[: sizes["P"]] for _ in range(sizes["N"])])
    words[0, -1] = -1
    return words


def _large_scores(rng: np.random.Generator, draw: Draw) -> Draw:
    """A draw with a large number added to all scores of each step or row, which does not change the loss."""
    x = draw.inputs["x"]
    large = x + 1000.0 * (np.arange(x.shape[-2])[:, None] - 1)
    return replace(draw, inputs={**draw.inputs, "x": large}, overflows=True)


def _large_preactivations(rng: np.random.Generator, draw: Draw) -> Draw:
    """A draw with large biases of both signs: gates are 0 or 1, or nearly so if a sigmoid is clipped."""
    b = draw.inputs["b"]
    signs = rng.choice([-1.0, 1.0], b.shape)
    signs[0] = 1
    large = b + 1000 * signs
    return replace(draw, inputs={**draw.inputs, "b": large}, tolerance=100.0, overflows=True)


def _gaps(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """A mask that is false at the beginning and true at the end of each row."""
    mask = rng.random(shape) < 0.5
    mask[:, 0], mask[:, -1] = False, True
    return mask


def _mask_with_gaps(rng: np.random.Generator, draw: Draw) -> Draw:
    return replace(draw, inputs={**draw.inputs, "mask": _gaps(rng, draw.inputs["mask"].shape)})


def _masked_memory(rng: np.random.Generator, draw: Draw) -> Draw:
    mask = _gaps(rng, draw.inputs["memory"].shape[:2])
    mask[-1] = False
    return replace(draw, options={"forward": {"mask": mask}})


def _gradient_of_weights(rng: np.random.Generator, draw: Draw) -> Draw:
    dweights = rng.standard_normal(draw.inputs["memory"].shape[:2])
    return replace(draw, options={"backward": {"dweights": dweights}})


def _detached(rng: np.random.Generator, draw: Draw) -> Draw:
    return replace(draw, options={"backward": {"detach_target": True}})


def _repeated_words(rng: np.random.Generator, draw: Draw) -> Draw:
    words = draw.inputs["words"].copy()
    words[0, 1], words[1] = words[0, 0], -1
    return replace(draw, inputs={**draw.inputs, "words": words})


_OF_GATES = {"where some biases are large": _large_preactivations}


def _cell(name: str, gates: tuple[str, ...], states: tuple[str, ...]) -> Mapping[str, Exercise]:
    """A step and the sequence of a recurrent cell."""
    width = f"{len(gates)}H" if len(gates) > 1 else "H"
    weights = {"Wx": f"D {width}", "Wh": f"H {width}", "b": width}
    step = {"x": "N D"} | {f"prev_{state}": "N H" for state in states} | weights
    outs = {f"next_{state}": "N H" for state in states}
    sequence = {"x": "N T D", "h0": "N H"} | weights
    blocks, hard = (gates, _OF_GATES) if len(gates) > 1 else ((), {})
    return {
        f"{name}_step": Exercise(f"{name}_step", name, step, outs, gates=blocks, hard=hard),
        name: Exercise(name, name, sequence, {"h": "N T H"}, gates=blocks, hard=hard),
    }


_ADDITIVE = {"Wq": "H A", "Wm": "C A", "b": "A", "v": "A"}
_OF_QUERY = {"Wq": "H A", "v": "A"}
_OF_ATTENTION = {"where mask is used": _masked_memory, "where dweights is used": _gradient_of_weights}

EXERCISES: Mapping[str, Exercise] = {
    each.name: each
    for each in (
        Exercise("affine", "affine", {"x": "N D E", "w": "DE M", "b": "M"}, {"out": "N M"}),
        Exercise("temporal_affine", "affine", {"x": "N T D", "w": "D M", "b": "M"}, {"out": "N T M"}),
        Exercise("word_embedding", "embedding", {"x": _tokens("V", "N T"), "W": "V D"}, {"out": "N T D"}),
        Exercise(
            "softmax_loss",
            "softmax",
            {"x": "N V", "y": _tokens("V", "N")},
            {"loss": ""},
            is_loss=True,
            hard={"where a large number is added to all scores of a row": _large_scores},
        ),
        Exercise(
            "temporal_softmax_loss",
            "softmax",
            {"x": "N T V", "y": _tokens("V", "N T"), "mask": Drawn("N T", _mask)},
            {"loss": ""},
            is_loss=True,
            hard={
                "where a large number is added to all scores of a step": _large_scores,
                "where the mask has gaps": _mask_with_gaps,
            },
        ),
        *_cell("rnn", ("a",), ("h",)).values(),
        *_cell("lstm", ("i", "f", "o", "g"), ("h", "c")).values(),
        *_cell("gru", ("z", "r", "g"), ("h",)).values(),
        *_cell("simplified_gru", ("z", "g"), ("h",)).values(),
        Exercise(
            "attention_keys",
            "attention",
            {"memory": "N L C", "params": {"Wm": "C A", "b": "A"}},
            {"keys": "N L A"},
        ),
        Exercise(
            "attention_step",
            "attention",
            {"query": "N H", "keys": "N L A", "memory": "N L C", "params": _OF_QUERY},
            {"context": "N C", "weights": "N L"},
            douts=1,
            hard=_OF_ATTENTION,
        ),
        Exercise(
            "attend",
            "attention",
            {"query": "N H", "memory": "N L C", "params": _ADDITIVE},
            {"context": "N C", "weights": "N L"},
            douts=1,
            hard=_OF_ATTENTION,
        ),
        Exercise(
            "selector",
            "attention",
            {"context": "N C", "h": "N H", "w": "H", "b": "B"},
            {"scaled": "N C"},
            sizes={"B": 1},
            hard=_OF_GATES,
        ),
        Exercise("doubly_stochastic_loss", "attention", {"weights": "N T L"}, {"loss": ""}, is_loss=True),
        Exercise(
            "target_attention",
            "target_attention",
            {"h": "N T H", "h0": "N H", "params": _ADDITIVE | {"Wm": "H A"}},
            {"contexts": "N T H", "weights": "N T T"},
            douts=1,
        ),
        Exercise(
            "arnet",
            "arnet",
            {
                "h": "N T H",
                "h0": "N H",
                "params": {"Wx": "H 4R", "Wh": "R 4R", "b": "4R", "W": "R H", "b_out": "H"},
            },
            {"loss": ""},
            hard={"where detach_target is true": _detached},
        ),
        Exercise(
            "discriminative",
            "discriminative",
            {"thoughts": "N L H", "words": Drawn("N P", _words), "params": {"W": "H K"}},
            {"loss": ""},
            sizes={"P": 3, "K": 7},
            hard={"where a word comes twice or a caption has none": _repeated_words},
        ),
    )
}
