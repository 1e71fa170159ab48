"""Mistakes that are not a single edit of the correct function, as functions with a student's wrong results.

They take the correct function, the sizes of its inputs, and its arguments. This module has those of recurrent
cells and of sequences; :mod:`rnnlab.course.named_misconceptions` those of single exercises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from rnnlab.course.exercise import Exercise, Sizes
from rnnlab.course.named_misconceptions import BY_NAME
from rnnlab.types import Array

__all__ = ["Misconception", "misconceptions"]


class Misconception(NamedTuple):
    """A mistake, and the function that computes its results."""

    message: str
    function: Callable[..., Any]  # (correct function, sizes, *its arguments)


def misconceptions(exercise: Exercise, kind: str, *, square: bool = False) -> Iterator[Misconception]:
    """The misconceptions of an exercise's forward or backward; ``square`` for inputs with equal sizes."""
    for message, function in BY_NAME.get((exercise.name, kind), {}).items():
        yield Misconception(message, function)
    if exercise.gates and kind == "forward":
        yield from _gates_of_a_forward(exercise)
    if exercise.module in _WEIGHTS_AT and kind == "backward":
        yield from _weights_of_a_backward(exercise)
    if "z" in exercise.gates:
        exchanged = _exchanged_forward if kind == "forward" else _exchanged_backward
        message = "z and 1 - z are exchanged, expected next_h = (1 - z) * g + z * prev_h"
        yield Misconception(message, partial(exchanged, len(exercise.gates)))
    if exercise.inputs.get("x") == "N T D":
        yield from _steps_of_a_sequence(exercise, kind, _SWAPPED if square else _RESHAPED)


# ---------------------------------------------------------------- recurrent cells

_WEIGHTS_AT = {"rnn": 2, "lstm": 3, "gru": 2, "simplified_gru": 2}  # Wx in the cache of a step, then Wh


def _gates_of_a_forward(exercise: Exercise) -> Iterator[Misconception]:
    """Blocks of weights and biases that are swapped, interleaved, missing or transposed."""
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
        yield Misconception(
            f"1 is added to the bias of a_{gate}",
            partial(with_weights, partial(changed, "b", place, lambda block: block + 1)),
        )
        transposed = partial(changed, "Wh", place, np.transpose)
        yield Misconception(f"a_{gate} has the block of Wh transposed", partial(with_weights, transposed))

    def all_transposed(name: str, array: Array) -> Array:
        blocks = np.split(array, len(gates), axis=-1)
        return np.concatenate([block.T for block in blocks], axis=-1) if name == "Wh" else array

    yield Misconception("the blocks of Wh are transposed", partial(with_weights, all_transposed))


def _weights_of_a_backward(exercise: Exercise) -> Iterator[Misconception]:
    """Blocks that are missing or transposed in the weights that map da to dx and dprev_h."""
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
            """A wrong state in dWh: h0, or the state of the same step."""
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


def _of_1_minus_z(gates: int, array: Array) -> Array:
    """A weight or bias with the opposite sign in the first block, z's: sigmoid(-a) is 1 - sigmoid(a)."""
    first, *others = np.split(array, gates, axis=-1)
    return np.concatenate([-first, *others], axis=-1)


def _exchanged_forward(gates: int, right: Any, sizes: Sizes, x: Array, h: Array, *weights: Array) -> Any:
    """next_h = z * g + (1 - z) * prev_h."""
    return right(x, h, *(_of_1_minus_z(gates, each) for each in weights))


def _exchanged_backward(gates: int, right: Any, sizes: Sizes, dh: Array, cache: Any) -> Any:
    """The gradients of :func:`_exchanged_forward`, from a cache of the correct forward."""

    def exchanged(step: tuple[Any, ...]) -> tuple[Any, ...]:
        x, h, Wx, Wh, z, *rest = step
        return x, h, _of_1_minus_z(gates, Wx), _of_1_minus_z(gates, Wh), 1 - z, *rest

    is_sequence = isinstance(cache[-1], list)
    changed = (*cache[:-1], [*map(exchanged, cache[-1])]) if is_sequence else exchanged(cache)
    dx, dprev_h, *weights = right(dh, changed)
    return dx, dprev_h, *(_of_1_minus_z(gates, each) for each in weights)


def _last_state(exercise: Exercise, step: tuple[Any, ...]) -> Array:
    if exercise.module == "rnn":
        return step[4]
    *_, o, _, next_c = step
    return o * np.tanh(next_c)


