"""Run a student's function on random inputs, and record all problems."""

from __future__ import annotations

import linecache
import re
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rnnlab.course.diagnosis import Results
from rnnlab.course.exercise import Draw, Exercise, WrongResults, copied, in_letters, shape_of
from rnnlab.gradcheck.side_effects import arrays_in
from rnnlab.types import Array

__all__ = ["FunctionStopped", "Runs", "costs_a_result", "raised"]
_SIDE_EFFECTS = _WRITES, _REMOVES, _ADDS = "writes into", "removes arrays from", "adds arrays to"
_REMEMBERS = "returns other numbers in a second call"


class FunctionStopped(Exception):
    """A function in another process has no result. The message says why: "has no result after 5 s"."""


class Runs:
    """The results of a function on random inputs, with all problems.

    Parameters
    ----------
    exercise : Exercise
    kind : "forward" or "backward"
    function : callable
    draws : sequence of Draw
        The inputs. After the first exception the function is not called again.
    caches : sequence, optional
        For a backward, the cache of each draw.

    Attributes
    ----------
    values : list of mapping of str to array
        The results of each draw by name, without those of a wrong shape.
    caches : list
        For a forward, the cache of each draw.
    problems : list of str
        Exceptions, wrong numbers of results, wrong shapes, changes of arguments and caches, results that
        depend on earlier calls or are changed by later ones.
    """

    def __init__(
        self,
        exercise: Exercise,
        kind: str,
        function: Callable[..., Any],
        draws: Sequence[Draw],
        caches: Sequence[Any] | None = None,
    ) -> None:
        self.exercise, self.kind, self.draws = exercise, kind, draws
        self.values: list[Results] = []
        self.caches: list[Any] = []
        self.problems: list[str] = []
        self._misfitting: set[str] = set()  # the results with a problem, of which only the first is recorded
        self.function = exercise.functions[0 if kind == "forward" else 1]
        for place, draw in enumerate(draws):
            cache = () if caches is None else (caches[place],)
            if not self._run(function, draw, cache):
                break

    @property
    def complete(self) -> bool:
        """Whether the function has returned on all draws."""
        return len(self.values) == len(self.draws)

    @property
    def fitting(self) -> bool:
        """Whether the function has returned on all draws, with finite results of the right shapes."""
        return all(map(self.fits, range(len(self.draws))))

    def fits(self, place: int) -> bool:
        """Whether the function has returned on a draw, with finite results of the right shapes."""
        return place < len(self.values) and {*self.values[place]} == {*self.exercise.results(self.kind)}

    def _run(self, function: Callable[..., Any], draw: Draw, cache: tuple[Any, ...]) -> bool:
        arguments, options = self._arguments(draw, cache), draw.options_of(self.kind)
        given = dict(zip(self.exercise.arguments(self.kind), arguments, strict=True)) | options
        before = _contents(given)
        misfits: list[tuple[str, str]] = []
        try:
            returned = function(*arguments, **options)
            found = self.exercise.named(self.kind, returned, misfits)
        except WrongResults as error:
            self._add(str(error), draw)
            return False
        except (Exception, SystemExit) as error:
            self._add(raised(self.function, error), draw)
            return False
        self._compare(before, _contents(given), draw)
        for name, problem in [*misfits, *self._misfits(found, draw)]:
            found.pop(name, None)
            if name not in self._misfitting:
                self._misfitting.add(name)
                self._add(problem, draw)
        if not (self.values or self.problems):
            self._repeat(function, draw, cache, returned, found)
        self.values.append(found)
        self.caches.append(returned[-1] if self.kind == "forward" and not self.exercise.is_loss else None)
        return True

    def _arguments(self, draw: Draw, cache: tuple[Any, ...], factor: float = 1.0) -> tuple[Any, ...]:
        """Copies of the arguments, without options; ``factor`` scales all floats but those of the cache."""
        given = draw.douts if cache else tuple(draw.inputs.values())
        return (*_scaled(given, factor), *cache)

    def _repeat(
        self, function: Callable[..., Any], draw: Draw, cache: tuple[Any, ...], returned: Any, found: Results
    ) -> None:
        """Call a function twice more: results must not depend on other calls.

        The first time it gets the same arguments, the second time others of the same shapes, with which it
        must not overwrite what it has returned.
        """
        options, kept = draw.options_of(self.kind), _contents({"result": returned})
        same = "cache" if cache else "arguments"
        try:
            results = function(*self._arguments(draw, cache), **options)
            again = self.exercise.named(self.kind, results, [])
        except (Exception, SystemExit) as error:
            twice = ": a cache may be used twice" if cache else ""
            self._add(f"{raised(self.function, error)}, in a second call with the same {same}{twice}", draw)
            return
        if not all(_same(again.get(name), array) for name, array in found.items()):
            changes = "change the cache, or keep" if cache else "keep"
            self._add(
                f"{self.function} {_REMEMBERS} with the same {same}: does it {changes} values between calls?",
                draw,
            )
            return
        try:
            function(*self._arguments(draw, cache, factor=0.5), **draw.options_of(self.kind))
        except (Exception, SystemExit):  # other draws show it
            return
        now = _contents({"result": returned})
        if any(name in now and not _same(now[name], array) for name, array in kept.items()):
            self._add(
                f"{self.function} {_WRITES} arrays that an earlier call has returned: make new arrays in "
                "each call",
                draw,
            )

    def _compare(self, before: dict[str, Array], after: dict[str, Array], draw: Draw) -> None:
        """Record the arguments that a call has changed, and the arrays that it has removed or added."""
        changes = [(_WRITES, name) for name, array in before.items() if _differs(after.get(name), array)]
        lost = [(_REMOVES, name) for name in before if name not in after]
        added = [(_ADDS, name) for name in after if name not in before and _owner(name) != "cache"]
        for verb, name in [*lost[:1], *added[:1], *changes]:
            owner = _owner(name)
            if owner == "cache":
                place = name if verb == _WRITES else f"its cache, such as {name}"
                advice = "a cache may be used twice"
            elif name == owner:
                place = f"its argument {name}, which is the caller's array"
                advice = f"{name} += ..., {name} *= ... and {name}[...] = ... do that; make a new array"
            else:
                place = f"its argument {owner}, such as {name}"
                advice = f"{owner} is the caller's; make a copy"
            self._add(f"{self.function} {verb} {place}: {advice}", draw)

    def _misfits(self, found: dict[str, Array], draw: Draw) -> list[tuple[str, str]]:
        """The results with a wrong shape or non-finite numbers, and a description of each problem."""
        misfits = []
        for name, axes in self.exercise.results(self.kind).items():
            if name not in found:
                continue
            array, shape = found[name], shape_of(axes, draw.sizes)
            if array.shape != shape:
                expected = f"{in_letters(axes)} = {shape}" if axes else "a number"
                shown = _in_sizes(array.shape, axes, self.exercise, draw)
                problem = f"{name} has shape {shown}, expected {expected}"
                hint = self._exchanged(name, found, draw) or _hint(array, shape, draw)
                misfits.append((name, f"{self.function}: {problem}{hint}"))
            elif not np.isfinite(array).all():
                hint = f"; {self.exercise.overflow}" if draw.overflows else ""
                misfits.append((name, f"{self.function}: {name} has NaN or infinite elements{hint}"))
        return misfits

    def _exchanged(self, name: str, found: dict[str, Array], draw: Draw) -> str:
        """The other result, if this one has its shape and the other way round; else ""."""
        shapes = {each: shape_of(axes, draw.sizes) for each, axes in self.exercise.results(self.kind).items()}
        for other, shape in shapes.items():
            if other in found and (found[name].shape, found[other].shape) == (shape, shapes[name]):
                return f": it is exchanged with {other}, look at the order of the results"
        return ""

    def _add(self, problem: str, draw: Draw) -> None:
        """Record a problem unless it differs from an earlier one only in its sizes."""
        text = _without_numbers(problem)
        if not any(_without_numbers(each).startswith(text) for each in self.problems):
            self.problems.append(f"{problem} ({draw.note})" if draw.note else problem)


