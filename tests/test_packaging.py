"""A wheel holds the whole package, mypy finds an editable install, and modules are imported on first use."""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

import rnnlab

ROOT = Path(__file__).resolve().parents[1]
FIRST_USE = """
import rnnlab, sys
assert not {"numpy", "rnnlab.layers"} & set(sys.modules)
print(rnnlab.layers.recurrent.cell.__name__, rnnlab.parameters.__name__, "models" in dir(rnnlab))
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A copy of what the build reads, so that it leaves nothing in the repository."""
    pytest.importorskip("setuptools", minversion="77")
    copy = tmp_path_factory.mktemp("source")
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE", "NOTICE"):
        shutil.copy(ROOT / name, copy)
    shutil.copytree(ROOT / "rnnlab", copy / "rnnlab", ignore=shutil.ignore_patterns("__pycache__"))
    return copy


def build(source: Path, kind: str, out: Path) -> zipfile.ZipFile:
    """The wheel that setuptools builds; ``kind`` is "wheel" or "editable"."""
    program = f"from setuptools import build_meta; build_meta.build_{kind}({str(out)!r})"
    subprocess.run([sys.executable, "-c", program], cwd=source, check=True, capture_output=True)
    (wheel,) = out.glob("*.whl")
    return zipfile.ZipFile(wheel)


@pytest.mark.slow
def test_a_wheel_holds_every_module_and_kernel(source, tmp_path):
    files = [path.relative_to(ROOT).as_posix() for path in (ROOT / "rnnlab").rglob("*") if path.is_file()]
    expected = {name for name in files if "__pycache__" not in name and not name.endswith(".pyc")}
    with build(source, "wheel", tmp_path) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
        (metadata,) = [name for name in wheel.namelist() if name.endswith("/METADATA")]
        text = wheel.read(metadata).decode()
    assert names == expected
    assert any(name.endswith(".cu") for name in names)
    extras = {line.split()[1] for line in text.splitlines() if line.startswith("Provides-Extra:")}
    assert extras == {
        "bench", "course", "cuda12", "cuda13", "docs", "eval", "fast", "mpi", "notebooks", "otter", "report",
        "serve", "sklearn", "subword", "tensorboard", "test", "translation", "vision", "wandb",
    }  # fmt: skip


def test_an_editable_install_is_a_path_entry(source, tmp_path):
    with build(source, "editable", tmp_path) as wheel:
        names = [name for name in wheel.namelist() if ".dist-info/" not in name]
        assert [Path(name).suffix for name in names] == [".pth"]
        assert wheel.read(names[0]).decode().strip() == str(source)


@pytest.mark.slow
def test_mypy_finds_an_editable_install_from_outside(source, tmp_path):
    environment, outside = tmp_path / "environment", tmp_path / "outside"
    venv.create(environment, symlinks=True)
    (packages,) = environment.glob("lib/python*/site-packages")
    (packages / "others.pth").write_text("\n".join(path for path in sys.path if "site-packages" in path))
    (tmp_path / "wheels").mkdir()
    with build(source, "editable", tmp_path / "wheels") as wheel:
        wheel.extractall(packages)
    outside.mkdir()
    (outside / "program.py").write_text(
        "from rnnlab.models import CaptioningRNN\nreveal_type(CaptioningRNN.sample)\n"
        "from rnnlab.training import Sovler\n"
    )
    command = [sys.executable, "-m", "mypy", "--python-executable", str(environment / "bin" / "python")]
    command += ["--follow-imports=silent", "program.py"]
    found = subprocess.run(
        command, cwd=outside, text=True, capture_output=True, env={"PATH": ""}, check=False
    )
    assert 'has no attribute "Sovler"; maybe "Solver"?' in found.stdout
    assert "import-not-found" not in found.stdout
    assert "import-untyped" not in found.stdout


def test_modules_are_imported_on_first_use():
    run = subprocess.run([sys.executable, "-c", FIRST_USE], check=True, capture_output=True, text=True)
    assert run.stdout.split() == ["rnnlab.layers.recurrent.cell", "rnnlab.parameters", "True"]


def test_a_module_that_does_not_exist():
    with pytest.raises(AttributeError, match="^module 'rnnlab' has no attribute 'modles'$"):
        _ = rnnlab.modles
    assert not any(hasattr(rnnlab, name) for name in ("_layers", "layers.recurrent", ""))
    assert all(hasattr(rnnlab, name) for name in dir(rnnlab))


def test_a_module_whose_requirement_is_missing():
    """:func:`help` and :func:`inspect.getmembers` expect no other error than AttributeError."""
    program = (
        "import sys; sys.modules['matplotlib'] = None; import inspect, rnnlab; inspect.getmembers(rnnlab); "
        "assert not hasattr(rnnlab, 'plots') and hasattr(rnnlab, 'layers')"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
