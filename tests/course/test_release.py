"""A released course: what is in it, what is not, and that nbgrader works with it."""

import json
import os
import re
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest

import rnnlab
from rnnlab.course import nbgrader_release
from rnnlab.course.notebook_cells import read_notebook
from rnnlab.course.release import Assignment, find_notebooks, release

from . import small_notebook
from .autograding import autograde

pytest.importorskip("nbgrader")
pytestmark = pytest.mark.usefixtures("quick_databases")

FILES = {"1_a.ipynb", "LICENSE", "NOTICE", "README.md", "requirements.txt"}


@pytest.fixture(scope="module")
def notebooks(tmp_path_factory):
    """A folder with two assignments, and a notebook without exercises."""
    folder = tmp_path_factory.mktemp("notebooks")
    for name in ("1_a.ipynb", "2_b.ipynb"):
        small_notebook.write(folder / name)
    small_notebook.write(folder / "8_c.ipynb", small_notebook.cells()[:1])
    (folder / "._1_a.ipynb").write_bytes(b"\0\5\26\7")  # as macOS writes them
    return folder


@pytest.fixture(scope="module")
def course(notebooks, tmp_path_factory, quick_databases):
    """A released course of one assignment."""
    directory = tmp_path_factory.mktemp("courses") / "course"
    (made,) = release(directory, notebooks=notebooks, only=["1"], rng=np.random.default_rng(0))
    assert made == Assignment("1_a", exercises=2, answers=1, points=8)
    return directory


def test_the_seed_of_a_release(notebooks, course, tmp_path):
    with pytest.raises(TypeError, match="^release: rng is 'x', expected a numpy Generator or a seed"):
        release(tmp_path / "none", notebooks=notebooks, only=["1"], rng="x")
    assert not any(tmp_path.iterdir())
    release(tmp_path / "course", notebooks=notebooks, only=["1"], rng=0)
    (made,) = (course / "source").rglob("1_a.ipynb")
    (again,) = (tmp_path / "course" / "source").rglob("1_a.ipynb")
    assert again.read_text("utf8") == made.read_text("utf8")


