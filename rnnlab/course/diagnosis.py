"""Name the mistake in a student's function from the numbers that it returns.

The results of every version of the correct function with a single mistake (:mod:`rnnlab.course.variants`)
are computed once, on fixed random inputs. The difference between a student's results and the correct ones is
compared with the difference of each version. Two mistakes at once are found as the sum of two differences,
which is exact if they do not act on the same path. Versions that give the same numbers are ties, and all of
them are named.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from rnnlab.course.exercise import Draw, Exercise, copied
from rnnlab.course.exercises import EXERCISES
from rnnlab.course.variants import variants
from rnnlab.types import Array

__all__ = ["Diagnosis", "Results", "diagnose", "draws_of"]

Results = Mapping[str, Array]  # results of one draw, by name
_CLOSE = 1e-6  # relative distance of an explanation; wrong explanations of random numbers are far above it


class Diagnosis(NamedTuple):
    """An explanation of wrong results.

    Attributes
    ----------
    mistakes : tuple of tuples of str
        Each mistake by its possible names, the most likely one first. All of them give the same results.
    notes : tuple of str
        Remarks on each wrong result for which no explanation was found.
    """

    mistakes: tuple[tuple[str, ...], ...] = ()
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = []
        for first, *others in map(_without_repeats, self.mistakes):
            lines.append(f"{first}.")
            if others:
                shown = "; or ".join(others[:3])
                more = f"; and {len(others) - 3} more" if len(others) > 3 else ""
                lines.append(f"    The same numbers come from: {shown}{more}.")
        return "\n".join([*lines, *(note if note.endswith("?") else f"{note}." for note in self.notes)])


def _without_repeats(names: Sequence[str]) -> list[str]:
    """The names of a mistake without those that only say where in the function another one is."""
    kept: list[str] = []
    for name in names:
        if not any(name.startswith(each) for each in kept):
            kept.append(name)
    return kept


def draws_of(exercise: Exercise, *, square: bool = False) -> tuple[Draw, ...]:
    """The inputs on which functions are compared for a diagnosis; they are always the same."""
    return tuple(exercise.draw(np.random.default_rng([7, place]), square=square) for place in range(2))


def diagnose(
    exercise: Exercise,
    kind: str,
    found: Sequence[Results],
    right: Sequence[Results],
    *,
    square: bool = False,
) -> Diagnosis:
    """Explain the difference between a student's results and the correct ones.

    Parameters
    ----------
    exercise : Exercise
    kind : "forward" or "backward"
        The function that computes them.
    found, right : sequence of mappings of str to array
        The student's results and the correct ones, for each of :func:`draws_of`. Results that ``found``
        lacks, because their shape is wrong, are ignored.
    square : bool
        Whether the results belong to the draws with equal sizes.
    """
    known = _known(exercise.name, kind, square)
    pieces = [np.arange(part.start, part.stop) for part in known.parts if part.name in found[0]]
    kept = np.concatenate(pieces)
    residual = known.difference(found, right)
    if np.linalg.norm(residual[kept]) < _CLOSE:
        return Diagnosis(notes=("The results are right on some inputs and wrong on others",))
    for count in (1, 2):
        if explanation := known.explain(residual, kept, count):
            return Diagnosis(explanation)
    return _piecewise(exercise, known, residual, found, right)


def _scale(name: str, right: Sequence[Results]) -> float:
    return max(float(np.sqrt(sum((each[name] ** 2).sum() for each in right))), 1e-12)


# ---------------------------------------------------------------- what is known of an exercise


class _Part(NamedTuple):
    """The elements of one result, or of one gate's block of it, in the vector of all results."""

    name: str
    gate: str
    start: int
    stop: int


class _Known(NamedTuple):
    """The distinct differences of the versions with a mistake, and their messages."""

    parts: tuple[_Part, ...]
    gates: int  # the number of blocks in the last axis of the results that have gates
    scales: Mapping[str, float]  # the sizes of the correct results
    residuals: Array = np.zeros((0, 0))  # (number, size)
    messages: tuple[tuple[str, ...], ...] = ()
    ranks: Array = np.zeros(0)  # (number,)

    def difference(self, found: Sequence[Results], right: Sequence[Results]) -> Array:
        """The differences of all results of all draws as one vector, relative to the correct ones' sizes."""
        pieces = []
        for one, other in zip(found, right, strict=True):
            for name, scale in self.scales.items():
                difference = (one.get(name, other[name]) - other[name]) / scale
                count = self.gates if _has_gates(name, self.gates) else 0
                blocks = np.split(difference, count, axis=-1) if count else [difference]
                pieces += [block.ravel() for block in blocks]
        return np.concatenate(pieces)

    def explain(self, residual: Array, kept: Array, count: int) -> tuple[tuple[str, ...], ...]:
        """The one or two mistakes whose differences add up to this one; empty if there are none."""
        residual, known = residual[kept], self.residuals[:, kept]
        limit = _CLOSE * np.linalg.norm(residual)
        rest = residual - known
        if count == 1:
            return self._named(np.linalg.norm(rest, axis=1) < limit)
        squares = (rest**2).sum(axis=1)[:, None] + (known**2).sum(axis=1) - 2 * rest @ known.T
        close = np.argwhere(squares < 1e-6 * (residual @ residual))
        pairs = [
            (self.ranks[a] + self.ranks[b], a, b)
            for a, b in close
            if a < b and np.linalg.norm(rest[a] - known[b]) < limit
        ]
        return tuple(self.messages[each] for each in min(pairs)[1:]) if pairs else ()

    def _named(self, fitting: Array) -> tuple[tuple[str, ...], ...]:
        """One mistake, with the names of all matching versions."""
        places = sorted(np.flatnonzero(fitting), key=lambda place: self.ranks[place])
        return (tuple(name for place in places for name in self.messages[place]),) if places else ()