def _same(again: Array | None, array: Array) -> bool:
    """Whether two results are equal up to rounding, which may depend on the place of arrays in memory."""
    if again is None or again.shape != array.shape:
        return False
    return np.allclose(again, array, rtol=1e-9, atol=1e-12, equal_nan=True)


def costs_a_result(problem: str) -> bool:
    """Whether a problem costs the points of one result, although the results may be right.

    An exception in a second call costs nothing: it may be due to the surroundings, such as a time limit.
    """
    return any(words in problem for words in (*_SIDE_EFFECTS, _REMEMBERS))


def _without_numbers(problem: str) -> str:
    return re.sub(r"\d+", "", problem)


def _contents(given: Mapping[str, Any]) -> dict[str, Array]:
    """Copies of all arrays in some values, by name: x, params['b'], cache[0], cache.next_h."""
    found: dict[str, Array] = {}
    for name, value in given.items():
        if isinstance(value, Mapping):  # an array may have several keys
            found |= _contents({f"{name}[{key!r}]": each for key, each in value.items()})
            continue
        for path, array in arrays_in(value):
            dot = "" if path[:1] in ("", "[") else "."
            found[f"{name}{dot}{path}"] = array.copy()
    return found


def _owner(name: str) -> str:
    """The argument that holds an array of :func:`_contents`."""
    return re.split(r"[.\[]", name, maxsplit=1)[0]


