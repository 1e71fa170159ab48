"""Suspicions for the teacher: signs that a function does not do what the task asks.

They are found in the code, and in the behaviour of the functions. A backward that calls forwards as often as
a numeric gradient gets no points. Other signs have no effect on the points, because the checks run outside
the student's process, on inputs that are new to it.
"""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from rnnlab.course.exercise import Draw, Exercise, WrongResults, copied
from rnnlab.course.grading.functions import RemoteFunction
from rnnlab.course.grading.submission import Submission, helpers
from rnnlab.course.notebook_cells import CourseNotebook, parsed
from rnnlab.course.running import FunctionStopped
from rnnlab.gradcheck.numeric import relative_distance
from rnnlab.types import Array

__all__ = ["Suspicion", "calls_forwards", "loses_digits", "suspicions_of_code"]

_MOST_FORWARDS = 40  # calls of exercises' forwards in a backward; recomputing each step once needs fewer
# A numeric gradient has an error above the first number on some inputs, and a much larger one on others. A
# gradient that is rounded to float32 has the same error on all inputs.
_NUMERIC_ERROR, _NUMERIC_GROWTH = 1e-8, 100.0
_LEAST_DIGITS, _LEAST_NUMBERS = 6, 3  # minimum digits and count of expected numbers in a student's code


class Suspicion(NamedTuple):
    """A sign that something is not a student's own work, or is not a backward.

    Attributes
    ----------
    kind : str
        "numeric gradient", "lost digits", "patched check", "changed test", "hard-coded values" or "refused".
    text : str
        The finding and its location.
    """

    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


# ---------------------------------------------------------------- in the code


def suspicions_of_code(submission: Submission, source: CourseNotebook) -> list[Suspicion]:
    """Search a student's code for patched checks, changed tests and numbers that tests expect."""
    found = [
        Suspicion("changed test", f"the cell {name} is not the one that was released")
        for name in submission.changed_tests
    ]
    found += [Suspicion("changed test", f"the cell {name} is missing") for name in submission.missing_tests]
    given = list(map(parsed, helpers(source).values()))
    tests = {cell.grade_id: parsed(cell.source) for cell in source.tests}
    written = {name: parsed(text) for name, text in ({**submission.exercises, **submission.others}).items()}
    own = {cell.subject for cell in source.exercises}
    used = {name for tree in tests.values() for name in _read(tree)}
    protected = (used & set(_bound(given))) - own
    modules = {name for tree in (*given, *written.values()) for name, _ in _aliases(tree)}
    modules -= {name for tree in written.values() for name in _own_names(tree, modules)}
    for where, tree in written.items():
        for name in sorted({*_bound([tree])} & protected - _imported_alike(tree, given)):
            found.append(Suspicion("patched check", f"{where} defines {name}, which the tests use"))
        for target in _patched(tree, modules):
            found.append(Suspicion("patched check", f"{where} assigns to {target}"))
    expected = {number for tree in tests.values() for number in _long_numbers(tree)}
    for where, tree in written.items():
        copied_numbers = expected & {*_long_numbers(tree)}
        if len(copied_numbers) >= _LEAST_NUMBERS:
            text = f"{where} contains {len(copied_numbers)} of the numbers that the tests expect"
            found.append(Suspicion("hard-coded values", text))
    return found


def _read(tree: ast.Module) -> Iterator[str]:
    """The names that a cell reads without having bound them before."""
    own: set[str] = set()
    for statement in tree.body:
        names = [node for node in ast.walk(statement) if isinstance(node, ast.Name)]
        yield from {name.id for name in names if isinstance(name.ctx, ast.Load)} - own
        own |= {*_bound([ast.Module([statement], [])])}


def _imported_alike(tree: ast.Module, given: Iterable[ast.Module]) -> set[str]:
    """The names that a cell imports in the same way as the given cells."""
    ours = {each for other in given for each in _aliases(other)}
    return {name for name, where in _aliases(tree) if (name, where) in ours}


def _aliases(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """The names that the code imports, and the objects that they refer to."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = getattr(node, "module", "")
            for alias in node.names:
                yield (alias.asname or alias.name).partition(".")[0], f"{module}.{alias.name}"


def _bound(trees: Iterable[ast.Module]) -> Iterator[str]:
    """The names that cells define, assign or import."""
    for tree in trees:
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                yield node.name
            elif isinstance(node, ast.Import | ast.ImportFrom):
                yield from ((alias.asname or alias.name).partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                yield from _assigned(node)


def _assigned(node: ast.Assign | ast.AnnAssign) -> Iterator[str]:
    """The names that an assignment binds."""
    for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
        names = (each for each in ast.walk(target) if isinstance(each, ast.Name))
        yield from (name.id for name in names if isinstance(name.ctx, ast.Store))


def _own_names(scope: ast.AST, modules: set[str]) -> set[str]:
    """The names that a cell or a function binds itself, even if they are names of modules elsewhere.

    A second name for a module, as in ``layers = rnnlab.layers``, is not included.
    """
    own, of_modules = set(), set()
    for node in _in_scope(scope):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            own.add(node.name)
        elif isinstance(node, ast.arg):
            own.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            own.add(node.id)
        elif isinstance(node, ast.Assign | ast.AnnAssign) and _root(node.value) in modules:
            of_modules |= {*_assigned(node)}
    return own - of_modules


def _in_scope(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a cell or a function, without the bodies of nested functions and classes."""
    waiting = deque(ast.iter_child_nodes(scope))
    while waiting:
        node = waiting.popleft()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Lambda):
            waiting.extend(ast.iter_child_nodes(node))


