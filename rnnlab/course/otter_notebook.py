"""A notebook of rnnlab in the format of Otter Assign: blocks between raw cells, tests that raise exceptions.

A question is a function or an answer. The test cell of a function calls :func:`rnnlab.course.check`. This
call is the visible test, without points. The hidden test makes the same call with new random inputs and
``own=True``, and has the points. It fails if the function lacks a keyword argument, such as ``mask``. Code
before and after the call stays in the notebook, before the test and after the question.
"""

from __future__ import annotations

import ast
import builtins
import copy
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rnnlab.course.notebook_cells import (
    BEGIN_SOLUTION,
    END_SOLUTION,
    CourseNotebook,
    TaggedCell,
    cleared,
    keyword_arguments,
    source_of,
)
from rnnlab.course.source_notebook import (
    NUM_SEEDS,
    check_arguments,
    last_check,
    without_links,
    without_self_study,
)
from rnnlab.errors import InputError

__all__ = ["otter_exercise", "otter_notebook", "otter_tests"]

Cell = dict[str, Any]


def otter_notebook(
    content: Mapping[str, Any], tags: CourseNotebook, config: Mapping[str, Any], rng: np.random.Generator
) -> dict[str, Any]:
    """The notebook from which Otter Assign makes the students' notebook and the autograder.

    Parameters
    ----------
    content : mapping
        The content of the notebook's file.
    tags : CourseNotebook
        Its tagged cells.
    config : mapping
        The assignment's settings.
    rng : numpy.random.Generator
        Draws the seeds of the hidden tests.

    Returns
    -------
    dict
        A copy without outputs and without links to other files.

    Raises
    ------
    ValueError
        If a function has no test after it, a test has no function before it, or a test cell does not call
        ``check`` in a separate statement.
    """
    made = copy.deepcopy(dict(content))
    plain = [_cleaned(cell) for cell in made["cells"]]
    parts = {part[0].index: part for part in _questions(tags)}
    inside = {index for part in parts.values() for index in range(part[0].index, part[-1].index + 1)}
    cells = [_raw("# ASSIGNMENT CONFIG", config)]
    for index, cell in enumerate(plain):
        if index in parts:
            part = parts[index]
            before = index - 1  # the text of the question
            has_text = index > 0 and before not in inside and plain[before]["cell_type"] == "markdown"
            begin = [cells.pop()] if has_text else []
            cells += _question(part, begin, plain[index : part[-1].index + 1], tags, rng)
        elif index not in inside:
            cells.append(cell)
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    made["cells"] = cells
    made["nbformat"], made["nbformat_minor"] = 4, 5
    return made


def otter_exercise(source: str) -> str:
    """An exercise with Otter's markers, which leave ``raise NotImplementedError()`` to students."""
    cleared(source)  # checks that the markers occur in pairs
    lines: list[str] = []
    for line in source.split("\n"):
        indent = line[: len(line) - len(line.lstrip())]
        if line.strip() == BEGIN_SOLUTION:
            lines.append(f"{indent}# BEGIN SOLUTION NO PROMPT")
        elif line.strip() == END_SOLUTION:
            block = [
                "# END SOLUTION",
                '""" # BEGIN PROMPT',
                "raise NotImplementedError()",
                '"""; # END PROMPT',
            ]
            lines += [indent + each for each in block]
        else:
            lines.append(line)
    return "\n".join(lines)


def otter_tests(
    source: str,
    name: str,
    points: float,
    seeds: Sequence[int],
    *,
    options: Sequence[str] = (),
    where: str,
) -> list[str]:
    """The test cells of a function: a visible and a hidden test, both made from its call of ``check``.

    Parameters
    ----------
    source : str
    name : str
        The name of the function.
    points : float
        The points of the hidden test. The visible one has none.
    seeds : sequence of int
        The hidden test makes the call with each of them.
    options : sequence of str
        The keyword arguments that the function must have.
    where : str
        The file and the cell, for errors.

    Raises
    ------
    ValueError
        If the cell does not call ``check``.
    """
    call = last_check(source, where=where)
    given = ", ".join(check_arguments(call))
    seed = [ast.unparse(each) for each in call.keywords if each.arg == "seed"]
    visible = f"    check({', '.join([given, *seed])})"
    hidden = f"    for seed in {tuple(seeds)}:\n        check({given}, seed=seed, own=True)"
    options = options if name in _names(call) else ()
    if options:
        has_it = f'assert option in signature({name}).parameters, f"{name} has no argument {{option}}"'
        hidden = f"    for option in {tuple(options)}:\n        {has_it}\n{hidden}"
    read = "".join(f"    {each} = env[{each!r}]\n" for each in _names(call))
    imports = "    from rnnlab.course import check\n\n"
    more = "    from inspect import signature\n\n" if options else ""
    return [
        _test(f"test_{name}", f"{imports}{read}{visible}", False, 0),
        _test(f"test_{name}_hidden", f"{more}{imports}{read}{hidden}", True, points),
    ]


