"""The notebooks of the repository as they are released: nothing given away, solutions pass, stubs fail."""

from __future__ import annotations

import ast
import functools
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from rnnlab.course import WrongFunction, nbgrader_release
from rnnlab.course.notebook_cells import BEGIN_SOLUTION, END_SOLUTION, read_content, read_notebook
from rnnlab.course.release import release
from rnnlab.course.source_notebook import BEGIN_HIDDEN, source_notebook

from .autograding import autograde

pytest.importorskip("nbgrader")

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = [path for path in sorted(ROOT.glob("notebooks/*.ipynb")) if read_notebook(path).exercises]
each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
# nbgrader takes a second for each notebook: the default tests release two.
each_released_notebook = pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=[pytest.mark.slow] * (n not in (0, 3))) for n, path in enumerate(NOTEBOOKS)],
    ids=lambda path: path.stem,
)


@pytest.fixture(scope="module")
def courses(tmp_path_factory, quick_databases):
    """A function that releases a notebook, once."""

    @functools.cache
    def course(path):
        directory = tmp_path_factory.mktemp("courses") / "course"
        release(directory, notebooks=ROOT / "notebooks", only=[path.stem])
        return directory

    return course


@pytest.fixture
def course(path, courses):
    return courses(path)


@pytest.fixture
def source(path, tmp_path):
    """The instructor's notebook with hidden tests."""
    made = source_notebook(read_content(path), read_notebook(path), np.random.default_rng())
    (tmp_path / path.name).write_text(json.dumps(made), "utf8")
    return tmp_path / path.name


def cells(path):
    return [
        (cell["cell_type"], cell["metadata"].get("nbgrader", {}).get("grade_id"), "".join(cell["source"]))
        for cell in json.loads(path.read_text("utf8"))["cells"]
    ]


def namespace_of(path):
    """What a notebook imports, defines and names, and its exercises; nothing else of it is executed."""
    exercises = {cell.grade_id for cell in read_notebook(path).exercises}
    namespace: dict = {}
    for kind, grade_id, source in cells(path):
        if kind != "code":
            continue
        tree = ast.parse(re.sub(r"^%.*$", "", source, flags=re.M))
        if grade_id not in exercises:
            tree.body = [each for each in tree.body if grade_id is None and defines(each)]
        exec(compile(tree, path.name, "exec"), namespace)
    return namespace


def defines(statement):
    """Whether a statement imports, defines a function, or names constants."""
    if isinstance(statement, ast.Assign):
        values = [each for each in ast.walk(statement.value) if isinstance(each, ast.expr)]
        return all(isinstance(each, ast.Constant | ast.Tuple) for each in values)
    return isinstance(statement, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef)


def hidden_tests(source):
    """The hidden tests, by the name of their cell."""
    tests = read_notebook(source).tests
    return {cell.grade_id: cell.source.partition(BEGIN_HIDDEN)[2].partition("\n")[2] for cell in tests}


def test_the_gpu_notebook_is_not_released(tmp_path, monkeypatch):
    def generate(folder, course_id, stem):
        (folder / "release" / stem).mkdir(parents=True)

    monkeypatch.setattr(nbgrader_release, "generate", generate)
    release(tmp_path / "course", notebooks=ROOT / "notebooks")
    assert sorted(path.stem for path in (tmp_path / "course" / "release").glob("*.zip")) == [
        path.stem for path in NOTEBOOKS
    ]
    assert "8_gpu" not in {path.stem for path in NOTEBOOKS}
    assert NOTEBOOKS


