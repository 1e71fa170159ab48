"""A student's submission: the code of a notebook, read as data."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rnnlab.course.exercises import EXERCISES
from rnnlab.course.notebook_cells import CourseNotebook, parsed, plain_python, source_of, tag_of
from rnnlab.course.source_notebook import without_hidden_tests
from rnnlab.errors import InputError, InputTypeError
from rnnlab.limits import NOTEBOOK_BYTES

__all__ = [
    "BadSubmission",
    "Submission",
    "helpers",
    "library_functions",
    "read_submission",
    "solution",
]


class BadSubmission(InputError):
    """The file cannot be graded at all."""


@dataclass(frozen=True)
class Submission:
    """The code of a student's notebook.

    Attributes
    ----------
    path : path
    exercises : mapping of str to str
        The source of the cell that defines each function. Functions that are not handed in are left out.
    others : mapping of str to str
        Additional cells by the student, which may contain helper functions.
    cells : mapping of str to str
        Both, in the order of the notebook.
    changed_tests, missing_tests : tuple of str
        The tests whose cells differ from the released ones, and those whose cells are missing.
    answers : mapping of str to bool
        Whether each question has an answer, by the name of its cell.
    """

    path: Path
    exercises: Mapping[str, str]
    others: Mapping[str, str] = field(default_factory=dict)
    cells: Mapping[str, str] = field(default_factory=dict)
    changed_tests: tuple[str, ...] = ()
    missing_tests: tuple[str, ...] = ()
    answers: Mapping[str, bool] = field(default_factory=dict)


def read_submission(path: Path, source: CourseNotebook) -> Submission:
    """Read a student's notebook.

    Parameters
    ----------
    path : path
    source : CourseNotebook
        The notebook with the solutions, from which the student's was made.

    Raises
    ------
    BadSubmission
        If there is no such file, or it is not a notebook, or a link to another place.
    """
    if path.is_symlink() or path.parent.is_symlink():  # a link might lead to the solutions
        raise BadSubmission(f"{path.name} is a link to another place, expected the notebook itself")
    cells = _cells(path)
    read = _by_kind(cells, source)
    if not read.exercises and not read.tests:
        raise BadSubmission(
            f"{path.name} has no cell of nbgrader: its metadata are lost, as after saving by another tool"
        )
    for exercise in source.exercises:
        _complete(read, exercise.grade_id, exercise.subject)
    changed = tuple(
        test.grade_id
        for test in source.tests
        if test.grade_id in read.tests
        and _normal(without_hidden_tests(test.source)) != _normal(read.tests[test.grade_id])
    )
    missing = tuple(test.grade_id for test in source.tests if test.grade_id not in read.tests)
    both = read.exercises | read.others
    in_order = dict(sorted(both.items(), key=lambda item: read.places.get(item[0], len(cells))))
    return Submission(path, read.exercises, read.others, in_order, changed, missing, read.answers)


@dataclass
class _Read:
    """The cells of a student's notebook by their names, and the place of each exercise and other cell."""

    answers: dict[str, bool]
    exercises: dict[str, str] = field(default_factory=dict)
    others: dict[str, str] = field(default_factory=dict)
    tests: dict[str, str] = field(default_factory=dict)
    places: dict[str, int] = field(default_factory=dict)
    places_of_tests: dict[str, int] = field(default_factory=dict)  # by the function that is tested


def _by_kind(cells: Sequence[Mapping[str, Any]], source: CourseNotebook) -> _Read:
    """The cells by kind. Cells that were handed out without a tag are left out."""
    released = {_normal(source_of(cell)) for cell in _cells(source.path)}
    wanted = {cell.grade_id: cell for cell in source.cells}
    read = _Read({cell.grade_id: False for cell in source.answers})
    for index, cell in enumerate(cells):
        grade_id, text = _grade_id(cell), source_of(cell)
        tagged = wanted.get(grade_id)
        if tagged is None or grade_id in read.exercises:
            if cell.get("cell_type") == "code" and _normal(text) not in released and not _is_test(cell):
                read.others[f"cell {index}"] = plain_python(text)
                read.places[f"cell {index}"] = index
        elif tagged.kind == "exercise":
            read.exercises[grade_id] = plain_python(text)
            read.places[grade_id] = index
        elif tagged.kind == "test":
            read.tests[grade_id] = text
            read.places_of_tests[tagged.subject] = index
        else:
            read.answers[grade_id] = _normal(text) not in {"", "YOUR ANSWER HERE"}
    return read


def _complete(read: _Read, grade_id: str, subject: str) -> None:
    """Move the definitions of an exercise's function from other cells to the exercise."""
    own = read.exercises.get(grade_id, "")
    defining = [name for name, text in read.others.items() if _defines(text, subject)]
    if not _is_blank(own, subject):  # a function that is defined again before its test
        place, test = read.places[grade_id], read.places_of_tests.get(subject, 0)
        again = [name for name in defining if place < read.places[name] < test]
        read.exercises[grade_id] = "\n\n".join([own, *map(read.others.pop, again)])
        return
    # the exercise's cell was deleted, split or not changed
    parts = [own] if parsed(own).body and not _defines(own, subject) else []
    parts += map(read.others.pop, defining)
    if parts:
        names = [name for name in (*defining, grade_id) if name in read.places]
        read.places[grade_id] = max(read.places[name] for name in names)
        read.exercises[grade_id] = "\n\n".join(parts)
    elif not own and any(_defines(text, subject) for text in read.exercises.values()):
        read.exercises[grade_id] = ""


