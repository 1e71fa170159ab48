"""The instructor's notebook of an assignment: a notebook of rnnlab without outputs, with hidden tests.

A test cell calls :func:`rnnlab.course.check`. Its hidden test, at the end of the cell, makes the same call
with new random inputs and ``own=True``, which refuses functions of the library.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from rnnlab.course.notebook_cells import CourseNotebook, source_of
from rnnlab.errors import InputError

__all__ = [
    "BEGIN_HIDDEN",
    "END_HIDDEN",
    "NUM_SEEDS",
    "check_arguments",
    "last_check",
    "source_notebook",
    "with_hidden_test",
    "without_hidden_tests",
    "without_links",
    "without_self_study",
]

BEGIN_HIDDEN, END_HIDDEN = "### BEGIN HIDDEN TESTS", "### END HIDDEN TESTS"
NUM_SEEDS = 3  # number of seeds with which a hidden test repeats its check

_BEGIN_SELF_STUDY, _END_SELF_STUDY = "<!-- self-study -->", "<!-- end of self-study -->"
_SELF_STUDY = re.compile(
    rf"{_BEGIN_SELF_STUDY}.*?{_END_SELF_STUDY}(?:(?<=\n{_END_SELF_STUDY})\n+)?", re.DOTALL
)  # the end marker, where it is a line of its own, with the blank line below it
_LINK = re.compile(r"\[([^\]\n]+)\]\(([^)\s]+)\)")


def source_notebook(
    content: Mapping[str, Any], tags: CourseNotebook, rng: np.random.Generator
) -> dict[str, Any]:
    """The notebook from which nbgrader makes the students' notebook.

    Parameters
    ----------
    content : mapping
        The content of the notebook's file.
    tags : CourseNotebook
        Its tagged cells.
    rng : numpy.random.Generator
        Draws the seeds of the hidden tests.

    Returns
    -------
    dict
        A copy with hidden tests, without outputs, links to other files and text for self-study.

    Raises
    ------
    ValueError
        If a test cell does not call ``check``.
    """
    made = copy.deepcopy(dict(content))
    tests = {cell.index: cell for cell in tags.tests}
    for index, cell in enumerate(made["cells"]):
        text = source_of(cell)
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
            if index in tests:
                seeds = [int(seed) for seed in rng.integers(2**32, size=NUM_SEEDS)]
                where = f"{tags.path}, cell {tests[index].grade_id}"
                text = with_hidden_test(text, seeds, where=where)
        elif cell["cell_type"] == "markdown":
            text = without_links(without_self_study(text))
        cell["source"] = text.splitlines(keepends=True)
    return made


def with_hidden_test(source: str, seeds: list[int], *, where: str) -> str:
    """A test cell with a hidden test, which repeats its last call of ``check`` with each of the seeds.

    Parameters
    ----------
    source : str
    seeds : list of int
    where : str
        The file and the cell, for errors.

    Raises
    ------
    ValueError
        If the cell is not Python, has no call of ``check``, or has a hidden test.
    """
    arguments = check_arguments(last_check(source, where=where))
    test = f"hidden_check({', '.join([*arguments, 'seed=hidden_seed', 'own=True'])})"
    lines = [
        source.rstrip("\n"),
        BEGIN_HIDDEN,
        "from rnnlab.course import check as hidden_check",
        "",
        f"for hidden_seed in {tuple(seeds)}:",
        f"    {test}",
        END_HIDDEN,
    ]
    return "\n".join(lines)


def last_check(source: str, *, where: str) -> ast.Call:
    """The last call of ``check`` in a test cell.

    Parameters
    ----------
    source : str
    where : str
        The file and the cell, for errors.

    Raises
    ------
    ValueError
        If the cell is not Python, has no call of ``check``, or has a hidden test.
    """
    if "HIDDEN TESTS" in source:
        raise InputError(f"{where} has a hidden test, expected none: they are made for each release")
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        raise InputError(f"{where} is not Python: {error}") from None
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _called(node) == "check"]
    if not calls:
        raise InputError(f"{where} does not call check, expected a call such as check('rnn_step', ...)")
    return max(calls, key=lambda node: (node.lineno, node.col_offset))


def check_arguments(call: ast.Call) -> list[str]:
    """The arguments of a call of ``check``, without its seed."""
    arguments = [ast.unparse(each) for each in call.args]
    return arguments + [ast.unparse(each) for each in call.keywords if each.arg not in ("seed", "own")]


def without_hidden_tests(source: str) -> str:
    """A test as students see it."""
    return re.sub(rf"(?ms)^{BEGIN_HIDDEN}$.*?^{END_HIDDEN}$\n?", "", source)


def without_self_study(text: str) -> str:
    """Markdown without text for readers of the repository, such as the location of solutions.

    Examples
    --------
    >>> without_self_study("Write it.<!-- self-study --> Or delete it.<!-- end of self-study -->")
    'Write it.'
    """
    return _SELF_STUDY.sub("", text)


def without_links(text: str) -> str:
    """Markdown in which links to other files are text; links to addresses and headings are kept.

    Examples
    --------
    >>> without_links("see [`rnn.py`](../rnnlab/plain/rnn.py) and [the cell](2_lstm.ipynb)")
    'see `rnnlab/plain/rnn.py` and the cell (`2_lstm.ipynb`)'
    """
    return _LINK.sub(_as_text, text)


def _as_text(link: re.Match[str]) -> str:
    label, target = link.groups()
    if target.startswith("#") or re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*:", target):
        return link[0]
    path = re.sub(r"^(\.{1,2}/)+", "", target.partition("#")[0])
    if label.startswith("`") and path.endswith(label.strip("`")):
        return f"`{path}`"
    return f"{label} (`{path}`)"


def _called(call: ast.Call) -> str:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