def _patched(tree: ast.Module, modules: set[str]) -> Iterator[str]:
    """The attributes of modules and of imported objects that the code assigns to."""
    waiting: deque[tuple[ast.AST, set[str]]] = deque([(tree, modules | {"__builtins__"})])
    while waiting:
        node, known = waiting.popleft()
        if isinstance(node, ast.FunctionDef):
            known = known - _own_names(node, known)
        waiting.extend((child, known) for child in ast.iter_child_nodes(node))
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
            if _root(node) in known:
                yield ast.unparse(node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "setattr":
            if node.args and _root(node.args[0]) in known:
                yield ast.unparse(node)
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and _is_table(node.value):
            yield ast.unparse(node)


def _is_table(node: ast.expr) -> bool:
    """Whether an expression is a table of names or modules."""
    return ast.unparse(node) in ("sys.modules", "globals()", "vars()", "__builtins__")


def _root(node: ast.expr | None) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _long_numbers(tree: ast.Module) -> Iterator[float]:
    """The numbers with many digits, which cannot agree by chance."""
    for node in ast.walk(tree):
        value = node.value if isinstance(node, ast.Constant) else None
        if isinstance(value, float) and len(repr(abs(value)).replace(".", "").lstrip("0")) >= _LEAST_DIGITS:
            yield abs(value)


# ---------------------------------------------------------------- in the behaviour of the functions

# Factors of the first feature of some inputs. The product of an input and its weights is unchanged, but a
# step of a finite difference that suits one feature is too large or too small for another. W is scaled as a
# whole.
_STIFF = {
    **dict.fromkeys(["x", "h", "query", "memory", "context", "W"], 1e5),
    **dict.fromkeys(["Wx", "w", "Wq", "Wm"], 1e-5),
}
_SMALL = 1e-6  # the size of gradients on these inputs, so that clipping them has no effect
_LARGE = 1e9  # the factor of the first sample, whose rounding error hides the others in a difference of sums


def calls_forwards(backward: RemoteFunction) -> bool:
    """Whether a call of a backward has called forwards as often as a numeric gradient does."""
    return backward.forwards > _MOST_FORWARDS


def loses_digits(exercise: Exercise, forward: RemoteFunction, backward: RemoteFunction, seed: int) -> bool:
    """Whether a correct backward is inexact on inputs on which only finite differences are inexact.

    These are inputs whose features have very different sizes, and batches whose first sample is far larger
    than the others. No step of a finite difference suits all of them.
    """
    draw = exercise.draw(np.random.default_rng([seed, 1]))
    limit = max(_NUMERIC_ERROR, _NUMERIC_GROWTH * _error(exercise, draw, forward, backward, _same))
    of_features = _error(exercise, stiff(draw), forward, backward, _scaled)
    of_samples = _error(exercise, with_large_sample(draw), forward, backward, _without_first)
    return max(of_features, of_samples) > limit


Seen = Callable[[str, Array], Array]  # selects or scales the part of an input's gradient that is compared


def _error(exercise: Exercise, draw: Draw, forward: Any, backward: Any, seen: Seen) -> float:
    """The largest relative distance of a gradient from the correct one; 0 if it cannot be computed."""
    found = _backward_of(exercise, draw, forward, backward)
    expected = _backward_of(exercise, draw, exercise.forward, exercise.backward)
    if found is None or expected is None:
        return 0.0
    samples = [name for name, axes in exercise.gradients.items() if axes.split()[0] == "N"]
    names = samples if seen is _without_first else expected
    pairs = [(seen(name[1:], found[name]), seen(name[1:], expected[name])) for name in names]
    return max((_distance(*pair) for pair in pairs), default=0.0)


def _distance(found: Array, expected: Array) -> float:
    """The relative distance of two gradients, which may be tiny."""
    size = max(float(np.abs(expected).max(initial=0)), 1e-30)
    return float(relative_distance(found / size, expected / size))


def _same(name: str, array: Array) -> Array:
    return array


def _without_first(name: str, array: Array) -> Array:
    return array[1:]


def _scaled(name: str, array: Array) -> Array:
    """An input times the factors of its first feature, by which its gradient's features have equal sizes."""
    if name not in _STIFF or array.dtype.kind != "f":
        return array
    of_input = (slice(None),) * (array.ndim - 1) + (0,)
    array = array.copy()
    array[... if name == "W" else of_input if _STIFF[name] > 1 else 0] *= _STIFF[name]
    return array


def stiff(draw: Draw) -> Draw:
    """Inputs with features of very different sizes, on which formulas are as exact as on others."""
    inputs = {
        name: {key: _scaled(key, each) for key, each in value.items()}
        if isinstance(value, Mapping)
        else _scaled(name, value)
        for name, value in draw.inputs.items()
    }
    return replace(draw, inputs=inputs, douts=tuple(_SMALL * each for each in draw.douts))


def with_large_sample(draw: Draw) -> Draw:
    """A draw whose first sample has a large gradient or, if the loss is a number, large inputs."""

    def scaled(value: Any) -> Any:
        if not isinstance(value, np.ndarray) or value.dtype.kind != "f" or len(value) != draw.sizes["N"]:
            return value
        return np.concatenate([_LARGE * value[:1], value[1:]])

    if all(np.ndim(each) for each in draw.douts):
        return replace(draw, douts=tuple(map(scaled, draw.douts)))
    return replace(draw, inputs={name: scaled(value) for name, value in draw.inputs.items()})


@np.errstate(all="ignore")
def _backward_of(exercise: Exercise, draw: Draw, forward: Any, backward: Any) -> dict[str, Array] | None:
    """The gradients by name; None if a function raises an exception, or does not return arrays."""
    try:
        cache = forward(*copied(draw.inputs).values())[-1]
        return exercise.named("backward", backward(*copied(draw.douts), cache))
    except (WrongResults, FunctionStopped, NotImplementedError):
        return None
