"""The tests mirror the package: ``rnnlab/a/b.py`` is tested in ``tests/a/test_b.py``, with few exceptions.

No file of the package and no function is long, with few exceptions.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# Modules without a test file of their name, and the file that tests them. Do not add to it: write a file.
TESTED_IN = {
    # re-exports, types and interfaces
    "training/protocols": "training/test_solver",
    "ops/numpy/regularised": "ops/test_step_masks",
    # all of these run through the same checks, one case each
    "plain/*": "plain/test_layers",
    "metrics/scorers": "test_extras",
    # the modules of cs231n are other names of what is tested elsewhere
    "cs231n/*": "cs231n/test_course",
    # the files of the assignment are tested as a whole, filled in
    "course/assignment/*": "course/test_assignment_files",
}


def modules() -> list[str]:
    """The modules of the package, as paths without suffix."""
    paths = (path.relative_to(ROOT / "rnnlab") for path in (ROOT / "rnnlab").rglob("*.py"))
    return sorted(path.with_suffix("").as_posix() for path in paths if not path.name.startswith("__"))


def has_file(module: str) -> bool:
    path = Path(module)
    return (ROOT / "tests" / path.parent / f"test_{path.name}.py").is_file()


def test_a_module_has_a_test_file():
    excepted = {each for pattern in TESTED_IN for each in modules() if fnmatch(each, pattern)}
    assert modules()
    assert [
        f"rnnlab/{module}.py has no test file: "
        f"write {Path('tests', module).parent}/test_{Path(module).name}.py"
        for module in modules()
        if module not in excepted and not has_file(module)
    ] == []


@pytest.mark.parametrize("pattern", TESTED_IN)
def test_an_exception_is_needed_and_its_file_exists(pattern):
    assert [module for module in modules() if fnmatch(module, pattern) and not has_file(module)]
    assert (ROOT / "tests" / f"{TESTED_IN[pattern]}.py").is_file()


LINES_OF_A_FILE, LINES_OF_A_FUNCTION = 400, 80  # without docstrings


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all statements within it; others hold no definitions and have no docstrings."""
    yield node
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        inside = getattr(node, field, ())
        for each in inside if isinstance(inside, list) else ():
            yield from statements(each)


def length(node: ast.AST, lines: int) -> int:
    """How many of some lines of a module, a class or a function are not docstrings."""
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    found = (each for each in statements(node) if isinstance(each, kinds))
    docstrings = (each.body[0] for each in found if ast.get_docstring(each, clean=False))
    return lines - sum(each.end_lineno - each.lineno + 1 for each in docstrings)


def is_longer(path: Path, limit: int) -> bool:
    """Whether a file has more lines than so many."""
    text = path.read_text(encoding="utf-8")
    lines = len(text.splitlines())
    return lines > limit and length(ast.parse(text), lines) > limit


def functions(path: Path, limit: int) -> Iterator[tuple[str, int]]:
    """The functions and methods of a file that have more lines than so many, with their lengths."""
    text = path.read_text(encoding="utf-8")
    if len(text.splitlines()) <= limit:
        return
    for node in statements(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = node.end_lineno - node.lineno + 1
            if lines > limit and (rest := length(node, lines)) > limit:
                yield node.name, rest


SOME_CODE = '''
"""A module.

It has one function.
"""

def f():
    """One docstring."""
    x = """No
    docstring."""
    return x
'''


def test_docstrings_do_not_count(tmp_path):
    file = tmp_path / "some.py"
    file.write_text(SOME_CODE.lstrip())
    assert [is_longer(file, limit) for limit in (4, 5)] == [True, False]
    assert [list(functions(file, limit)) for limit in (3, 4)] == [[("f", 4)], []]


def test_functions_within_statements_are_found(tmp_path):
    file = tmp_path / "some.py"
    file.write_text(
        "class A:\n    if True:\n        pass\n    else:\n        try:\n            pass\n"
        "        except ValueError:\n            def f():\n                return 1\n"
    )
    assert list(functions(file, 1)) == [("f", 2)]


def test_files_of_the_package_are_short():
    paths = (ROOT / "rnnlab").rglob("*.py")
    longer = [path for path in paths if is_longer(path, LINES_OF_A_FILE)]
    assert not [path.relative_to(ROOT / "rnnlab").as_posix() for path in longer]


@pytest.mark.parametrize("folder", ["rnnlab", "tests", "benchmarks", "docs"])
def test_functions_are_short(folder):
    assert not [
        f"{path.relative_to(ROOT)}: {name} has {lines} lines"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for name, lines in functions(path, LINES_OF_A_FUNCTION)
    ]