def _steps_of_a_sequence(exercise: Exercise, kind: str, reshaped: str) -> Iterator[Misconception]:
    """Steps in the wrong order, or shifted by one."""
    is_cell = exercise.module in _WEIGHTS_AT
    (out,) = exercise.outs
    result = out if kind == "forward" else "dx"
    given = "x" if kind == "forward" else f"d{out}"

    yield Misconception(reshaped.format(f"{given} is"), partial(_changed, _reshaped, None))
    yield Misconception(reshaped.format(f"{result} is"), partial(_changed, None, _reshaped_back))
    if is_cell:  # for a map that treats steps separately, the two errors cancel
        both = partial(_changed, _reshaped, _reshaped_back)
        yield Misconception(reshaped.format(f"{given} and {result} are"), both)
    if kind == "forward":
        if is_cell:
            yield Misconception(
                "h[:, t] is the state before step t, where the state after it belongs", _stored_early
            )
            yield Misconception(
                "the loop ends before the last step: h[:, -1] is zero", partial(_changed, None, _without_last)
            )
            message = "the loop goes backward in time, expected from the first step to the last"
            yield Misconception(message, partial(_changed, _reversed, _reversed))
        if exercise.module == "lstm":
            for stored, subject in ((1, "next_h and next_c"), (0, "prev_h and prev_c")):
                message = (
                    f"{subject} are exchanged at each step: lstm_step_forward returns next_h, then next_c"
                )
                yield Misconception(message, partial(_states_exchanged, exercise, stored))
        return
    yield Misconception("dx has its steps in reversed order", partial(_changed, None, _reversed))
    yield Misconception("dx is one step late", partial(_changed, None, partial(_shifted, 1)))
    yield Misconception("dx is one step early", partial(_changed, None, partial(_shifted, -1)))
    rolled = "dx of each step is written to the step {}, and around the end"
    yield Misconception(rolled.format("after"), partial(_changed, None, partial(np.roll, shift=1, axis=1)))
    yield Misconception(rolled.format("before"), partial(_changed, None, partial(np.roll, shift=-1, axis=1)))
    for shift, place in ((-1, "t + 1"), (1, "t - 1")):
        message = f"{given}[:, {place}] is read where {given}[:, t] belongs"
        yield Misconception(message, partial(_changed, partial(_shifted, shift), None))
        around = partial(np.roll, shift=shift, axis=1)
        yield Misconception(f"{message}, and around the end", partial(_changed, around, None))
    yield Misconception(f"{given} of the last step is added twice", partial(_changed, _with_last_twice, None))
    yield Misconception(
        f"{_names(exercise)} have the last step alone: they are overwritten at each step",
        partial(_of_steps, -1, None),
    )
    if not is_cell:
        for name, axes in exercise.gradients.items():
            if "N" not in axes.split():
                message = f"{name} has the last step alone: it is overwritten at each step"
                yield Misconception(message, partial(_of_steps, -1, [*exercise.gradients].index(name)))
    if is_cell:
        message = "dh of the earlier steps is left out: only that of the last step is used"
        yield Misconception(message, partial(_changed, _last_alone, None))
        yield Misconception("the loop leaves out the first step", _without_first)
        message = "the loop leaves out the last step"
        yield Misconception(message, partial(_changed, _without_last, None))
        for name, step in {"first": 0, "last": -1}.items():
            message = f"the cache of the {name} step is read at every step"
            yield Misconception(message, partial(_with_one_cache, step))
        yield Misconception(
            "dh0 is the gradient of the state after the first step, dh_t", _gradient_of_first_state
        )
        yield from _orders_of_a_loop()
        yield from _carried_gradients(exercise)


_Change = Callable[[Array], Array]  # of an array (N, T, D)
_RESHAPED = "{} reshaped where the axes N and T must be swapped: steps and samples are mixed up"
_SWAPPED = "{} in the order (T, N, D), expected (N, T, D): [t] selects a sample, [:, t] selects a step"


def _changed(before: _Change | None, after: _Change | None, right: Any, sizes: Sizes, *given: Any) -> Any:
    """The correct function with a changed first argument, or a changed first result."""
    first, *rest = right(given[0] if before is None else before(given[0]), *given[1:])
    return first if after is None else after(first), *rest


def _names(exercise: Exercise) -> str:
    """The gradients of the weights."""
    *names, last = [name for name, axes in exercise.gradients.items() if "N" not in axes.split()]
    return f"{', '.join(names)} and {last}"


def _reshaped(x: Array) -> Array:
    N, T, D = x.shape
    return x.reshape(T, N, D).swapaxes(0, 1)


def _reshaped_back(x: Array) -> Array:
    return x.swapaxes(0, 1).reshape(x.shape)


def _reversed(x: Array) -> Array:
    return x[:, ::-1]


def _shifted(steps: int, x: Array) -> Array:
    """Each step at a later position, or at an earlier one, with zeros in the gap."""
    moved = np.roll(x, steps, axis=1)
    moved[:, 0 if steps > 0 else -1] = 0
    return moved


def _with_last_twice(dout: Array) -> Array:
    return np.concatenate([dout[:, :-1], 2 * dout[:, -1:]], axis=1)


def _last_alone(dout: Array) -> Array:
    return np.concatenate([0 * dout[:, :-1], dout[:, -1:]], axis=1)


def _without_last(x: Array) -> Array:
    return np.concatenate([x[:, :-1], 0 * x[:, -1:]], axis=1)


def _with_one_cache(step: int, right: Any, sizes: Sizes, dh: Array, cache: Any) -> Any:
    return right(dh, (*cache[:-1], [cache[-1][step]] * len(cache[-1])))


