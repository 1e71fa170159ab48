"""The wrong versions of a correct function: every compiled edit of its source, or of functions it calls."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from rnnlab.course.edits import ALPHA, Edit, Source, edits
from rnnlab.course.exercise import Draw, Drawn, Exercise, Sizes, copied
from rnnlab.course.exercises import EXERCISES
from rnnlab.course.glossary import title_of, worded
from rnnlab.course.misconceptions import misconceptions
from rnnlab.course.ownership import set_profiler
from rnnlab.course.plain_source import definition_of

__all__ = ["Variant", "variants"]


class Variant(NamedTuple):
    """A version of a function with one mistake."""

    message: str
    function: Callable[..., Any]  # takes the sizes of the inputs, then the arguments of the correct function
    rank: int  # among variants with the same results, the one with the lowest rank is named first


def variants(exercise: Exercise, function: Callable[..., Any], draw: Draw) -> Iterator[Variant]:
    """All versions of a correct function with one mistake, in it or in functions of rnnlab.plain it calls.

    Parameters
    ----------
    exercise : Exercise
    function : callable
        Its correct forward or backward.
    draw : Draw
        Inputs with which the shapes of local variables are determined.
    """
    kind = "forward" if function is exercise.forward else "backward"
    square = "T" in draw.sizes and draw.sizes["N"] == draw.sizes["T"]
    for message, wrong in misconceptions(exercise, kind, square=square):
        yield Variant(message, partial(wrong, function), 0)
    reached = _reached(function)
    shapes = _shapes_of_locals(exercise, [each.__code__ for each in reached], draw)
    for place, each in enumerate(reached):
        definition, module = definition_of(each), each.__module__.rpartition(".")[2]
        source, found = Source(definition), shapes.get(each.__code__, {})

        def alike(name: str, found: Mapping[str, tuple[int, ...]] = found) -> list[str]:
            return [other for other in found if name in found and found[other] == found[name]]

        for edit in edits(definition, _results_of(each, exercise), alike):
            made = _bound(reached, place, source.compiled(edit))
            where = "" if each is function else f", in {title_of(each.__name__)}"
            for message, alpha, rank in _messages(edit, exercise):
                run = partial(_run, made[0], made[place].__globals__, alpha)
                yield Variant(worded(message, module) + where, run, rank + 2 * edit.inner + 10 * place)


def _run(
    function: Callable[..., Any], namespace: dict[str, Any], alpha: Alpha, sizes: Sizes, *arguments: Any
) -> Any:
    """Run a version with the factor of its scaled term for these sizes."""
    namespace[ALPHA] = alpha(sizes)
    return function(*arguments)


# ---------------------------------------------------------------- the functions


def _reached(function: Callable[..., Any]) -> list[FunctionType]:
    """The function and the functions of rnnlab.plain that it calls, directly or indirectly."""
    found: list[FunctionType] = []
    waiting: list[Any] = [function]
    while waiting:
        each = waiting.pop(0)
        if not isinstance(each, FunctionType) or each in found:
            continue
        if each.__module__.startswith("rnnlab.plain") and each.__name__ not in ("real_steps", "sigmoid"):
            found.append(each)
            waiting += [each.__globals__.get(name) for name in each.__code__.co_names]
    return found


def _bound(reached: Sequence[FunctionType], place: int, code: Any) -> list[FunctionType]:
    """Copies of the functions that call each other, one of them with different code."""
    spaces = {each.__module__: dict(each.__globals__) for each in reached}
    exec(code, spaces[reached[place].__module__])
    edited = spaces[reached[place].__module__][reached[place].__name__]
    copies = []
    for each in reached:
        made = edited if each is reached[place] else _copied(each, spaces[each.__module__])
        copies.append(made)
    for each, made in zip(reached, copies, strict=True):
        for space in spaces.values():
            if space.get(each.__name__) is each or space is spaces[each.__module__]:
                space[each.__name__] = made
    return copies


def _copied(function: FunctionType, namespace: dict[str, Any]) -> FunctionType:
    made = FunctionType(function.__code__, namespace, function.__name__, function.__defaults__)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def _results_of(function: FunctionType, exercise: Exercise) -> Callable[[int], str]:
    """The names of a function's results, by position."""
    name = function.__name__
    of = EXERCISES.get(name.removesuffix("_forward").removesuffix("_backward"), exercise)
    if name.endswith("_backward"):
        names = [f"d{key}" for key, spec in of.inputs.items() if not isinstance(spec, Drawn)]
    else:
        names = [*of.outs, *([*of.gradients] if of.is_loss else ["the cache"])]
    return lambda place: names[place] if place < len(names) else f"result {place + 1} of {name}"


def _shapes_of_locals(
    exercise: Exercise, codes: Sequence[Any], draw: Draw
) -> dict[Any, dict[str, tuple[int, ...]]]:
    """The shapes of the functions' local arrays, from a run of the right versions."""
    found: dict[Any, dict[str, tuple[int, ...]]] = {}

    def look(frame: Any, event: str, _: Any) -> None:
        if event == "return" and frame.f_code in codes:
            shapes = found.setdefault(frame.f_code, {})
            for name, value in frame.f_locals.items():
                if isinstance(value, np.ndarray):
                    shapes[name] = value.shape

    previous = sys.getprofile()
    sys.setprofile(look)
    try:
        results = exercise.forward(**copied(draw.inputs))
        if exercise.backward is not None:
            exercise.backward(*draw.douts, results[-1])
    finally:
        set_profiler(previous)
    return found


# ---------------------------------------------------------------- messages


Alpha = Callable[[Sizes], float]  # the factor of a term
_LETTERS = ("N", "T", "V", "L")


def _messages(edit: Edit, exercise: Exercise) -> Iterator[tuple[str, Alpha, int]]:
    """The message of an edit; for a scaled term, each factor with its message."""
    if not edit.scaled:
        unlikely = " where " in edit.message or "extra term" in edit.message
        yield edit.message, _constant(1.0), 3 if unlikely else 1
        return
    of = "" if edit.scaled == edit.target else f"the term {edit.scaled} of "
    subject = f"{of}{edit.target}"
    is_result = edit.target in exercise.results("forward") | exercise.gradients
    yield edit.message, _constant(0.0), 0 if of else 2
    yield f"{subject} has the wrong sign", _constant(-1.0), 0 if is_result else 1
    yield f"{subject} is counted twice" if of else f"{subject} is twice what it should be", _constant(2.0), 2
    yield f"{subject} is half of what it should be", _constant(0.5), 2
    known = [letter for letter in _LETTERS if letter in exercise.letters]
    for letters in [*known, *(["NT"] if {"N", "T"} <= {*known} else [])]:
        product = " ".join(letters)
        yield f"{subject} is multiplied by {product}", partial(_product, letters, 1), 2
        averaged = f"{subject} is divided by {product}: it is averaged where a sum belongs"
        yield averaged, partial(_product, letters, -1), 2


def _constant(alpha: float) -> Alpha:
    return lambda sizes: alpha


def _product(letters: str, power: int, sizes: Sizes) -> float:
    return float(np.prod([sizes[letter] for letter in letters])) ** power
