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
    "types": "test_layout",
    "training/protocols": "training/test_solver",
    "ops/numpy/regularised": "ops/test_step_masks",
    # all of these run through the same checks, one case each
    "plain/*": "plain/test_layers",
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


@pytest.mark.parametrize("module", modules())
def test_a_module_has_a_test_file(module):
    if not has_file(module):
        assert [pattern for pattern in TESTED_IN if fnmatch(module, pattern)], (
            f"rnnlab/{module}.py has no test file: "
            f"write {Path('tests', module).parent}/test_{Path(module).name}.py"
        )


@pytest.mark.parametrize("pattern", TESTED_IN)
def test_an_exception_is_needed_and_its_file_exists(pattern):
    assert [module for module in modules() if fnmatch(module, pattern) and not has_file(module)]
    assert (ROOT / "tests" / f"{TESTED_IN[pattern]}.py").is_file()


LINES_OF_A_FILE, LINES_OF_A_FUNCTION = 400, 80  # without docstrings

# Longer files of the package, and the reason. Do not add to it: a file holds one idea.
LONGER = {
    "course/misconceptions.py": "a table of the known mistakes",
}


def length(node: ast.AST, lines: int) -> int:
    """How many of some lines of a module, a class or a function are not docstrings."""
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    described = (each for each in ast.walk(node) if isinstance(each, kinds) and ast.get_docstring(each))
    docstrings = (each.body[0] for each in described)
    return lines - sum(each.end_lineno - each.lineno + 1 for each in docstrings)


def length_of_file(path: Path) -> int:
    text = path.read_text(encoding="utf-8")
    return length(ast.parse(text), len(text.splitlines()))


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """The functions and methods of a file, with their lengths."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, length(node, node.end_lineno - node.lineno + 1)


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
    assert length_of_file(file) == 5
    assert list(functions(file)) == [("f", 4)]


def test_files_of_the_package_are_short():
    lengths = {
        path.relative_to(ROOT / "rnnlab").as_posix(): length_of_file(path)
        for path in (ROOT / "rnnlab").rglob("*.py")
    }
    assert {name for name, lines in lengths.items() if lines > LINES_OF_A_FILE} == LONGER.keys()


@pytest.mark.parametrize("folder", ["rnnlab", "tests", "benchmarks", "docs"])
def test_functions_are_short(folder):
    found = {path: functions(path) for path in sorted((ROOT / folder).rglob("*.py"))}
    assert not [
        f"{path.relative_to(ROOT)}: {name} has {lines} lines"
        for path, each in found.items()
        for name, lines in each
        if lines > LINES_OF_A_FUNCTION
    ]