def _has_gates(name: str, gates: int) -> bool:
    return gates > 1 and name in ("dWx", "dWh", "db")


@functools.cache
def _known(name: str, kind: str, square: bool) -> _Known:
    exercise = EXERCISES[name]
    function = exercise.forward if kind == "forward" else exercise.backward
    assert function is not None
    draws = draws_of(exercise, square=square)
    calls = [_arguments(exercise, kind, draw) for draw in draws]
    right = [exercise.named(kind, function(*copied(call))) for call in calls]
    gates = len(exercise.gates)
    parts, stop = [], 0
    for one in right:
        for result, array in one.items():
            names = exercise.gates if _has_gates(result, gates) else ("",)
            for gate in names:
                start, stop = stop, stop + array.size // len(names)
                parts.append(_Part(result, gate, start, stop))
    known = _Known(tuple(parts), gates, {each: _scale(each, right) for each in right[0]})
    found = []
    for variant in variants(exercise, function, draws[0]):
        results = _results(exercise, kind, variant.function, draws, calls, right)
        if results is not None:
            residual = known.difference(results, right)
            if np.linalg.norm(residual) > _CLOSE:
                found.append((residual, variant.rank, variant.message))
    return _grouped(known, found, stop)


def _arguments(exercise: Exercise, kind: str, draw: Draw) -> tuple[Any, ...]:
    """The arguments of the correct function."""
    if kind == "forward":
        return tuple(draw.inputs.values())
    return (*draw.douts, exercise.forward(*copied(tuple(draw.inputs.values())))[-1])


def _results(
    exercise: Exercise,
    kind: str,
    function: Callable[..., Any],
    draws: Sequence[Draw],
    calls: Sequence[tuple[Any, ...]],
    right: Sequence[Results],
) -> list[Results] | None:
    """The results of a version on all draws; None if it fails, or a shape is wrong or a number not finite."""
    made: list[Results] = []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for draw, call, expected in zip(draws, calls, right, strict=True):
            try:
                results = exercise.named(kind, function(draw.sizes, *copied(call)))
            except Exception:  # a version with a mistake may raise anything
                return None
            for name, array in expected.items():
                if results[name].shape != array.shape or not np.isfinite(results[name]).all():
                    return None
            made.append(results)
    return made


def _grouped(known: _Known, found: Sequence[tuple[Array, int, str]], size: int) -> _Known:
    """The known differences, with one entry for all versions that have the same results."""
    residuals: list[Array] = []
    members: list[list[tuple[int, str]]] = []
    lookup: dict[int, list[int]] = {}
    direction = np.random.default_rng(0).standard_normal(size)
    for residual, rank, message in found:
        key = round(float(residual @ direction) / (_CLOSE * 10))
        for place in [*lookup.get(key, ()), *lookup.get(key - 1, ()), *lookup.get(key + 1, ())]:
            if np.linalg.norm(residual - residuals[place]) < _CLOSE:
                members[place].append((rank, message))
                break
        else:
            lookup.setdefault(key, []).append(len(residuals))
            residuals.append(residual)
            members.append([(rank, message)])
    messages = tuple(tuple(dict.fromkeys(text for _, text in sorted(each, key=_first))) for each in members)
    ranks = np.array([min(each)[0] for each in members])
    return known._replace(residuals=np.array(residuals).reshape(-1, size), messages=messages, ranks=ranks)


def _first(member: tuple[int, str]) -> int:
    return member[0]


# ---------------------------------------------------------------- where no sum of two differences fits


