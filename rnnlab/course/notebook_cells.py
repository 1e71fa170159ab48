"""The cells of the course's notebooks that are marked by nbgrader's metadata: exercises, tests and answers.

| kind | solution | grade | grade_id |
|---|---|---|---|
| exercise | true | false | the name of the function that the cell defines |
| test | false | true | ``test_`` and that name |
| answer | true | true | ``answer_`` and the number of the question |

A notebook is read as JSON, without nbformat and nbgrader.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rnnlab.errors import InputError
from rnnlab.limits import NOTEBOOK_BYTES
from rnnlab.reading import load_json

__all__ = [
    "BEGIN_SOLUTION",
    "END_SOLUTION",
    "CourseNotebook",
    "TaggedCell",
    "cleared",
    "keyword_arguments",
    "parsed",
    "plain_python",
    "read_content",
    "read_notebook",
    "source_of",
    "tag_of",
]

BEGIN_SOLUTION, END_SOLUTION = "### BEGIN SOLUTION", "### END SOLUTION"

Kind = Literal["exercise", "test", "answer"]
_KINDS: Mapping[tuple[bool, bool], Kind] = {  # by solution and grade
    (True, False): "exercise",
    (False, True): "test",
    (True, True): "answer",
}
_GRADE_IDS: Mapping[Kind, tuple[str, str]] = {
    "exercise": (r"(?!(?:test|answer)_)([A-Za-z_]\w*)", "the name of a function"),
    "test": (r"test_([A-Za-z_]\w*)", "test_ and the name of a function"),
    "answer": (r"answer_(\d+)", "answer_ and the number of a question"),
}


@dataclass(frozen=True)
class TaggedCell:
    """A cell that students write, or that is graded.

    Attributes
    ----------
    kind : "exercise", "test" or "answer"
    grade_id : str
        nbgrader's name of the cell.
    subject : str
        The function of an exercise or of a test; the number of the question of an answer.
    points : float
        0 for an exercise, whose points belong to its test.
    source : str
    index : int
        The index among all cells of the notebook, from 0.
    cell_type : "code", "markdown" or "raw"
    """

    kind: Kind
    grade_id: str
    subject: str
    points: float
    source: str
    index: int
    cell_type: str


@dataclass(frozen=True)
class CourseNotebook:
    """The tagged cells of a notebook, in their order.

    Attributes
    ----------
    path : path
    cells : tuple of TaggedCell
        Empty if the notebook has no tag.
    """

    path: Path
    cells: tuple[TaggedCell, ...]

    @property
    def exercises(self) -> tuple[TaggedCell, ...]:
        """The cells in which students write functions."""
        return self._of("exercise")

    @property
    def tests(self) -> tuple[TaggedCell, ...]:
        """The cells that test these functions."""
        return self._of("test")

    @property
    def answers(self) -> tuple[TaggedCell, ...]:
        """The cells in which students answer questions."""
        return self._of("answer")

    @property
    def points(self) -> float:
        """The points of all cells."""
        return sum(cell.points for cell in self.cells)

    def _of(self, kind: Kind) -> tuple[TaggedCell, ...]:
        return tuple(cell for cell in self.cells if cell.kind == kind)


def read_notebook(path: str | os.PathLike[str]) -> CourseNotebook:
    """Read the tagged cells of a notebook.

    Parameters
    ----------
    path : path
        A notebook with solutions, a released one, or a student's. Cells may have equal names.

    Returns
    -------
    CourseNotebook

    Raises
    ------
    OSError, ValueError
        As :func:`read_content`.
    ValueError
        If the file is not a notebook, or a tag has no valid ``grade_id`` or no points. The error names the
        file and the cell.
    """
    path = Path(path)
    content = read_content(path)
    cells = content.get("cells") if isinstance(content, dict) else None
    if not isinstance(cells, list):
        raise InputError(f"{path} has no list of cells, expected a notebook of nbformat 4")
    tagged = (_tagged(path, index, cell) for index, cell in enumerate(cells))
    return CourseNotebook(path, tuple(cell for cell in tagged if cell is not None))


def read_content(path: str | os.PathLike[str]) -> Any:
    """The JSON of a notebook.

    Raises
    ------
    OSError
        If there is no such file, or it is not a regular file.
    ValueError
        If it is not JSON, or larger than the limit. The error names the file.
    """
    return load_json(path, "a notebook", NOTEBOOK_BYTES)


def source_of(cell: Mapping[str, Any]) -> str:
    """The text of a cell, which a notebook stores as a string or as a list of lines."""
    source = cell.get("source", "")
    return source if isinstance(source, str) else "".join(source)


def tag_of(cell: Mapping[str, Any]) -> Mapping[str, Any]:
    """nbgrader's metadata of a cell; empty if it has none."""
    tag = cell.get("metadata", {}).get("nbgrader")
    return tag if isinstance(tag, dict) else {}


