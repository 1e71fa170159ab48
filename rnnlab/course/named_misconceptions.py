"""Mistakes of single exercises that are not a single edit: see :mod:`rnnlab.course.misconceptions`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

import numpy as np

from rnnlab.course.exercise import Sizes
from rnnlab.plain.attention import attend_forward
from rnnlab.types import Array

__all__ = ["BY_NAME"]

# ---------------------------------------------------------------- embedding and losses


def _assigned(right: Any, sizes: Sizes, dout: Array, cache: Any) -> Array:
    x, shape = cache
    dW = np.zeros(shape)
    dW[x] += dout
    return dW


def _assigned_at_each_step(right: Any, sizes: Sizes, dout: Array, cache: Any) -> Array:
    x, shape = cache
    dW = np.zeros(shape)
    for t in range(x.shape[1]):
        dW[x[:, t]] += dout[:, t]
    return dW


def _averaged_by_token(right: Any, sizes: Sizes, dout: Array, cache: Any) -> Array:
    counts = np.bincount(cache[0].ravel(), minlength=cache[1][0])
    return right(dout, cache) / np.maximum(counts, 1)[:, None]


def _without_token_0(right: Any, sizes: Sizes, dout: Array, cache: Any) -> Array:
    dW = right(dout, cache)
    dW[0] = 0
    return dW


_Axis = int | tuple[int, ...] | None


def _softmax(x: Array, axis: _Axis, largest: _Axis) -> Array:
    e = np.exp(x - x.max(axis=largest, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def _softmax_over(
    axis: _Axis, largest: _Axis, right: Any, sizes: Sizes, x: Array, y: Array, mask: Array | None = None
) -> Any:
    p = _softmax(x, axis, largest)
    onehot = np.arange(x.shape[-1]) == y[..., None]
    real = 1 if mask is None else mask[..., None]
    return -(np.log(p) * onehot * real).sum() / len(x), (p - onehot) * real / len(x)


def _softmaxes(classes: int, places: Mapping[_Axis, str]) -> dict[str, Callable[..., Any]]:
    """Softmaxes over a wrong axis, also with only the axis of the maximum right."""
    found: dict[str, Callable[..., Any]] = {}
    for axis, place in places.items():
        over = f"goes over {place}, where the classes belong, axis {classes}"
        found[f"the softmax {over}"] = partial(_softmax_over, axis, axis)
        found[f"the sum of the softmax {over}"] = partial(_softmax_over, axis, classes)
    return found


def _attention_over(
    axis: _Axis, right: Any, sizes: Sizes, query: Array, keys: Array, memory: Array, params: Any
) -> Any:
    e = np.tanh((query @ params["Wq"])[:, None] + keys) @ params["v"]
    weights = _softmax(e, axis, axis)
    return np.einsum("nl,nlc->nc", weights, memory), weights, None


def _tanh_of_scores(right: Any, sizes: Sizes, query: Array, keys: Array, memory: Array, params: Any) -> Any:
    e = np.tanh(((query @ params["Wq"])[:, None] + keys) @ params["v"])
    weights = _softmax(e, 1, 1)
    return np.einsum("nl,nlc->nc", weights, memory), weights, None


def _attend_over(axis: _Axis, right: Any, sizes: Sizes, query: Array, memory: Array, params: Any) -> Any:
    keys = memory @ params["Wm"] + params["b"]
    return _attention_over(axis, right, sizes, query, keys, memory, params)


def _attentions(over: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    return {
        f"the softmax of the weights goes over {place}, where the slots belong, axis 1": partial(over, axis)
        for axis, place in ((0, "the batch, axis 0"), (None, "batch and slots"))
    }


def _in_all_columns(right: Any, sizes: Sizes, x: Array, y: Array) -> Any:
    loss, dx = right(x, y)
    p = dx * len(x) + (np.arange(x.shape[1]) == y[:, None])
    p[:, y] -= 1
    return loss, p / len(x)


def _masked(loss: bool, dx: bool, right: Any, sizes: Sizes, x: Array, y: Array, mask: Array) -> Any:
    """A loss or a gradient that includes padding."""
    masked, everywhere = right(x, y, mask), right(x, y, np.ones_like(mask))
    return (everywhere if loss else masked)[0], (everywhere if dx else masked)[1]


def _scores_times_mask(right: Any, sizes: Sizes, x: Array, y: Array, mask: Array) -> Any:
    return right(x * mask[:, :, None], y, np.ones_like(mask))


def _scaled(
    factor: Callable[[Array], float],
    changed: str,
    right: Any,
    sizes: Sizes,
    x: Array,
    y: Array,
    mask: Array,
) -> Any:
    loss, dx = right(x, y, mask)
    return loss * (factor(mask) if "loss" in changed else 1), dx * (factor(mask) if "dx" in changed else 1)


def _scales_of_a_loss() -> dict[str, Callable[..., Any]]:
    """A loss, its gradient or both with a wrong divisor or sign."""
    found: dict[str, Callable[..., Any]] = {}
    for changed, verb in (("loss and dx", "are"), ("loss", "is"), ("dx", "is")):
        have = "have" if verb == "are" else "has"
        messages: dict[str, Callable[[Array], float]] = {
            f"{changed} {verb} not divided by N": len,
            f"{changed} {have} the wrong sign": lambda mask: -1.0,
            f"{changed} {verb} divided by N T, expected N": lambda mask: 1 / mask.shape[1],
            f"{changed} {verb} divided by the number of real tokens, expected N": (
                lambda mask: len(mask) / mask.sum()
            ),
            f"{changed} {verb} divided by T, expected N": lambda mask: len(mask) / mask.shape[1],
        }
        for message, factor in messages.items():
            found[message] = partial(_scaled, factor, changed)
    return found


def _last_step(right: Any, sizes: Sizes, x: Array, y: Array, mask: Array) -> Any:
    last = mask.copy()
    last[:, :-1] = False
    return right(x, y, last)[0], right(x, y, mask)[1]


# ---------------------------------------------------------------- attention to the past, ARNet, words


def _reads_itself(right: Any, sizes: Sizes, h: Array, h0: Array, params: Any) -> Any:
    N, T, _ = h.shape
    contexts, weights = np.zeros(h.shape), np.zeros((N, T, T))
    for t in range(T):
        query = h[:, t - 1] if t else h0
        contexts[:, t], weights[:, t, : t + 1], _ = attend_forward(query, h[:, : t + 1], params)
    return contexts, weights, None


def _queries_with_the_state_of_the_step(right: Any, sizes: Sizes, h: Array, h0: Array, params: Any) -> Any:
    contexts, weights = np.zeros(h.shape), np.zeros((len(h), h.shape[1], h.shape[1]))
    for t in range(1, h.shape[1]):
        contexts[:, t], weights[:, t, :t], _ = attend_forward(h[:, t], h[:, :t], params)
    return contexts, weights, None


def _times(factor: Callable[[Sizes], float], right: Any, sizes: Sizes, *given: Any) -> Any:
    loss, *others = right(*given)
    return loss * factor(sizes), *others


def _all_pairs(right: Any, sizes: Sizes, thoughts: Array, words: Array, params: Any) -> Any:
    """The loss over all words i, those of the caption included."""
    scores = (thoughts @ params["W"]).max(axis=1)
    present = [sorted(set(row) - {-1}) for row in words.tolist()]
    terms = (
        np.maximum(0, 1 - (s[own][:, None] - s)).sum() for s, own in zip(scores, present, strict=True) if own
    )
    return sum(terms) / len(scores), None


def _overwritten(names: Collection[str], right: Any, sizes: Sizes, *given: Any) -> Any:
    """Gradients of parameters that have the share of the first step, which is zero."""
    *others, dparams = right(*given)
    return *others, {name: array * (name not in names) for name, array in dparams.items()}


def _overwritten_gradients() -> dict[str, Callable[..., Any]]:
    names = ("Wq", "Wm", "b", "v")
    each = {f"d{name} is": (name,) for name in names} | {"the gradients of params are": names}
    return {
        f"{subject} overwritten at each step, where += belongs; the last one, of the first step, is zero": (
            partial(_overwritten, which)
        )
        for subject, which in each.items()
    }


def _over_slots(right: Any, sizes: Sizes, weights: Array) -> Any:
    missing = 1 - weights.sum(axis=2, keepdims=True)
    return (missing**2).sum() / len(weights), np.broadcast_to(-2 * missing / len(weights), weights.shape)


_NO_QUERY = (
    "the query has no effect: it is left out, or it is added to the keys after the tanh, where it cancels in "
    "the softmax"
)

# By the exercise and "forward" or "backward": the message of each mistake, and its function.
BY_NAME: dict[tuple[str, str], dict[str, Callable[..., Any]]] = {
    ("target_attention", "forward"): {
        "a state reads itself: at step j the memory is h_1 .. h_(j-1), without h_j": _reads_itself,
        "the query of step j is h_j, expected h_(j-1)": _queries_with_the_state_of_the_step,
    },
    ("target_attention", "backward"): _overwritten_gradients(),
    ("doubly_stochastic_loss", "forward"): {
        "the weights are summed over the slots, axis 2, where they belong summed over the steps, axis 1": (
            _over_slots
        ),
    },
    ("arnet", "backward"): {
        "the states that are reconstructed have no gradient: dh and dh0 lack the minus terms": (
            lambda right, sizes, *given: right(*given, detach_target=True)
        ),
    },
    ("arnet", "forward"): {
        "loss is not divided by N": partial(_times, lambda sizes: sizes["N"]),
        "loss is divided by N T: it is a mean over steps, where their sum belongs": partial(
            _times, lambda sizes: 1 / sizes["T"]
        ),
        "loss is the mean of all squared errors, expected their sum divided by N": partial(
            _times, lambda sizes: 1 / (sizes["T"] * sizes["H"])
        ),
    },
    ("discriminative", "forward"): {
        "loss has pairs of two words of the caption: i must not be one of its words": _all_pairs,
        "loss is not divided by N": partial(_times, lambda sizes: sizes["N"]),
    },
    ("word_embedding", "backward"): {
        "dW of a repeated token is overwritten: dW[x] += dout adds once a token, use np.add.at": _assigned,
        "dW of a repeated token in one step is overwritten: += adds once for each token, use np.add.at": (
            _assigned_at_each_step
        ),
        "dW of a repeated token is averaged where the sum belongs": _averaged_by_token,
        "dW lacks the row of token 0": _without_token_0,
    },
    ("word_embedding", "forward"): {
        "out has the row of the token before, x - 1": lambda right, sizes, x, W: right(x - 1, W),
        "out has the row of the token after, x + 1": lambda right, sizes, x, W: right((x + 1) % len(W), W),
    },
    ("attention_step", "forward"): {
        **_attentions(_attention_over),
        "the scores are tanh((query + keys) v), expected tanh(query + keys) v": _tanh_of_scores,
        _NO_QUERY: lambda right, sizes, query, *given: right(0 * query, *given),
    },
    ("attend", "forward"): _attentions(_attend_over),
    ("softmax_loss", "forward"): {
        **_softmaxes(1, {0: "the batch, axis 0", None: "all scores"}),
        "dx has 1 subtracted at all labels of the batch, where each row's own label belongs": _in_all_columns,
    },
    ("temporal_softmax_loss", "forward"): {
        "loss lacks the mask: it counts padding": partial(_masked, True, False),
        "dx lacks the mask: it is not zero at padding": partial(_masked, False, True),
        "the mask is ignored: loss and dx count padding": partial(_masked, True, True),
        "the mask multiplies the scores, where it must select the tokens of the loss": _scores_times_mask,
        **_scales_of_a_loss(),
        "loss has the last step alone": _last_step,
        **_softmaxes(
            2,
            {
                0: "the batch, axis 0",
                1: "time, axis 1",
                (0, 1): "batch and time",
                None: "all scores",
            },
        ),
    },
}