@each_released_notebook
def test_nothing_is_given_away(path, course):
    folder = course / "release" / path.stem
    released = json.loads((folder / path.name).read_text("utf8"))["cells"]
    assert not [cell for cell in released if cell.get("outputs") or cell.get("execution_count")]
    assert not [cell for cell in released if cell.get("attachments")]
    texts = [file.read_text("utf8") for file in folder.iterdir() if file.suffix != ".ipynb"]
    everything = "\n".join([*texts, *(source for *_, source in cells(folder / path.name))])
    given_away = "<details>|An answer|SOLUTION|HIDDEN TESTS|hidden_check|hidden_seed|own=True|self-study"
    assert not re.findall(given_away, everything)
    (_, _, opening), *_ = cells(folder / path.name)
    assert not re.findall(r"rnnlab/(plain|layers)|already", opening)  # where solutions are
    notebook = read_notebook(path)
    for answer in notebook.answers:
        text = re.sub(r"</?details>|<summary>.*</summary>", "", answer.source)
        lines = [line for line in text.splitlines() if line.strip()]
        assert lines
        assert [line for line in lines if line in everything] == []
    for exercise in notebook.exercises:
        solution = exercise.source.partition(BEGIN_SOLUTION)[2].partition(END_SOLUTION)[0].strip()
        assert solution
        assert solution not in everything


@each_released_notebook
def test_students_get_signatures_and_docstrings(path, course):
    released = read_notebook(course / "release" / path.stem / path.name)
    for before, after in zip(read_notebook(path).exercises, released.exercises, strict=True):
        (old,) = [each for each in ast.parse(before.source).body if isinstance(each, ast.FunctionDef)]
        (new,) = [each for each in ast.parse(after.source).body if isinstance(each, ast.FunctionDef)]
        assert (new.name, ast.unparse(new.args)) == (old.name, ast.unparse(old.args))
        assert ast.get_docstring(new) == ast.get_docstring(old)
        assert ast.get_docstring(new)
        assert ast.unparse(new.body[1:]) == "raise NotImplementedError()"
    assert {cell.source for cell in released.answers} <= {"YOUR ANSWER HERE"}
    assert [cell.points for cell in released.cells] == [cell.points for cell in read_notebook(path).cells]


@each_released_notebook
def test_links_are_not_dead(path, course):
    text = "\n".join(
        source for kind, _, source in cells(course / "release" / path.stem / path.name) if kind == "markdown"
    )
    links = [link for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link and link[:1] != "#"]
    assert links == []


@each_released_notebook
def test_requirements(path, course):
    lines = (course / "release" / path.stem / "requirements.txt").read_text("utf8").splitlines()
    assert {line.partition("==")[0] for line in lines} >= {"rnnlab", "numpy", "matplotlib"}
    assert all(re.fullmatch(r"[\w-]+==[\w.]+", line) for line in lines)


@each_notebook
def test_solutions_pass_the_hidden_tests(source, capsys):
    namespace = namespace_of(source)
    for test in hidden_tests(source).values():
        exec(test, namespace)
    assert "wrong" not in capsys.readouterr().out


@each_released_notebook
def test_stubs_fail_the_hidden_tests(path, course):
    source = course / "source" / path.stem / path.name
    solved = namespace_of(source)
    stubs = namespace_of(course / "release" / path.stem / path.name)
    for grade_id, test in hidden_tests(source).items():
        name = grade_id.removeprefix("test_")
        with pytest.raises(WrongFunction, match=f"{name} is not implemented yet"):
            exec(test, solved | {name: stubs[name]})


@pytest.mark.long
@pytest.mark.filterwarnings("default")  # nbgrader's dependencies warn
def test_autograde_of_the_first_notebook(courses, tmp_path):
    stem = NOTEBOOKS[0].stem
    copy = Path(shutil.copytree(courses(NOTEBOOKS[0]), tmp_path / "course"))
    folders = {"right": "source", "blank": "release"}
    found = autograde(
        copy, {student: copy / folder / stem / f"{stem}.ipynb" for student, folder in folders.items()}
    )
    points = {cell.grade_id: cell.points for cell in read_notebook(NOTEBOOKS[0]).tests}
    answers = {cell.grade_id for cell in read_notebook(NOTEBOOKS[0]).answers}
    assert found["right"] == points | dict.fromkeys(answers)  # answers are graded by hand
    assert found["blank"] == dict.fromkeys([*points, *answers], 0)
