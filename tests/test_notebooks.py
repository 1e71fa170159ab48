"""Every notebook runs from top to bottom in a clean kernel, and is committed as such a run leaves it."""

from __future__ import annotations

import ast
import importlib
import json
import re
from pathlib import Path

import pytest

from rnnlab.course.notebook_cells import cleared, read_notebook

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted(ROOT.glob("notebooks/*.ipynb"))
USE = "with use("
ON_EXERCISES = [path for path in NOTEBOOKS if read_notebook(path).exercises and USE in path.read_text("utf8")]


@pytest.mark.notebooks
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path: Path) -> None:
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(path.parent)}}
    nbclient.NotebookClient(notebook, timeout=900, kernel_name="python3", resources=resources).execute()


@pytest.mark.notebooks
@pytest.mark.parametrize("path", ON_EXERCISES, ids=lambda path: path.stem)
def test_the_model_runs_on_what_students_write(path: Path) -> None:
    """With no exercise solved, each cell that puts functions into the model fails."""
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.read(path, as_version=4)
    for exercise in read_notebook(path).exercises:
        notebook.cells[exercise.index].source = cleared(exercise.source)
    resources = {"metadata": {"path": str(path.parent)}}
    nbclient.NotebookClient(
        notebook, timeout=900, kernel_name="python3", resources=resources, allow_errors=True
    ).execute()
    cells = [cell for cell in notebook.cells if cell.cell_type == "code" and USE in cell.source]
    raised = [[each.ename for each in cell.outputs if each.output_type == "error"] for cell in cells]
    assert raised[0] == ["NotImplementedError"]
    assert all(raised)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_committed_with_clean_outputs(path: Path) -> None:
    cells = [cell for cell in json.loads(path.read_text("utf8"))["cells"] if cell["cell_type"] == "code"]
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    assert not [
        output for output in outputs if output.get("name") == "stderr" or output["output_type"] == "error"
    ]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert not [output for output in outputs if "too large" in "".join(output.get("text", ""))]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_has_no_place_left_to_fill_in(path: Path) -> None:
    cells = json.loads(path.read_text("utf8"))["cells"]
    written = ["".join(cell["source"]).strip() for cell in cells]
    assert all(written)
    assert not [text for text in written if text.lower().startswith(("todo", "tbd", "fixme"))]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_links_lead_to_files(path: Path) -> None:
    cells = json.loads(path.read_text("utf8"))["cells"]
    text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    links = [link for link in re.findall(r"\]\(([^)]+)\)", text) if "://" not in link]
    assert [link for link in links if not (path.parent / link.partition("#")[0]).exists()] == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_imports_exist(path: Path) -> None:
    """What a notebook imports from rnnlab is there; to run it takes minutes."""
    cells = [cell for cell in json.loads(path.read_text("utf8"))["cells"] if cell["cell_type"] == "code"]
    source = "\n".join(
        line for cell in cells for line in "".join(cell["source"]).splitlines() if line[:1] != "%"
    )
    missing = [
        f"{node.module}.{alias.name}"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "rnnlab"
        for alias in node.names
        if not importable(node.module or "", alias.name)
    ]
    assert missing == []


def importable(module: str, name: str) -> bool:
    """Whether a module has the name or a submodule of it; modules that import CuPy are read as text."""
    path = ROOT / module.replace(".", "/")
    if (path / f"{name}.py").exists() or (path / name / "__init__.py").exists():
        return True
    if module.startswith("rnnlab.ops.cuda."):
        return (
            re.search(rf"^(def|class) {name}\b", path.with_suffix(".py").read_text("utf8"), re.M) is not None
        )
    return hasattr(importlib.import_module(module), name)