def _piecewise(
    exercise: Exercise, known: _Known, residual: Array, found: Sequence[Results], right: Sequence[Results]
) -> Diagnosis:
    """Explain the wrong parts one by one, starting with the mistake that explains most of them exactly.

    The parts are the results or, for weights and biases, the blocks of the gates, because a mistake in one
    gate does not affect the blocks of the others.
    """
    slices: dict[tuple[str, str], list[Array]] = {}
    for part in known.parts:
        if part.name in found[0]:
            slices.setdefault((part.name, part.gate), []).append(np.arange(part.start, part.stop))
    indices = {part: np.concatenate(pieces) for part, pieces in slices.items()}
    wrong = {part for part, each in indices.items() if np.linalg.norm(residual[each]) > _CLOSE}
    changes = {
        part: np.linalg.norm(known.residuals[:, each], axis=1) > _CLOSE for part, each in indices.items()
    }
    refuted = np.any([change for part, change in changes.items() if part not in wrong] or [False], axis=0)
    changed = np.sum(list(changes.values()), axis=0)
    fits = {
        part: np.linalg.norm(known.residuals[:, each] - residual[each], axis=1)
        < _CLOSE * np.linalg.norm(residual[each])
        for part, each in indices.items()
        if part in wrong
    }
    # Many versions make the block of one gate zero, such as that of f at the first step, where c is zero. So
    # a version explains a block of zeros only if it explains all wrong blocks of that result.
    nothing = [{name: np.zeros_like(array) for name, array in results.items()} for results in right]
    zeros = known.difference(nothing, right)
    for key in sorted(wrong):
        name, gate = key
        if gate and np.linalg.norm((residual - zeros)[indices[key]]) < _CLOSE:
            fits[key] = np.all([fits[other] for other in wrong if other[0] == name], axis=0)
    mistakes: list[tuple[str, ...]] = []
    together = np.zeros(residual.size)
    while wrong:
        counts = np.sum([fits[part] & ~refuted for part in sorted(wrong)], axis=0)
        if not counts.max(initial=0):
            break
        best = int(np.lexsort((known.ranks, changed, -counts))[0])
        mistakes.append(known.messages[best])
        wrong = {part for part in wrong if not fits[part][best]}
        together += known.residuals[best]
    for key in sorted(wrong):  # a mistake in one use of a variable whose other uses are right
        if fits[key].any():
            best = int(np.lexsort((known.ranks, ~fits[key]))[0])
            alone = f", in {key[0]} alone"
            mistakes.append(tuple(message + alone for message in known.messages[best]))
            wrong -= {key}
    wrong = {part for part in wrong if np.linalg.norm((residual - together)[indices[part]]) > _CLOSE}
    names = [name for name in found[0] if wrong & {(name, gate) for gate in ("", *exercise.gates)}]
    notes = [_note(exercise, name, found, right) for name in names]
    if mistakes and notes:
        notes = [f"Fix this first: {', '.join(names)} {'is' if len(names) == 1 else 'are'} wrong as well"]
    return Diagnosis(tuple(mistakes), tuple(notes))


def _note(exercise: Exercise, name: str, found: Sequence[Results], right: Sequence[Results]) -> str:
    """A remark on one wrong result: a factor, another result that it equals, or its wrong blocks."""
    pairs = [(one[name], other[name]) for one, other in zip(found, right, strict=True)]
    factors = [float(np.vdot(one, other) / np.vdot(other, other)) for one, other in pairs]
    is_multiple = all(
        np.allclose(one, factor * other) for (one, other), factor in zip(pairs, factors, strict=True)
    )
    if is_multiple and (pairs[0][0].size > 1 or np.allclose(factors, factors[0])):  # any number is a multiple
        numbers = [*dict.fromkeys(f"{factor:.3g}" for factor in factors)]
        where = ", on two inputs of other sizes" if len(numbers) > 1 else ""
        return f"{name} is {' and '.join(numbers)} times what it should be{where}"
    for other in right[0]:
        if other != name and all(
            one[name].shape == two[other].shape and np.allclose(one[name], two[other])
            for one, two in zip(found, right, strict=True)
        ):
            return f"{name} is what {other} should be: look at the order of the results"
    if _has_gates(name, len(exercise.gates)):
        wrong = [gate for gate in exercise.gates if not _same_block(exercise.gates, gate, pairs)]
        if len(wrong) < len(exercise.gates):
            blocks = " and ".join(wrong)
            gradients = " and ".join(f"da_{gate}" for gate in wrong)
            return f"{name} is wrong in the block{'s' * (len(wrong) > 1)} of {blocks}: look at {gradients}"
    return f"{name} is wrong"


def _same_block(gates: Sequence[str], gate: str, pairs: Sequence[tuple[Array, Array]]) -> bool:
    place = gates.index(gate)
    blocks = [[np.split(each, len(gates), axis=-1)[place] for each in pair] for pair in pairs]
    return all(np.allclose(one, other) for one, other in blocks)
