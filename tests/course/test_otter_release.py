"""Assignments for Otter: the files, what students get, and what Otter's grading gives."""

import json
import os
import subprocess
import sys
import zipfile

import numpy as np
import pytest

import rnnlab
from rnnlab.course.release import Assignment, release

from . import small_notebook

SECRETS = (*small_notebook.SECRETS, "own=True", "# BEGIN", "# END")


@pytest.fixture(scope="module")
def notebooks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("notebooks")
    small_notebook.write(folder / "1_a.ipynb")
    return folder


@pytest.fixture(scope="module")
def course(notebooks, tmp_path_factory):
    """A course of one assignment, made by Otter Assign."""
    pytest.importorskip("otter")
    folder = tmp_path_factory.mktemp("courses")
    wheel = small_notebook.write_wheel(folder)
    found = release(
        folder / "course", notebooks=notebooks, wheel=wheel, rng=np.random.default_rng(0), format="otter"
    )
    assert found == [Assignment("1_a", exercises=2, answers=1, points=8)]
    return folder / "course"


def files(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def zip_of(course):
    (found,) = (course / "dist/1_a/autograder").glob("*.zip")
    return found


def test_the_files(course):
    wheel = f"rnnlab-{rnnlab.__version__}-py3-none-any.whl"
    assert files(course / "dist/1_a/student") == {
        *("1_a.ipynb", "LICENSE", "NOTICE", "README.md", "requirements.txt", wheel)
    }
    assert {"source/1_a/1_a.ipynb", "solutions/1_a.ipynb", f"dist/1_a/autograder/{wheel}"} <= files(course)
    assert (course / "dist/1_a/student/requirements.txt").read_text().startswith(f"./{wheel}\nnumpy==")
    with zipfile.ZipFile(zip_of(course)) as made:
        names = {*made.namelist()}
        assert {f"files/{wheel}", "tests/rnn_step_forward.py", "tests/rnn_step_backward.py"} <= names
        environment = made.read("environment.yml").decode()
        assert f"/autograder/source/files/{wheel}" in environment
        assert f"numpy=={np.__version__}" in environment
        assert f"python={sys.version_info.major}.{sys.version_info.minor}" in environment
        assert "own=True" in made.read("tests/rnn_step_forward.py").decode()


def test_students_get_stubs_and_visible_tests_alone(course):
    folder = course / "dist/1_a/student"
    for name in files(folder):
        if not name.endswith(".whl"):
            text = (folder / name).read_text("utf8")
            shown = text.replace("<!-- BEGIN QUESTION", "").replace("<!-- END QUESTION", "")
            assert [word for word in SECRETS if word in shown] == []
    made = json.loads((folder / "1_a.ipynb").read_text("utf8"))
    assert not [cell for cell in made["cells"] if cell.get("outputs") or cell.get("execution_count")]
    texts = ["".join(cell["source"]) for cell in made["cells"]]
    stub = '    """One step; x is (N, D)."""\n    raise NotImplementedError()'
    assert f"def rnn_step_forward(x, prev_h, Wx, Wh, b):\n{stub}" in texts
    assert 'grader.check("rnn_step_backward")' in texts
    assert "Type your answer here" in "".join(texts)
    tests = made["metadata"]["otter"]["tests"]
    assert {*tests} == {"rnn_step_forward", "rnn_step_backward"}
    assert all("check('rnn_step'" in json.dumps(each) for each in tests.values())


LIBRARY = "from rnnlab.plain.rnn import rnn_step_backward, rnn_step_forward"


@pytest.mark.parametrize(("kind", "points"), [("right", (1, 5)), ("stub", (0, 0)), ("cheat", (0, 0))])
def test_grading(course, tmp_path, kind, points):
    """`otter run`; the cheat is a function of the library, and one that is deleted."""
    path = course / "dist/1_a" / ("autograder" if kind == "right" else "student") / "1_a.ipynb"
    made = json.loads(path.read_text("utf8"))
    for cell in made["cells"]:
        text = "".join(cell["source"])
        if kind == "cheat" and text.startswith("def rnn_step_"):
            cell["source"] = LIBRARY if "forward(" in text else "del rnn_step_backward"
    submission = tmp_path / "1_a.ipynb"
    submission.write_text(json.dumps(made), "utf8")
    command = [sys.executable, "-m", "otter", "run", str(submission)]
    command += ["-a", str(zip_of(course)), "-o", str(tmp_path)]
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    subprocess.run(command, check=True, cwd=tmp_path, env=os.environ | {"PATH": path}, capture_output=True)
    tests = json.loads((tmp_path / "results.json").read_text("utf8"))["tests"]
    found = {each["name"]: (each.get("score"), each.get("max_score")) for each in tests}
    for name, expected, most in zip(("rnn_step_forward", "rnn_step_backward"), points, (1, 5), strict=True):
        assert found[name] == (expected, most)


# ---------------------------------------------------------------- refusals


def test_without_otter_nothing_is_written(notebooks, tmp_path, monkeypatch):
    monkeypatch.setattr("rnnlab.extras.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r'needs otter-grader: pip install "rnnlab\[otter\]"'):
        release(tmp_path / "course", notebooks=notebooks, format="otter")
    assert list(tmp_path.iterdir()) == []


def test_another_format(notebooks, tmp_path):
    with pytest.raises(ValueError, match="format is 'okpy', expected one of: nbgrader, otter"):
        release(tmp_path / "course", notebooks=notebooks, format="okpy")


def test_a_notebook_that_otter_refuses_leaves_nothing(tmp_path):
    pytest.importorskip("otter")
    cells = [*small_notebook.cells(), small_notebook.cell("raw", "# END QUESTION")]
    small_notebook.write(tmp_path / "notebooks" / "1_a.ipynb", cells)
    with pytest.raises(ValueError, match="Otter refuses the assignment 1_a: .*end question cell"):
        release(tmp_path / "new" / "course", notebooks=tmp_path / "notebooks", format="otter")
    assert list((tmp_path / "new").iterdir()) == []
