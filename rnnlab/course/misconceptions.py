"""Mistakes that are no single edit of the right function: each computes what a student's function would.

They take the right function, the sizes of its inputs, and its arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from rnnlab.course.exercise import Exercise, Sizes
from rnnlab.types import Array

__all__ = ["Misconception", "misconceptions"]


class Misconception(NamedTuple):
    """A mistake, and the function that computes its results."""

    message: str
    function: Callable[..., Any]  # (right function, sizes, *its arguments)


def misconceptions(exercise: Exercise, kind: str) -> Iterator[Misconception]:
    """Those of an exercise's forward or backward."""
    for message, function in _BY_NAME.get((exercise.name, kind), {}).items():
        yield Misconception(message, function)
    if exercise.gates and kind == "forward":
        yield from _gates_of_a_forward(exercise)
    if exercise.module in _WEIGHTS_AT and kind == "backward":
        yield from _weights_of_a_backward(exercise)
    if exercise.inputs.get("x") == "N T D":
        yield from _steps_of_a_sequence(exercise, kind)


# ---------------------------------------------------------------- recurrent cells

_WEIGHTS_AT = {"rnn": 2, "lstm": 3, "gru": 2, "simplified_gru": 2}  # Wx in the cache of a step, then Wh


def _gates_of_a_forward(exercise: Exercise) -> Iterator[Misconception]:
    """The blocks of weights and biases: exchanged, interleaved, missing or transposed."""
    gates, names = exercise.gates, list(exercise.inputs)

    def with_weights(change: Callable[[str, Array], Array], right: Any, sizes: Sizes, *given: Any) -> Any:
        return right(
            *(
                change(name, value) if name in ("Wx", "Wh", "b") else value
                for name, value in zip(names, given, strict=True)
            )
        )

    def exchanged(order: tuple[int, ...], name: str, array: Array) -> Array:
        blocks = np.split(array, len(gates), axis=-1)
        return np.concatenate([blocks[place] for place in order], axis=-1)

    def interleaved(name: str, array: Array) -> Array:
        return np.concatenate([array[..., place :: len(gates)] for place in range(len(gates))], axis=-1)

    def changed(which: str, place: int, change: Callable[[Array], Array], name: str, array: Array) -> Array:
        blocks = np.split(array.copy(), len(gates), axis=-1)
        if name == which:
            blocks[place] = change(blocks[place])
        return np.concatenate(blocks, axis=-1)

    for one, other in combinations(range(len(gates)), 2):
        order = list(range(len(gates)))
        order[one], order[other] = other, one
        found = ", ".join(gates[place] for place in order)
        message = f"the gates are in the order {found}, expected {', '.join(gates)}"
        yield Misconception(message, partial(with_weights, partial(exchanged, tuple(order))))
    message = f"the columns of the gates are interleaved, expected {len(gates)} blocks of H columns"
    yield Misconception(message, partial(with_weights, interleaved))
    for place, gate in enumerate(gates):
        for name in ("Wx", "Wh", "b"):
            lacking = partial(changed, name, place, np.zeros_like)
            yield Misconception(f"{name} does not reach a_{gate}", partial(with_weights, lacking))
        transposed = partial(changed, "Wh", place, np.transpose)
        yield Misconception(f"a_{gate} has the block of Wh transposed", partial(with_weights, transposed))

    def all_transposed(name: str, array: Array) -> Array:
        blocks = np.split(array, len(gates), axis=-1)
        return np.concatenate([block.T for block in blocks], axis=-1) if name == "Wh" else array

    yield Misconception("the blocks of Wh are transposed", partial(with_weights, all_transposed))


