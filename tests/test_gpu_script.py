"""``.ci/gpu`` runs every test that is marked ``gpu``, and its parts do not depend on each other."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason=".ci/gpu needs Linux")

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


def test_the_limits_of_all_parts_fit_14_minutes():
    limits = re.findall(r"\bpart (\S+) (\d+) ", SCRIPT)  # the tools run at the same time
    assert len(limits) == 11
    assert sum(int(seconds) for _, seconds in limits) <= 14 * 60


def test_all_suites_for_a_gpu_are_measured():
    from benchmarks.__main__ import GPU_SUITES

    names = re.search(r"-m benchmarks ((?:[a-z]+ )+)--device gpu", SCRIPT)[1]
    assert sorted(names.split()) == sorted(GPU_SUITES)


@pytest.fixture
def run_script(tmp_path):
    """A function that runs the script with programs in place of Python and compute-sanitizer."""

    def run(command: str, program: str) -> subprocess.CompletedProcess[str]:
        for name in ("python", "compute-sanitizer"):
            path = tmp_path / "bin" / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"#!/bin/sh\n{program}\n")
            path.chmod(0o755)
        environment = os.environ | {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
        return subprocess.run(
            ["bash", ROOT / ".ci" / "gpu", tmp_path / "results", command],
            env=environment,
            capture_output=True,
            text=True,
        )

    return run


@pytest.mark.parametrize(
    ("command", "parts", "names"),
    [
        ("checks", 20, "initcheck memcheck memory racecheck registers same_bits synccheck tests"),
        ("times", 6, "kernels persistent precision suites"),
    ],
)
def test_a_part_that_fails_does_not_end_the_others(command, parts, names, run_script, tmp_path):
    done = run_script(command, "echo some output; exit 3")
    assert done.returncode == 1
    assert done.stderr == ""
    assert done.stdout.count("exit status 3, ") == parts
    files = sorted((tmp_path / "results").iterdir())
    assert [path.name for path in files] == [f"{name}.txt" for name in names.split()]
    assert sum(path.read_text().count("some output") for path in files) == parts
    assert run_script(command, "exit 0").returncode == 0


def test_arrays_have_memory_of_their_own_where_a_tool_checks_memory(run_script, tmp_path):
    run_script("checks", 'echo "raw: $RNNLAB_TEST_RAW_MEMORY"')
    raw = {path.stem for path in (tmp_path / "results").iterdir() if "raw: 1" in path.read_text()}
    assert raw == {"memcheck", "initcheck"}


# ---------------------------------------------------------------- its programs


def program(name: str) -> ModuleType:
    """A Python file beside the script, as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / ".ci" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def same_bits(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)  # benchmarks is not installed
    return program("same_bits")


def test_a_training_has_the_same_bits_again(same_bits, simulated, monkeypatch):
    captioning = importlib.import_module("benchmarks.captioning")
    sizes = captioning.Sizes(N=4, T=7, D=6, W=4, H=8, V=20, mean=4, spread=2, least=2, most=6)
    monkeypatch.setitem(captioning.CASES, same_bits.CASE, sizes)
    monkeypatch.setattr(same_bits, "STEPS", 3)
    found = same_bits.trained()
    assert simulated.launches["graph"] == 2
    assert same_bits.trained() == found
    monkeypatch.setattr(same_bits, "STEPS", 2)
    assert same_bits.trained() != found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("process", "status", "differ"),
    [
        ("import os; print(os.environ['RNNLAB_MATMUL'])", 0, "none"),
        ("import os; print(os.getpid())", 1, "float32, tf32, tf32x3, bfloat16"),
        ("", 1, "none"),
    ],
)
def test_hashes_that_differ(process, status, differ, same_bits, monkeypatch, capsys):
    monkeypatch.setattr(same_bits, "COMMAND", [sys.executable, "-c", process])
    assert same_bits.main() == status
    *hashes, last = capsys.readouterr().out.splitlines()
    assert len(hashes) == 8
    assert all(line.endswith("failed") for line in hashes) == (process == "")
    assert last == f"differ: {differ}"


def test_registers_of_every_kernel_in_use(simulated):
    kernels = set(program("registers").kernels())
    of_sequences = {each for each in kernels if each[2]}
    assert ("lstm_forward", "float64", ()) in kernels
    expected = ("lstm_sequences_forward", "float32", ("-DBLOCK_ROWS=1", "-DQUADS=8", "-DHELD=24"))
    assert expected in of_sequences
    assert {name for name, _, _ in of_sequences} == {"lstm_sequences_forward", "lstm_sequences_backward"}