def _states_exchanged(
    exercise: Exercise, stored: int, right: Any, sizes: Sizes, x: Array, h0: Array, *weights: Array
) -> Any:
    """An LSTM whose loop reads the results of a step as c, h; ``stored`` is the place of those in h."""
    prev_h, prev_c, h = h0, np.zeros(h0.shape), []
    for t in range(x.shape[1]):
        prev_c, prev_h, _ = step = exercise.plain.lstm_step_forward(x[:, t], prev_h, prev_c, *weights)
        h.append(step[stored])
    return np.stack(h, axis=1), None


def _stored_early(right: Any, sizes: Sizes, x: Array, h0: Array, *weights: Array) -> Any:
    h, cache = right(x, h0, *weights)
    return np.concatenate([h0[:, None], h[:, :-1]], axis=1), cache


def _orders_of_a_loop() -> Iterator[Misconception]:
    """Loops that go through dh, the caches and dx in different orders."""

    def with_caches(right: Any, dh: Array, cache: Any) -> Any:
        return right(dh, (*cache[:-1], cache[-1][::-1]))

    def loop(before: _Change | None, after: _Change | None, right: Any, *args: Any) -> Any:
        return _changed(before, after, partial(with_caches, right), *args)

    order = "{} read in the order of time, where the loop goes from the last step to the first"
    yield Misconception(order.format("the caches are"), partial(loop, None, None))
    yield Misconception(order.format("dh is"), partial(_changed, _reversed, None))
    yield Misconception(order.format("dh and the caches are"), partial(loop, _reversed, None))
    opposite = "the loop goes forward in time in {}, where it must go from the last step to the first"
    yield Misconception(opposite.format("dh and dx"), partial(_changed, _reversed, _reversed))
    yield Misconception(opposite.format("the caches and dx"), partial(loop, None, _reversed))


def _carried_gradients(exercise: Exercise) -> Iterator[Misconception]:
    """Gradients passed to the previous step: summed instead of replaced, or with a wrong initial value."""
    sums: dict[str, tuple[str, ...]] = {"dprev_h is": ("h",)}
    if exercise.module == "lstm":
        sums |= {"dprev_c is": ("c",), "dprev_h and dprev_c are": ("h", "c")}
        yield Misconception(
            "dc starts at dh[:, -1] where zeros belong: no later step reads the last cell state",
            partial(_carried, exercise, (), first_c=lambda dh: dh[:, -1]),
        )
        yield Misconception(
            "dprev_h and dprev_c are exchanged at the steps before the last",
            partial(_carried, exercise, (), exchanged=True),
        )
    for subject, added in sums.items():
        message = f"{subject} added to at each step where the value of the step must replace the old one"
        yield Misconception(message, partial(_carried, exercise, added))
        if "h" in added:
            yield Misconception(f"{message}, dh[:, t] included", partial(_carried, exercise, (*added, "dh")))


def _carried(
    exercise: Exercise,
    added: tuple[str, ...],
    right: Any,
    sizes: Sizes,
    dh: Array,
    cache: Any,
    first_c: _Change = lambda dh: 0 * dh[:, -1],
    exchanged: bool = False,
) -> Any:
    """The backward of a cell that adds to gradients that it should replace, or exchanges them."""
    step_backward = getattr(exercise.plain, f"{exercise.name}_step_backward")
    dx, dstate = np.zeros(cache[0].shape), {"h": np.zeros(cache[1].shape)}
    if exercise.module == "lstm":
        dstate["c"] = first_c(dh)
    weights: list[Any] = [0, 0, 0]
    for t in reversed(range(dh.shape[1])):
        total = dstate | {"h": dstate["h"] + dh[:, t]}
        dx[:, t], *found = step_backward(*total.values(), cache[-1][t])
        if exchanged:
            found[:2] = found[1::-1]
        old = total if "dh" in added else dstate
        dstate = {
            name: old[name] + new if name in added else new for name, new in zip(dstate, found, strict=False)
        }
        weights = [one + other for one, other in zip(weights, found[len(dstate) :], strict=True)]
    return dx, dstate["h"], *weights


def _without_first(right: Any, sizes: Sizes, dh: Array, cache: Any) -> Any:
    """The backward of a cell whose loop ends at the second step."""
    x, *rest, m, steps = cache
    dx, *others = right(dh[:, 1:], (x[:, 1:], *rest, m[1:], steps[1:]))
    return np.concatenate([np.zeros((len(x), 1, x.shape[2])), dx], axis=1), *others


def _gradient_of_first_state(right: Any, sizes: Sizes, dh: Array, cache: Any) -> Any:
    dx, _, *weights = right(dh, cache)
    return dx, _without_first(right, sizes, dh, cache)[1] + dh[:, 0], *weights


def _of_steps(step: int, place: int | None, right: Any, sizes: Sizes, dout: Array, *rest: Any) -> Any:
    """The gradients of the parameters from one step only, or the one at a place among the results."""
    alone = np.zeros(dout.shape)
    alone[:, step] = dout[:, step]
    results, of_step = list(right(dout, *rest)), right(alone, *rest)
    for each in range(1, len(results)) if place is None else [place]:
        results[each] = of_step[each]
    return tuple(results)
