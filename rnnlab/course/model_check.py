"""Compare a student's captioning model with the library's, with the same parameters.

``kind`` is the student's class, with the constructor, ``params``, ``loss`` and ``sample`` of the cs231n
assignment. Each function returns a list of problems, which is empty if there are none. Exceptions of the
student's code are not caught.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rnnlab.errors import InputError
from rnnlab.gradcheck.numeric import relative_distance
from rnnlab.models import CaptioningRNN
from rnnlab.options import described
from rnnlab.types import Array

__all__ = ["loss_problems", "sample_problems"]

_WORDS = {
    word: token
    for token, word in enumerate(["<NULL>", "<START>", "<END>", "<UNK>", "a", "dog", "cat", "runs", "sleeps"])
}
_SIZES: dict[str, Any] = {"input_dim": 6, "wordvec_dim": 7, "hidden_dim": 8}
_LIMIT = 1e-7
_LENGTH = 12  # length of the sampled captions


def loss_problems(kind: Any, cell: str) -> list[str]:
    """Problems of the loss and the gradients, on a batch with captions of different lengths."""
    own, library, features = _models(kind, cell)
    captions = np.array([[1, 4, 5, 7, 2], [1, 6, 8, 2, 0], [1, 4, 2, 0, 0], [1, 5, 5, 5, 2]])
    given = {"features": features.copy(), "captions": captions.copy()}
    found = own.loss(*given.values())
    changes = _changes("loss", own, library, given, {"features": features, "captions": captions})
    if not isinstance(found, tuple) or len(found) != 2:
        return [*changes, f"loss returns {described(found)}, expected two results: loss, grads"]
    loss, grads = found
    expected, gradients = library.loss(features, captions)
    problems = [*changes, *_number_problems(loss, float(expected))]
    if _is_number(loss) and not _right_number(float(loss), float(expected)):
        cause = _cause(float(loss), library, features, captions)
        return [*problems, f"{cause}the gradients are compared when the loss is right"]
    if not isinstance(grads, Mapping):
        return [*problems, f"grads is {described(grads)}, expected a dict with the names of params"]
    if missing := [name for name in gradients if name not in grads]:
        problems.append(f"grads lacks {', '.join(missing)}")
    if unknown := [str(name) for name in grads if name not in gradients]:
        problems.append(f"grads has {', '.join(unknown)}, which is not among params")
    for name, gradient in gradients.items():
        if name in grads:
            problems += _array_problems(f"the gradient of {name}", grads[name], gradient)
    return problems


def sample_problems(kind: Any, cell: str) -> list[str]:
    """Problems of sampled captions, each compared up to its <END>."""
    own, library, features = _models(kind, cell)
    given = {"features": features.copy()}
    found, expected = own.sample(*given.values(), max_length=_LENGTH), library.sample(features, _LENGTH)
    if changes := _changes("sample", own, library, given, {"features": features}):
        return changes
    shape = (len(features), _LENGTH)
    if not isinstance(found, np.ndarray) or found.shape != shape or found.dtype.kind not in "iu":
        return [f"sample returns {described(found)}, expected integers (N, max_length) = {shape}"]
    words, end = list(_WORDS), _WORDS["<END>"]
    for row, (one, other) in enumerate(zip(found.tolist(), expected.tolist(), strict=True)):
        length = other.index(end) + 1 if end in other else _LENGTH
        for place in range(length):
            if one[place] != other[place]:
                chosen = words[one[place]] if 0 <= one[place] < len(words) else f"token {one[place]}"
                return [f"caption {row} has {chosen} as word {place}, expected {words[other[place]]}"]
    return []


def _models(kind: Any, cell: str) -> tuple[Any, CaptioningRNN, Array]:
    """The student's model and the library's with the same random parameters, and features."""
    rng = np.random.default_rng(1)
    own = kind(_WORDS, **_SIZES, cell_type=cell, dtype=np.float64)
    library = CaptioningRNN(_WORDS, **_SIZES, cell_type=cell, dtype=np.float64)
    for array in library.params.values():
        array[...] = rng.standard_normal(array.shape)
    library.params["W_embed"][...] *= 3  # like the next lines, this makes captions long and varied
    library.params["b_vocab"][...] = 0
    library.params["b_vocab"][[_WORDS["<NULL>"], _WORDS["<END>"]]] = -9
    wrong = [name for name, array in library.params.items() if np.shape(own.params.get(name)) != array.shape]
    if wrong or len(own.params) != len(library.params):
        names = ", ".join(f"{name} {array.shape}" for name, array in library.params.items())
        raise InputError(f"params has {', '.join(own.params)}, expected {names}")
    for name, array in library.params.items():
        own.params[name] = array.copy()
    return own, library, rng.standard_normal((4, _SIZES["input_dim"]))


def _changes(
    method: str, own: Any, library: CaptioningRNN, given: Mapping[str, Array], before: Mapping[str, Array]
) -> list[str]:
    """Problems of a method that changes its arguments or the parameters."""
    changed = [
        f"{method} writes into its argument {name}, which is the caller's array"
        for name, array in given.items()
        if not np.array_equal(array, before[name])
    ]
    names = [name for name, array in library.params.items() if not _equal(own.params.get(name), array)]
    if names:
        changed.append(f"{method} changes {', '.join(names)} of params, which only an update may do")
    return changed


def _equal(own: Any, array: Array) -> bool:
    return np.shape(own) == array.shape and np.array_equal(own, array)


def _cause(loss: float, library: CaptioningRNN, features: Array, captions: Array) -> str:
    """What may be wrong with a loss: a mistake that gives the same number; "" if none does."""
    right, tokens = library.nll(features, captions)
    N, T = len(captions), captions.shape[1] - 1
    padded, _ = library.loss(features, captions, sentence_lengths=np.full(N, T))
    without = CaptioningRNN(_WORDS, **_SIZES, cell_type=library.cell_type, dtype=np.float64)
    without.params.flat[...] = library.params.flat
    for name in ("W_proj", "b_proj"):
        without.params[name][...] = 0
    causes = {
        "it counts padding; ": float(padded),
        "it is not divided by N; ": right,
        "it is divided by the number of tokens, expected N; ": right / tokens,
        "it is divided by N T, expected N; ": right / (N * T),
        "h0 is zero, expected the projected features; ": without.nll(features, captions)[0] / N,
    }
    return next((cause for cause, value in causes.items() if _right_number(loss, value)), "")


def _is_number(loss: Any) -> bool:
    return not np.ndim(loss) and np.issubdtype(np.asarray(loss).dtype, np.number)


def _right_number(loss: float, expected: float) -> bool:
    return abs(loss - expected) <= _LIMIT * abs(expected)


def _number_problems(loss: Any, expected: float) -> list[str]:
    if not _is_number(loss):
        return [f"loss is {described(loss)}, expected a number"]
    if isinstance(loss, np.floating) and loss.dtype != np.float64:
        return [f"loss has dtype {loss.dtype}, expected float64, the dtype of the model"]
    if _right_number(float(loss), expected):
        return []
    return [f"loss is {float(loss):.6g}, expected {expected:.6g}"]


def _array_problems(name: str, found: Any, expected: Array) -> list[str]:
    """Problems of a gradient."""
    if np.shape(found) != expected.shape:
        return [f"{name} has shape {np.shape(found)}, expected {expected.shape}"]
    if isinstance(found, np.ndarray) and found.dtype != expected.dtype:
        return [f"{name} has dtype {found.dtype}, expected {expected.dtype}, the dtype of the model"]
    array = np.asarray(found, dtype=float)
    if not np.isfinite(array).all():
        return [f"{name} has NaN or infinite elements"]
    if not array.any():
        return [f"{name} is zero"]
    if relative_distance(array, expected) <= _LIMIT:
        return []
    factor = float(np.vdot(array, expected) / np.vdot(expected, expected))
    if np.allclose(array, factor * expected, rtol=1e-6):
        return [f"{name} is {factor:.4g} times what it should be"]
    return [f"{name} is wrong, relative error {float(relative_distance(array, expected)):.1e}"]