def helpers(source: CourseNotebook) -> dict[str, str]:
    """The notebook's cells that are given to students, which may define functions for theirs to call."""
    tagged = {cell.index for cell in source.cells}
    return {
        f"given cell {index}": plain_python(source_of(cell))
        for index, cell in enumerate(_cells(source.path))
        if index not in tagged and cell.get("cell_type") == "code"
    }


def library_functions(source: CourseNotebook, submission: Submission) -> dict[str, Callable[..., Any]]:
    """The functions that a notebook imports for the students' functions to call, by name.

    They are functions of other exercises, such as a step of an LSTM in a notebook on another subject. The
    functions of :mod:`rnnlab.plain`, whose caches are tuples, are used for them. Those that the student
    defines are left out.
    """
    own = {cell.subject for cell in source.exercises}
    for text in (*submission.exercises.values(), *submission.others.values()):
        own |= _defined(text)
    imported = {
        alias.asname or alias.name
        for text in helpers(source).values()
        for node in ast.walk(parsed(text))
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "rnnlab"
        for alias in node.names
    }
    return {
        name: getattr(exercise.plain, name)
        for exercise in EXERCISES.values()
        for name in exercise.functions
        if name in imported - own
    }


def solution(source: CourseNotebook, name: str) -> Callable[..., Any] | None:
    """A function of the solutions; None if it does not work on its own.

    Its results, such as a cache, have the form that its docstring describes. It calls the other solutions and
    the functions that the notebook imports or defines for students.
    """
    given = [each for text in helpers(source).values() for each in parsed(text).body]
    tools = [each for each in given if isinstance(each, ast.Import | ast.ImportFrom | ast.FunctionDef)]
    solutions = [each for cell in source.exercises for each in parsed(cell.source).body]
    namespace: dict[str, Any] = {}
    for statement in [*tools, *solutions]:
        with suppress(ImportError, NameError):
            exec(compile(ast.Module([statement], []), str(source.path), "exec"), namespace)
    return namespace.get(name)


def printable(name: str) -> str:
    """The name of a student's file on one line: it may have any characters."""
    return name if name.isprintable() else ascii(name)[1:-1]


def _cells(path: Path) -> Sequence[Mapping[str, Any]]:
    try:
        if (size := path.stat().st_size) > NOTEBOOK_BYTES:
            raise BadSubmission(f"{path.name} has {size:,} bytes, expected {NOTEBOOK_BYTES:,} at most")
        if not size:
            raise BadSubmission(f"{path.name} is not a notebook: it is empty")
        content = json.loads(path.read_text("utf-8-sig"))
        cells = content["cells"]
        for cell in cells:
            if not isinstance(cell.get("metadata", {}), dict):
                raise InputTypeError("metadata of a cell is not an object")
            source_of(cell)
    except FileNotFoundError:
        others = [each.relative_to(path.parent) for each in sorted(path.parent.rglob("*.ipynb"))]
        names = [printable(str(each)) for each in others if ".ipynb_checkpoints" not in each.parts]
        hint = f", but {', '.join(names)}: move or rename it" if names else ""
        raise BadSubmission(f"the folder has no {path.name}{hint}") from None
    except OSError as error:
        raise BadSubmission(f"{path.name} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, BadSubmission):
            raise
        raise BadSubmission(f"{path.name} is not a notebook: {type(error).__name__}: {error}") from None
    return cells


def _grade_id(cell: Mapping[str, Any]) -> str:
    return str(tag_of(cell).get("grade_id", ""))


def _is_test(cell: Mapping[str, Any]) -> bool:
    """Whether a cell was released as a test, possibly of an exercise that was removed since."""
    return bool(tag_of(cell).get("grade")) and not tag_of(cell).get("solution")


def _normal(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def _is_blank(text: str, name: str) -> bool:
    """Whether a cell does not define a function, or has not changed it since the release."""
    functions = [
        each for each in parsed(text).body if isinstance(each, ast.FunctionDef) and each.name == name
    ]
    return _only_raises(functions[-1]) if functions else not _defines(text, name)


def _only_raises(function: ast.FunctionDef) -> bool:
    """Whether the body, without the docstring, is only ``raise NotImplementedError``."""
    match function.body[ast.get_docstring(function) is not None :]:
        case [ast.Raise(exc=ast.Name(id=raised) | ast.Call(func=ast.Name(id=raised)))]:
            return raised == "NotImplementedError"
    return False


def _defined(text: str) -> set[str]:
    """The names that the code binds."""
    found = set()
    for statement in parsed(text).body:
        match statement:
            case (
                ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.Assign(targets=[ast.Name(id=name)])
            ):
                found.add(name)
    return found


def _defines(text: str, name: str) -> bool:
    """Whether the code defines a function, even if it is not valid."""
    return re.search(rf"(?m)^def {name}\b", text) is not None