def _weights_of_a_backward(exercise: Exercise) -> Iterator[Misconception]:
    """The weights that send da back to the input and the state before: blocks missing or transposed."""
    place, gates = _WEIGHTS_AT[exercise.module], exercise.gates or ("",)
    is_sequence = not exercise.name.endswith("_step")

    def with_cache(change: Callable[[list[Any]], None], right: Any, sizes: Sizes, *given: Any) -> Any:
        *douts, cache = given

        def edited(step: tuple[Any, ...]) -> tuple[Any, ...]:
            made = list(step)
            change(made)
            return tuple(made)

        cache = (*cache[:-1], [edited(step) for step in cache[-1]]) if is_sequence else edited(cache)
        return right(*douts, cache)

    def block(which: int, gate: int, change: Callable[[Array], Array], step: list[Any]) -> None:
        blocks = np.split(step[which].copy(), len(gates), axis=1)
        blocks[gate] = change(blocks[gate])
        step[which] = np.concatenate(blocks, axis=1)

    def transposed(step: list[Any]) -> None:
        blocks = np.split(step[place + 1], len(gates), axis=1)
        step[place + 1] = np.concatenate([each.T for each in blocks], axis=1)

    target = "dh_t" if is_sequence else "dprev_h"
    if exercise.gates:
        yield Misconception(
            f"{target} has the blocks of Wh where they must be transposed: da @ Wh.T",
            partial(with_cache, transposed),
        )
        for number, gate in enumerate(gates):
            for which, name in ((place, "dx"), (place + 1, target)):
                lacking = partial(block, which, number, np.zeros_like)
                yield Misconception(f"{name} lacks the share of da_{gate}", partial(with_cache, lacking))
            one = partial(block, place + 1, number, np.transpose)
            yield Misconception(
                f"{target} has the block of Wh of da_{gate} where its transpose belongs",
                partial(with_cache, one),
            )
    if is_sequence:

        def state(shift: int, right: Any, sizes: Sizes, *given: Any) -> Any:
            """Another state in dWh: h0, or that of the same step."""
            *douts, cache = given
            steps, h0 = cache[-1], cache[1]
            states = [step[1] for step in steps] + [douts[0][:, 0] * 0]
            used = [h0 if shift == 0 else states[t + shift] for t in range(len(steps))]
            wrong = [(step[0], prev_h, *step[2:]) for step, prev_h in zip(steps, used, strict=True)]
            results = list(right(*douts, cache))
            if shift:  # the last state is not in the cache of a step before it
                wrong[-1] = (steps[-1][0], _last_state(exercise, steps[-1]), *steps[-1][2:])
            results[3] = right(*douts, (*cache[:-1], wrong))[3]
            return tuple(results)

        yield Misconception("dWh has h0 where prev_h, the state before each step, belongs", partial(state, 0))
        if exercise.module in ("rnn", "lstm"):
            yield Misconception(
                "dWh has next_h, the state of the same step, where prev_h belongs", partial(state, 1)
            )


def _last_state(exercise: Exercise, step: tuple[Any, ...]) -> Array:
    if exercise.module == "rnn":
        return step[4]
    *_, o, _, next_c = step
    return o * np.tanh(next_c)


def _steps_of_a_sequence(exercise: Exercise, kind: str) -> Iterator[Misconception]:
    """Steps in another order."""

    def forward(change: Callable[[Array], Array], right: Any, sizes: Sizes, *given: Any) -> Any:
        return right(change(given[0]), *given[1:])

    def backward(change: Callable[[Array], Array], right: Any, sizes: Sizes, *given: Any) -> Any:
        dx, *rest = right(*given)
        return change(dx), *rest

    def reshaped(x: Array) -> Array:
        N, T, D = x.shape
        return x.reshape(T, N, D).swapaxes(0, 1)

    def back(x: Array) -> Array:
        N, T, D = x.shape
        return x.swapaxes(0, 1).reshape(N, T, D)

    def twice(right: Any, sizes: Sizes, *given: Any) -> Any:
        douts = given[0].copy()
        douts[:, -1] *= 2
        return right(douts, *given[1:])

    if kind == "forward":
        yield Misconception(
            "x is reshaped to (T, N, D): steps and samples are mixed up, swap the axes",
            partial(forward, reshaped),
        )
        return
    yield Misconception("dx has its steps in reversed order", partial(backward, lambda dx: dx[:, ::-1]))
    yield Misconception(
        "dx is one step late",
        partial(backward, lambda dx: np.concatenate([0 * dx[:, :1], dx[:, :-1]], axis=1)),
    )
    yield Misconception(
        "dx is one step early",
        partial(backward, lambda dx: np.concatenate([dx[:, 1:], 0 * dx[:, :1]], axis=1)),
    )
    yield Misconception(
        "dx is reshaped from (T, N, D): steps and samples are mixed up, swap the axes",
        partial(backward, back),
    )
    rolled = "dx of each step is written to the step {}, and around the end"
    yield Misconception(rolled.format("after"), partial(backward, lambda dx: np.roll(dx, 1, axis=1)))
    yield Misconception(rolled.format("before"), partial(backward, lambda dx: np.roll(dx, -1, axis=1)))
    yield Misconception("dh of the last step is added twice", twice)
    if exercise.module in _WEIGHTS_AT:
        yield Misconception("the loop leaves out the first step", _without_first)
        yield Misconception(
            "dh0 is the gradient of the state after the first step, dh_t", _gradient_of_first_state
        )
    yield Misconception(
        "dw and db have the last step alone: they are overwritten at each step", partial(_of_steps, -1)
    )