def keyword_arguments(source: str, name: str) -> list[str]:
    """The keyword-only arguments of a function that a cell defines; empty if the cell does not define it."""
    body = parsed(source).body
    functions = [each for each in body if isinstance(each, ast.FunctionDef) and each.name == name]
    return [argument.arg for each in functions[-1:] for argument in each.args.kwonlyargs]


def plain_python(text: str) -> str:
    """Code without IPython's commands, with the same line numbers.

    Code that is valid Python is not changed, because a continued line may begin with ``%`` or ``!=``.
    """
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        text = re.sub(r"(?m)^([ \t]*)([%!?][^\n]*|[\w.]+\?+[ \t]*)$", r"\1pass", text)
        return re.sub(r"(?m)^([ \t]*[\w., \t]+=[ \t]*)[%!][^\n]*$", r"\1None", text)
    return text


def parsed(text: str) -> ast.Module:
    """The syntax tree of the code; an empty one if it is not valid."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return ast.Module([], [])


def cleared(source: str) -> str:
    """An exercise as students get it: the code between the markers becomes ``raise NotImplementedError()``.

    The result is that of nbgrader's ClearSolutions.

    Raises
    ------
    ValueError
        If the markers do not occur in pairs.
    """
    lines: list[str] = []
    inside, pairs = False, 0
    for line in source.split("\n"):
        if line.strip() in (BEGIN_SOLUTION, END_SOLUTION):
            begins = line.strip() == BEGIN_SOLUTION
            if begins == inside:
                raise InputError(f"{line.strip()} without its other marker, in: {source}")
            if begins:
                lines += [f"{line[: len(line) - len(line.lstrip())]}{each}" for each in _STUB]
            inside, pairs = begins, pairs + begins
        elif not inside:
            lines.append(line)
    if inside or not pairs:
        raise InputError(f"no pair of {BEGIN_SOLUTION} and {END_SOLUTION}, in: {source}")
    return "\n".join(lines)


_STUB = ("# YOUR CODE HERE", "raise NotImplementedError()")  # nbgrader's


def _tagged(path: Path, index: int, cell: Any) -> TaggedCell | None:
    """A cell, or None if it has no tag, or one that is neither solved nor graded."""
    where = f"{path}, cell {index}"
    try:
        tag, text = tag_of(cell), source_of(cell)
    except (AttributeError, TypeError):
        raise InputError(f"{where} is not a cell, expected an object with source and metadata") from None
    kind = _KINDS.get((bool(tag.get("solution")), bool(tag.get("grade"))))
    if kind is None:
        return None
    pattern, expected = _GRADE_IDS[kind]
    grade_id, points = tag.get("grade_id"), tag.get("points", 0)
    found = re.fullmatch(pattern, grade_id) if isinstance(grade_id, str) else None
    if found is None:
        raise InputError(f"{where}: grade_id is {grade_id!r}, expected {expected} for the {kind} cell")
    if kind == "exercise":
        points = 0
    elif isinstance(points, bool) or not isinstance(points, int | float) or not points > 0:
        raise InputError(f"{where}: points is {tag.get('points')!r}, expected a positive number")
    return TaggedCell(kind, found[0], found[1], points, text, index, str(cell.get("cell_type")))
