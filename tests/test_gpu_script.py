"""``.ci/gpu`` runs every test that is marked ``gpu``."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = (ROOT / ".ci" / "gpu").read_text()


def selected(path: Path) -> bool:
    """Whether the script selects a file, by its text or its folder."""
    pattern = re.search(r"grep -rlE '([^']+)' tests", SCRIPT)[1]
    return path.match("tests/ops/cuda/test_*.py") or bool(re.search(pattern, (ROOT / path).read_text()))


@pytest.mark.slow
def test_it_selects_all_files_with_tests_for_a_gpu():
    command = [sys.executable, "-m", "pytest", "-m", "gpu", "--collect-only", "-q", "-p", "no:cacheprovider"]
    found = subprocess.run([*command, "tests"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = {Path(line.partition("::")[0]) for line in found.splitlines() if "::" in line}
    assert len(files) > 40
    assert [path for path in sorted(files) if not selected(path)] == []


def test_the_test_that_runs_alone_exists():
    name = re.search(r"^memory_test=(\w+)", SCRIPT, re.MULTILINE)[1]
    assert f"def test_{name}" in (ROOT / "tests/training/test_devices.py").read_text()


@pytest.mark.parametrize("arguments", [[], ["folder"], ["folder", "both"]])
def test_wrong_arguments(arguments, tmp_path):
    done = subprocess.run(
        ["bash", ROOT / ".ci" / "gpu", *arguments], cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "usage: .ci/gpu FOLDER checks|times\n"
    assert not list(tmp_path.iterdir())