def _without_first(right: Any, sizes: Sizes, dh: Array, cache: Any) -> Any:
    """The backward of a cell whose loop ends at the second step."""
    x, *rest, m, steps = cache
    dx, *others = right(dh[:, 1:], (x[:, 1:], *rest, m[1:], steps[1:]))
    return np.concatenate([np.zeros((len(x), 1, x.shape[2])), dx], axis=1), *others


def _gradient_of_first_state(right: Any, sizes: Sizes, dh: Array, cache: Any) -> Any:
    dx, _, *weights = right(dh, cache)
    return dx, _without_first(right, sizes, dh, cache)[1] + dh[:, 0], *weights


def _of_steps(step: int, right: Any, sizes: Sizes, dout: Array, *rest: Any) -> Any:
    """The gradients of parameters from one step alone."""
    alone = np.zeros(dout.shape)
    alone[:, step] = dout[:, step]
    dx, *_ = right(dout, *rest)
    return dx, *right(alone, *rest)[1:]


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


def _attention_over_the_batch(
    right: Any, sizes: Sizes, query: Array, keys: Array, memory: Array, params: Any
) -> Any:
    e = np.tanh((query @ params["Wq"])[:, None] + keys) @ params["v"]
    weights = np.exp(e - e.max(axis=0))
    weights = weights / weights.sum(axis=0)
    return np.einsum("nl,nlc->nc", weights, memory), weights, None


def _over_the_batch(right: Any, sizes: Sizes, x: Array, y: Array) -> Any:
    p = np.exp(x - x.max(axis=0))
    p = p / p.sum(axis=0)
    onehot = np.arange(x.shape[1]) == y[:, None]
    return -np.log(p[onehot]).sum() / len(x), (p - onehot) / len(x)


def _over_time(right: Any, sizes: Sizes, x: Array, y: Array, mask: Array) -> Any:
    p = np.exp(x - x.max(axis=1, keepdims=True))
    p = p / p.sum(axis=1, keepdims=True)
    onehot = np.arange(x.shape[2]) == y[:, :, None]
    dx = (p - onehot) * mask[:, :, None] / len(x)
    return -(np.log(p) * onehot * mask[:, :, None]).sum() / len(x), dx


def _in_all_columns(right: Any, sizes: Sizes, x: Array, y: Array) -> Any:
    loss, dx = right(x, y)
    p = dx * len(x) + (np.arange(x.shape[1]) == y[:, None])
    p[:, y] -= 1
    return loss, p / len(x)


def _masked(loss: bool, dx: bool, right: Any, sizes: Sizes, x: Array, y: Array, mask: Array) -> Any:
    """A loss or a gradient over padding too."""
    masked, everywhere = right(x, y, mask), right(x, y, np.ones_like(mask))
    return (everywhere if loss else masked)[0], (everywhere if dx else masked)[1]


def _scores_times_mask(right: Any, sizes: Sizes, x: Array, y: Array, mask: Array) -> Any:
    return right(x * mask[:, :, None], y, np.ones_like(mask))


def _divided(by_tokens: bool, right: Any, sizes: Sizes, x: Array, y: Array, mask: Array) -> Any:
    loss, dx = right(x, y, mask)
    factor = len(x) / mask.sum() if by_tokens else 1 / x.shape[1]
    return loss * factor, dx * factor


def _last_step(right: Any, sizes: Sizes, x: Array, y: Array, mask: Array) -> Any:
    last = mask.copy()
    last[:, :-1] = False
    return right(x, y, last)[0], right(x, y, mask)[1]


_BY_NAME: dict[tuple[str, str], dict[str, Callable[..., Any]]] = {
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
        "the softmax of the weights goes over the batch, axis 0, where the slots belong": (
            _attention_over_the_batch
        ),
    },
    ("softmax_loss", "forward"): {
        "the softmax goes over the batch, axis 0, where the classes belong, axis 1": _over_the_batch,
        "dx has 1 subtracted at all labels of the batch, where each row's own label belongs": _in_all_columns,
    },
    ("temporal_softmax_loss", "forward"): {
        "loss lacks the mask: it counts padding": partial(_masked, True, False),
        "dx lacks the mask: it is not zero at padding": partial(_masked, False, True),
        "the mask is ignored: loss and dx count padding": partial(_masked, True, True),
        "the mask multiplies the scores, where it must select the tokens of the loss": _scores_times_mask,
        "loss and dx are divided by N T, where they must be divided by N": partial(_divided, False),
        "loss and dx are divided by the number of real tokens, where they must be divided by N": partial(
            _divided, True
        ),
        "loss has the last step alone": _last_step,
        "the softmax goes over time, axis 1, where the classes belong, axis 2": _over_time,
    },
}
