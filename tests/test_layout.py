"""The tests mirror the package: ``rnnlab/a/b.py`` is tested in ``tests/a/test_b.py``, with few exceptions."""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# Modules without a test file of their name, and the file that tests them. Do not add to it: write a file.
TESTED_IN = {
    # re-exports, types and interfaces
    "types": "test_layout",
    "training/protocols": "training/test_solver",
    "ops/cuda/lstm_steps": "ops/test_lstm_steps",
    "ops/numpy/lstm_steps": "ops/test_lstm_steps",
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