def _differs(now: Array | None, before: Array) -> bool:
    return now is not None and not np.array_equal(now, before, equal_nan=True)


def _scaled(value: Any, factor: float) -> Any:
    """A copy with all arrays of floats multiplied by a factor."""
    if isinstance(value, Mapping):
        return {key: _scaled(each, factor) for key, each in value.items()}
    if isinstance(value, tuple):
        return tuple(_scaled(each, factor) for each in value)
    return factor * value if isinstance(value, np.ndarray) and value.dtype.kind == "f" else copied(value)


def raised(function: str, error: Exception | SystemExit) -> str:
    """An exception, with the line of the student's code that raised it."""
    if isinstance(error, FunctionStopped):
        return f"{function} {error}"
    here = str(Path(__file__).parent)
    frames = [
        each for each in traceback.extract_tb(error.__traceback__) if not each.filename.startswith(here)
    ]
    if isinstance(error, NotImplementedError):
        missing = frames[-1].name if frames else ""
        if missing.isidentifier() and missing != function.rpartition(".")[2]:
            return f"{function} calls {missing}, which is not implemented yet"
        return f"{function} is not implemented yet"
    own = [each for each in frames if "site-packages" not in each.filename] or frames
    place = ""
    if own:
        last = own[-1]
        line = (last.line or linecache.getline(last.filename, last.lineno or 0)).strip()
        where = f" of {last.name}" if last.name.isidentifier() and not function.endswith(last.name) else ""
        place = f", in line {last.lineno}{where}: {line}"
    return f"{function} raises {type(error).__name__}: {error}{place}"


def _in_sizes(shape: tuple[int, ...], axes: str, exercise: Exercise, draw: Draw) -> str:
    """A shape in numbers and in letters, if letters match, preferably those of the expected axes."""
    drawn = [letter for letter in draw.sizes if letter not in exercise.sizes]
    letters = {draw.sizes[letter]: letter for letter in (*exercise.sizes, *drawn)}
    letters |= {shape_of(axis, draw.sizes)[0]: axis for axis in axes.split()}
    N, T = draw.sizes.get("N"), draw.sizes.get("T")
    if N and T:
        letters.setdefault(N * T, "NT")
    letters |= {
        factor * size: f"{factor}{letter}"
        for letter, size in draw.sizes.items()
        for factor in (2, 3, 4)
        if factor * size not in letters and letter in "HR"
    }
    if shape and all(size in letters for size in shape):
        return f"{in_letters(' '.join(letters[size] for size in shape))} = {shape}"
    return str(shape)


def _hint(array: Array, shape: tuple[int, ...], draw: Draw) -> str:
    """A possible cause of a wrong shape."""
    if array.ndim == len(shape) and array.T.shape == shape:
        return ": it is transposed"
    if array.squeeze().shape == shape:
        return ": it has an axis of size 1 too many, as from keepdims=True"
    for axis, size in enumerate(array.shape):
        if np.delete(array.shape, axis).tolist() == list(shape):
            return f": it is not summed over {_axis_name(axis, size, draw)}"
    if sorted(array.shape) == sorted(shape):
        return ": its axes are in another order, see np.transpose"
    if array.size == np.prod(shape):
        return ": it has the correct number of elements, reshape it"
    if array.ndim == len(shape) == 1:
        return ": is it summed over the wrong axis?"
    return ""


def _axis_name(axis: int, size: int, draw: Draw) -> str:
    """The name of an axis, derived from its size."""
    names = {draw.sizes.get("N"): "the batch", draw.sizes.get("T"): "time"}
    return names.get(size, f"axis {axis}")
