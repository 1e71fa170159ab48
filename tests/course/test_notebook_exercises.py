"""The exercises of the notebooks: their tags, their solutions, and what students get instead of these."""

from __future__ import annotations

import ast
import inspect
import json
import re
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

from rnnlab.course import examine
from rnnlab.course.assignment import rnn_layers
from rnnlab.course.exercises import exercise as exercise_of
from rnnlab.course.notebook_cells import (
    BEGIN_SOLUTION,
    END_SOLUTION,
    CourseNotebook,
    TaggedCell,
    cleared,
    read_notebook,
)
from rnnlab.course.source_notebook import last_check

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = [
    notebook
    for notebook in map(read_notebook, sorted(ROOT.glob("notebooks/*.ipynb")))
    if notebook.cells  # of the course
]
EXERCISES = [(notebook, cell) for notebook in NOTEBOOKS for cell in notebook.exercises]

QUESTION = re.compile(r"^\*\*Question (\d+)\.\*\*", re.M)
TAGS = {
    "exercise": {"grade": False, "locked": False, "solution": True},
    "test": {"grade": True, "locked": True, "solution": False},
    "answer": {"grade": True, "locked": False, "solution": True},
}

each_notebook = pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda each: each.path.stem)
each_exercise = pytest.mark.parametrize(
    ("notebook", "cell"),
    EXERCISES,
    ids=[f"{notebook.path.stem}-{cell.subject}" for notebook, cell in EXERCISES],
)


def cells_of(notebook: CourseNotebook) -> list[tuple[str, str, dict[str, Any]]]:
    """All cells: their types, sources and metadata."""
    cells = json.loads(notebook.path.read_text("utf8"))["cells"]
    return [(cell["cell_type"], "".join(cell["source"]), cell["metadata"]) for cell in cells]


def defined(source: str) -> FunctionType:
    """The function that a cell without a solution defines."""
    namespace: dict[str, Any] = {}
    exec(cleared(source), namespace)
    return next(value for value in namespace.values() if isinstance(value, FunctionType))


def names_of_check(cell: TaggedCell) -> list[str]:
    """The arguments of the check at the beginning of a test: the exercise, and the names of the functions."""
    first = ast.parse(cell.source).body[0]
    assert isinstance(first, ast.Expr)
    assert isinstance(first.value, ast.Call)
    assert ast.unparse(first.value.func) == "check"
    name, *functions = first.value.args
    return [ast.literal_eval(name), *map(ast.unparse, functions)]


def functions_of(notebook: CourseNotebook, unsolved: str = "") -> dict[str, Any]:
    """The solutions, with what the notebook imports and defines for them; one function may be unsolved."""
    tagged = {cell.index: cell for cell in notebook.cells}
    namespace: dict[str, Any] = {}
    for index, (cell_type, source, _) in enumerate(cells_of(notebook)):
        if cell_type != "code" or (index in tagged and tagged[index].kind != "exercise"):
            continue
        if index in tagged:
            source = cleared(source) if tagged[index].subject == unsolved else source
            exec(compile(source, f"<{tagged[index].subject}>", "exec"), namespace)
            continue
        given = ast.parse(re.sub(r"^%.*$", "", source, flags=re.M))
        given.body = [each for each in given.body if defines(each)]
        exec(compile(given, f"<cell {index}>", "exec"), namespace)
    return namespace


def defines(statement: ast.stmt) -> bool:
    """Whether a statement imports, defines a function or names constants, which needs no data."""
    if isinstance(statement, ast.Assign):
        return all(
            isinstance(each, ast.Constant | ast.Tuple)
            for each in ast.walk(statement.value)
            if isinstance(each, ast.expr)
        )
    return isinstance(statement, ast.Import | ast.ImportFrom | ast.FunctionDef)


def examined(notebook: CourseNotebook, function: str, namespace: dict[str, Any]) -> Any:
    """The report on a function; a backward gets the cache of the notebook's forward."""
    exercise = exercise_of(function)
    *forward, own = exercise.functions[: exercise.functions.index(function) + 1]
    return examine(exercise.name, *(namespace[name] for name in (*forward, own)), seed=0)


# ---------------------------------------------------------------- tags


def test_there_are_exercises():
    numbers = {notebook.path.stem[0] for notebook in NOTEBOOKS if notebook.exercises and notebook.answers}
    assert {*"1234567"} <= numbers


@each_notebook
def test_tags_are_complete_and_unique(notebook):
    cells = cells_of(notebook)
    for cell in notebook.cells:
        expected = TAGS[cell.kind] | {"grade_id": cell.grade_id, "schema_version": 3, "task": False}
        if cell.kind != "exercise":
            expected["points"] = cell.points
        assert cells[cell.index][2]["nbgrader"] == expected
        assert cell.cell_type == ("markdown" if cell.kind == "answer" else "code")
    ids = [cell.grade_id for cell in notebook.cells]
    assert len(ids) == len(set(ids))