def files(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def texts(path):
    return ["".join(cell["source"]) for cell in json.loads(path.read_text("utf8"))["cells"]]


def run(path, *grade_ids):
    """Execute the first code cell and these cells in a namespace; an exercise or test by its name."""
    cells = [cell for cell in json.loads(path.read_text("utf8"))["cells"] if cell["cell_type"] == "code"]
    by_id = {cell["metadata"].get("nbgrader", {}).get("grade_id"): "".join(cell["source"]) for cell in cells}
    namespace = {"__name__": "__main__"}
    for source in ["".join(cells[0]["source"]), *(by_id[each] for each in grade_ids)]:
        exec(source, namespace)
    return namespace


# ---------------------------------------------------------------- what is in it


@pytest.mark.slow
def test_the_files(course):
    assert files(course) == {
        "nbgrader_config.py",
        "gradebook.db",
        "solutions/1_a.ipynb",
        "release/1_a.zip",
        *(f"{step}/1_a/{name}" for step in ("source", "release") for name in FILES),
    }
    assert [path.name for path in course.parent.iterdir()] == ["course"]
    with zipfile.ZipFile(course / "release" / "1_a.zip") as made:
        assert {*made.namelist()} == {f"1_a/{name}" for name in FILES}
        assert made.read("1_a/1_a.ipynb") == (course / "release/1_a/1_a.ipynb").read_bytes()


def test_the_solutions_are_the_notebook_as_it_is(course, notebooks):
    assert (course / "solutions" / "1_a.ipynb").read_bytes() == (notebooks / "1_a.ipynb").read_bytes()


def test_students_get_neither_solutions_nor_answers_nor_hidden_tests(course):
    whole = json.loads((course / "release/1_a/1_a.ipynb").read_text("utf8"))
    source = (course / "source/1_a/1_a.ipynb").read_text("utf8")
    for word in small_notebook.SECRETS:
        assert word in source
        for name in FILES:
            assert word not in (course / "release/1_a" / name).read_text("utf8")
    assert not [cell for cell in whole["cells"] if cell.get("outputs") or cell.get("execution_count")]
    found = texts(course / "release/1_a/1_a.ipynb")
    stub = '    """One step; x is (N, D)."""\n    # YOUR CODE HERE\n    raise NotImplementedError()'
    assert found[2] == f"def rnn_step_forward(x, prev_h, Wx, Wh, b):\n{stub}"
    assert found[3] == small_notebook.TESTS["rnn_step_forward"]
    assert found[6:] == [small_notebook.QUESTION, "YOUR ANSWER HERE"]


def test_the_seeds_of_hidden_tests_are_new_in_every_release(course, notebooks, tmp_path):
    release(tmp_path / "other", notebooks=notebooks, only=["1_a"])
    sources = [(each / "source/1_a/1_a.ipynb").read_text("utf8") for each in (course, tmp_path / "other")]
    seeds = [set(re.findall(r"\d{7,}", " ".join(re.findall(r"seed in \(.*?\)", each)))) for each in sources]
    assert all(seeds)
    assert not seeds[0] & seeds[1]


def test_solutions_pass_and_stubs_fail(course, capsys):
    cells = ["rnn_step_forward", "test_rnn_step_forward", "rnn_step_backward", "test_rnn_step_backward"]
    run(course / "source/1_a/1_a.ipynb", *cells)
    assert capsys.readouterr().out.count("rnn_step: ") == 2 * (1 + 3)
    for cell in cells[1::2]:
        with pytest.raises(NotImplementedError):
            run(course / "release/1_a/1_a.ipynb", *cells[:1], cells[1])
        with pytest.raises((NotImplementedError, AssertionError), match="not implemented|^$"):
            run(course / "release/1_a/1_a.ipynb", cells[0], cells[2], cell)


def test_the_librarys_functions_pass_the_visible_tests_alone(course):
    names = ["rnn_step_forward", "test_rnn_step_forward"]
    library = "from rnnlab.plain.rnn import rnn_step_forward"
    for step, passes in (("release", True), ("source", False)):
        path = course / step / "1_a/1_a.ipynb"
        namespace = run(path, names[0])
        exec(library, namespace)
        test = next(cell.source for cell in read_notebook(path).tests if cell.grade_id == names[1])
        if passes:
            exec(test, namespace)
        else:
            with pytest.raises(AssertionError, match="the library's own"):
                exec(test, namespace)


def test_a_wheel_lies_beside_the_notebook(notebooks, tmp_path):
    wheel = small_notebook.write_wheel(tmp_path)
    release(tmp_path / "course", notebooks=notebooks, only=["1"], wheel=wheel)
    folder = tmp_path / "course" / "release" / "1_a"
    assert (folder / wheel.name).read_bytes() == wheel.read_bytes()
    assert (folder / "requirements.txt").read_text().startswith(f"./{wheel.name}\nnumpy==")


# ---------------------------------------------------------------- nbgrader


@pytest.mark.filterwarnings("ignore:datetime.datetime.utcnow:DeprecationWarning")  # from Python 3.12 on
def test_nbgrader_knows_the_assignment(course):
    from nbgrader.apps import NbGraderAPI
    from nbgrader.coursedir import CourseDirectory

    api = NbGraderAPI(CourseDirectory(root=str(course), course_id="rnnlab"))
    (found,) = api.get_assignments()
    assert (found["name"], found["max_score"], found["max_code_score"]) == ("1_a", 8, 6)


@pytest.fixture
def copy(course, tmp_path):
    return Path(shutil.copytree(course, tmp_path / "course"))


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # nbgrader's dependencies warn
def test_autograde(copy, tmp_path):
    right = copy / "source/1_a/1_a.ipynb"
    warning = tmp_path / "warns/1_a.ipynb"  # right, but NumPy warns whenever it is called
    warning.parent.mkdir()
    warning.write_text(
        right.read_text("utf8").replace("next_h = np.tanh(", "np.log(0 * b); next_h = np.tanh(")
    )
    found = autograde(copy, {"right": right, "warns": warning, "blank": copy / "release/1_a/1_a.ipynb"})
    points = {"test_rnn_step_forward": 1, "test_rnn_step_backward": 5, "answer_1": None}
    assert found == {
        "right": points,
        "warns": points,
        "blank": {"test_rnn_step_forward": 0, "test_rnn_step_backward": 0, "answer_1": 0},
    }


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_path_that_exists_is_left_alone(kind, notebooks, tmp_path):
    target = tmp_path / "course"
    mine = target / "mine" if kind == "folder" else target
    mine.parent.mkdir(exist_ok=True)
    mine.write_text("mine")
    with pytest.raises(
        FileExistsError, match=r"course exists, expected no such path or an empty folder: nothing"
    ):
        release(target, notebooks=notebooks)
    assert mine.read_text() == "mine"
    assert len(list(tmp_path.rglob("*"))) == (2 if kind == "folder" else 1)


def test_the_current_folder_is_not_replaced(notebooks, tmp_path, monkeypatch):
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    with pytest.raises(FileExistsError, match="release: directory is the current folder, expected another"):
        release(".", notebooks=notebooks)
    assert (tmp_path / "empty").is_dir()


def test_a_link_to_an_empty_folder_is_left_alone(notebooks, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "course").symlink_to(tmp_path / "folder")
    with pytest.raises(FileExistsError, match=r"course exists, expected no such path or an empty folder"):
        release(tmp_path / "course", notebooks=notebooks)
    assert (tmp_path / "course").is_symlink()


def test_an_empty_folder_is_filled(notebooks, tmp_path):
    before = os.umask(0o027)
    try:
        assert [each.name for each in release(tmp_path, notebooks=notebooks)] == ["1_a", "2_b"]
    finally:
        os.umask(before)
    assert (tmp_path / "release" / "2_b.zip").is_file()
    assert tmp_path.stat().st_mode & 0o777 == 0o750


@pytest.mark.parametrize("error", [OSError("no space"), KeyboardInterrupt()])
def test_an_interrupted_release_leaves_nothing(error, notebooks, tmp_path, monkeypatch):
    def interrupted(folder, course_id, stem):
        if stem == "2_b":
            assert (folder / "release" / "1_a.zip").is_file()
            raise error
        generate(folder, course_id, stem)

    generate = nbgrader_release.generate
    monkeypatch.setattr(nbgrader_release, "generate", interrupted)
    with pytest.raises(type(error)):
        release(tmp_path / "new" / "course", notebooks=notebooks)
    assert list((tmp_path / "new").iterdir()) == []


def test_notebooks_that_are_not_there(notebooks, tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match=rf"no notebooks .* in {tmp_path}: --notebooks"):
        find_notebooks(tmp_path)
    monkeypatch.setattr(rnnlab, "__file__", str(tmp_path / "site-packages" / "rnnlab" / "__init__.py"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"no notebooks .*site-packages.notebooks or notebooks: "):
        find_notebooks()
    shutil.copytree(notebooks, tmp_path / "notebooks")
    assert [each.path.as_posix() for each in find_notebooks()] == [
        f"notebooks/{name}.ipynb" for name in ("1_a", "2_b", "8_c")
    ]


def test_notebooks_that_cannot_be_released(notebooks, tmp_path):
    for only in (["8"], ["3"], ["1", "rnn"]):
        with pytest.raises(
            ValueError, match=f"only names '{only[-1]}', expected numbers or names of: 1_a, 2_b"
        ):
            release(tmp_path / "course", notebooks=notebooks, only=only)
    (tmp_path / "notebooks").mkdir()
    shutil.copy(notebooks / "8_c.ipynb", tmp_path / "notebooks")
    with pytest.raises(ValueError, match=f"no notebook in {tmp_path}.notebooks has exercises"):
        release(tmp_path / "course", notebooks=tmp_path / "notebooks")
    assert not (tmp_path / "course").exists()


def test_without_nbgrader_nothing_is_written(notebooks, tmp_path, monkeypatch):
    monkeypatch.setattr("rnnlab.extras.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"rnnlab\[course\]"):
        release(tmp_path / "course", notebooks=notebooks)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("def rnn_step_forward", "def scale_it"), None),
        (("    ### END SOLUTION", ""), "cell rnn_step_forward: no pair of ### BEGIN SOLUTION and ### END"),
    ],
)
def test_functions_that_could_not_be_marked(change, message, tmp_path):
    made = small_notebook.cells()
    made[2]["source"] = made[2]["source"].replace(*change)
    if message is None:  # a function that is no exercise of the course
        made[2]["metadata"]["nbgrader"]["grade_id"] = "scale_it"
        message = "cell scale_it: exercise is 'scale_it', expected one of affine, "
    small_notebook.write(tmp_path / "notebooks/1_a.ipynb", made)
    with pytest.raises(ValueError, match=f"^release: 1_a.ipynb, {message}"):
        release(tmp_path / "course", notebooks=tmp_path / "notebooks")
    assert not (tmp_path / "course").exists()


def test_a_function_without_a_test(tmp_path):
    made = small_notebook.cells()
    del made[3]
    small_notebook.write(tmp_path / "notebooks/1_a.ipynb", made)
    with pytest.raises(ValueError, match="cell rnn_step_forward: found no test_rnn_step_forward, exp"):
        release(tmp_path / "course", notebooks=tmp_path / "notebooks")