def _around_check(source: str, *, where: str) -> tuple[list[str], list[str]]:
    """The code before and the code after the call of ``check``, each as no cell or one cell."""
    call = last_check(source, where=where)
    lines = source.split("\n")
    alone = [each for each in ast.parse(source).body if each.lineno <= call.lineno <= (each.end_lineno or 0)]
    if len(alone) != 1 or ast.dump(alone[0]) != ast.dump(ast.Expr(call)):
        raise InputError(f"{where} has no line with {ast.unparse(call)!r} alone, expected one")
    parts = lines[: call.lineno - 1], lines[call.end_lineno :]
    before, after = ("\n".join(part).strip("\n") for part in parts)
    return [before] if before.strip() else [], [after] if after.strip() else []


def _test(name: str, body: str, hidden: bool, points: float) -> str:
    config = f"hidden: {str(hidden).lower()}\npoints: {points:g}"
    return f'""" # BEGIN TEST CONFIG\n{config}\n""" # END TEST CONFIG\ndef {name}(env):\n{body}'


def _names(call: ast.Call) -> list[str]:
    """The notebook's variables that a call of ``check`` reads."""
    arguments = [*call.args, *(each.value for each in call.keywords)]
    nodes = [node for each in arguments for node in ast.walk(each)]
    found = {node.id: None for node in nodes if isinstance(node, ast.Name)}
    return [each for each in found if not hasattr(builtins, each)]


def _questions(tags: CourseNotebook) -> list[tuple[TaggedCell, ...]]:
    """The cells of each question: an exercise and its test, or an answer."""
    found: list[tuple[TaggedCell, ...]] = []
    cells = iter(tags.cells)
    for cell in cells:
        if cell.kind == "answer":
            found.append((cell,))
            continue
        test = next(cells, None)
        if cell.kind != "exercise" or test is None or (test.kind, test.subject) != ("test", cell.subject):
            raise InputError(
                f"{tags.path}, cell {cell.grade_id}: expected each function to be followed by its test, "
                f"found {'nothing' if test is None else test.grade_id} after it"
            )
        found.append((cell, test))
    return found


def _question(
    part: Sequence[TaggedCell],
    begin: list[Cell],
    cells: Sequence[Cell],
    tags: CourseNotebook,
    rng: np.random.Generator,
) -> list[Cell]:
    """The cells of a question. ``begin`` has its text, ``cells`` the cells from its first to its last tag."""
    first, last = part[0], part[-1]
    after: list[str] = []
    name = first.subject if first.kind == "exercise" else first.grade_id
    config: dict[str, Any] = {"name": name, "points": last.points}
    if first.kind == "answer":
        config["manual"] = True
        body = [_raw("# BEGIN SOLUTION"), cells[0], _raw("# END SOLUTION")]
    else:
        solution = cells[0] | {"source": _lines(otter_exercise(first.source))}
        body = [_raw("# BEGIN SOLUTION"), solution, _raw("# END SOLUTION"), *cells[1:-1]]
        seeds = [int(seed) for seed in rng.integers(2**32, size=NUM_SEEDS)]
        where = f"{tags.path}, cell {last.grade_id}"
        before, after = _around_check(last.source, where=where)
        options = keyword_arguments(first.source, name)
        tests = otter_tests(last.source, name, last.points, seeds, options=options, where=where)
        body += map(_code, before)
        body += [_raw("# BEGIN TESTS"), *map(_code, tests), _raw("# END TESTS")]
    return [_raw("# BEGIN QUESTION", config), *begin, *body, _raw("# END QUESTION"), *map(_code, after)]


def _cleaned(cell: Mapping[str, Any]) -> Cell:
    """A cell without outputs, nbgrader's tag and links to other files."""
    made = dict(cell) | {"metadata": {k: v for k, v in cell["metadata"].items() if k != "nbgrader"}}
    if made["cell_type"] == "code":
        made |= {"outputs": [], "execution_count": None}
    elif made["cell_type"] == "markdown":
        made["source"] = _lines(without_links(without_self_study(source_of(cell))))
    return made


def _raw(marker: str, config: Mapping[str, Any] | None = None) -> Cell:
    """A raw cell: a marker, and settings as JSON, which is valid YAML."""
    settings = [f"{key}: {json.dumps(value)}" for key, value in (config or {}).items()]
    return {"cell_type": "raw", "metadata": {}, "source": _lines("\n".join([marker, *settings]))}


def _code(source: str) -> Cell:
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {},
        "outputs": [],
        "source": _lines(source),
    }


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)