@each_notebook
def test_each_exercise_is_followed_by_its_test(notebook):
    kinds = [(cell.kind, cell.subject) for cell in notebook.cells if cell.kind != "answer"]
    expected = [
        pair for cell in notebook.exercises for pair in (("exercise", cell.subject), ("test", cell.subject))
    ]
    assert kinds == expected


@each_notebook
def test_markers_of_solutions_are_in_exercises_alone(notebook):
    """Nbgrader refuses them elsewhere, also in text."""
    exercises = {cell.index for cell in notebook.exercises}
    marked = {
        index
        for index, (_, source, _) in enumerate(cells_of(notebook))
        if re.search("(BEGIN|END) (SOLUTION|HIDDEN|MARK)", source)
    }
    assert marked == exercises


@each_notebook
def test_each_question_is_followed_by_its_answer(notebook):
    cells = cells_of(notebook)
    questions = {
        int(number): index
        for index, (cell_type, source, _) in enumerate(cells)
        if cell_type == "markdown"
        for number in QUESTION.findall(source)
    }
    answers = {int(cell.subject): cell.index for cell in notebook.answers}
    assert answers == {number: index + 1 for number, index in questions.items()}
    assert [*answers] == [*range(1, len(answers) + 1)]
    for cell in notebook.answers:
        assert cell.points == 2
        assert re.fullmatch(r"<details><summary>An answer</summary>\n\n.*\n</details>", cell.source, re.S)
        assert cell.source.count("<details>") == 1
        assert "nbgrader" not in cells[cell.index - 1][2]


# ---------------------------------------------------------------- exercises


@each_exercise
def test_a_cell_defines_its_function_alone(notebook, cell):
    (function,) = ast.parse(cell.source).body
    assert isinstance(function, ast.FunctionDef)
    assert function.name == cell.subject
    lines = cell.source.split("\n")
    assert [line for line in lines if "SOLUTION" in line] == [f"    {BEGIN_SOLUTION}", f"    {END_SOLUTION}"]
    assert lines[-1] == f"    {END_SOLUTION}"


@each_exercise
def test_arguments_and_docstring(notebook, cell):
    """The arguments without a default are those of the right function; options are keyword-only."""
    function, exercise = defined(cell.source), exercise_of(cell.subject)
    own, right = (
        inspect.signature(each).parameters for each in (function, getattr(exercise.plain, cell.subject))
    )
    required, expected = (
        [name for name, each in parameters.items() if each.default is each.empty]
        for parameters in (own, right)
    )
    assert required == expected
    assert all(own[name].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD for name in required)
    assert all(own[name].kind is inspect.Parameter.KEYWORD_ONLY for name in own if name not in required)
    assert "Returns\n" in function.__doc__
    with pytest.raises(NotImplementedError):
        function(*[None] * len(required))


@pytest.mark.parametrize(
    "cell",
    [cell for _, cell in EXERCISES if hasattr(rnn_layers, cell.subject)],
    ids=lambda each: each.subject,
)
def test_docstrings_are_those_of_the_assignment(cell):
    of_assignment = inspect.getdoc(getattr(rnn_layers, cell.subject))
    only_there = "verbose : bool\n    Print the shape of the gradient.\n"
    assert inspect.getdoc(defined(cell.source)) == of_assignment.replace(only_there, "")


@each_exercise
def test_a_test_has_a_point_for_each_result_and_begins_with_the_check(notebook, cell):
    exercise = exercise_of(cell.subject)
    forward_and_own = exercise.functions[: exercise.functions.index(cell.subject) + 1]
    (test,) = [each for each in notebook.tests if each.subject == cell.subject]
    kind = "forward" if len(forward_and_own) == 1 else "backward"
    assert test.points == len(exercise.results(kind))
    assert names_of_check(test) == [exercise.name, *forward_and_own]
    repeated = last_check(test.source, where=test.grade_id)  # by the hidden test
    assert repeated.lineno == 1


@each_notebook
def test_solutions_are_right(notebook):
    namespace = functions_of(notebook)
    for cell in notebook.exercises:
        report = examined(notebook, cell.subject, namespace)
        assert report.passed, str(report)


@each_exercise
def test_without_its_solution_a_function_fails(notebook, cell):
    report = examined(notebook, cell.subject, functions_of(notebook, unsolved=cell.subject))
    assert f"{cell.subject} is not implemented yet" in report.problems
    assert not report.passed
