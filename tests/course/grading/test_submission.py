"""What is read from a student's notebook."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rnnlab.course.check import examine
from rnnlab.course.exercises import exercise
from rnnlab.course.grading.submission import (
    BadSubmission,
    Submission,
    helpers,
    library_functions,
    read_submission,
    solution,
)
from rnnlab.course.notebook_cells import read_notebook
from rnnlab.plain.lstm import lstm_step_backward

from ..small_notebook import SOLUTIONS, TESTS, cell, cells, write
from .submissions import stub, submission


def test_a_right_submission(source: Path, tmp_path: Path) -> None:
    path = write(tmp_path / "rnn.ipynb", submission("%matplotlib inline\nx = 1"))
    found = read_submission(path, read_notebook(source))
    assert set(found.exercises) == set(SOLUTIONS)
    assert "BEGIN SOLUTION" not in found.exercises["rnn_forward"]
    assert list(found.others.values()) == ["pass\nx = 1"]
    assert found.changed_tests == ()
    assert found.answers == {"answer_1": True}


def test_a_function_in_another_cell(source: Path, tmp_path: Path) -> None:
    notebook = submission("def rnn_forward(x, h0, Wx, Wh, b):\n    return 1", rnn_forward="# see below")
    found = read_submission(write(tmp_path / "rnn.ipynb", notebook), read_notebook(source))
    assert found.exercises["rnn_forward"].endswith("return 1")
    assert not found.others


def test_a_cell_that_was_split(source: Path, tmp_path: Path) -> None:
    """The first half keeps the name, and has a helper of the function in the second one."""
    helper, function = "def one():\n    return 1", "def rnn_forward(x, h0, Wx, Wh, b):\n    return one()"
    notebook = submission(function, rnn_forward=helper)
    found = read_submission(write(tmp_path / "rnn.ipynb", notebook), read_notebook(source))
    assert found.exercises["rnn_forward"] == f"{helper}\n\n{function}"


def test_cells_that_were_merged(source: Path, tmp_path: Path) -> None:
    notebook = submission()
    step = next(each for each in notebook if "def rnn_step_backward" in each["source"])
    forward = next(each for each in notebook if "def rnn_step_forward" in each["source"])
    notebook.remove(step)
    forward["source"] += f"\n\n{step['source']}"
    path = write(tmp_path / "rnn.ipynb", notebook)
    assert "rnn_step_backward" in read_submission(path, read_notebook(source)).exercises


def test_cells_of_one_name(source: Path, tmp_path: Path) -> None:
    """The first counts; a copy of it is a cell of the student's own."""
    notebook = submission()
    copied = json.loads(json.dumps(notebook[2])) | {"source": "def rnn_step_forward(): pass"}
    notebook.append(copied)
    found = read_submission(write(tmp_path / "rnn.ipynb", notebook), read_notebook(source))
    assert "np.tanh" in found.exercises["rnn_step_forward"]
    assert list(found.others.values()) == ["def rnn_step_forward(): pass"]


def test_changed_tests(source: Path, tmp_path: Path) -> None:
    notebook = submission()
    for each in notebook:
        each["source"] = each["source"].replace(TESTS["rnn_forward"], "check = print")
    found = read_submission(write(tmp_path / "rnn.ipynb", notebook), read_notebook(source))
    assert found.changed_tests == ("test_rnn_forward",)


def test_what_is_too_large(source: Path, tmp_path: Path) -> None:
    path = tmp_path / "rnn.ipynb"
    with open(path, "wb") as file:
        file.truncate(60 << 20)
    with pytest.raises(BadSubmission, match="62,914,560 bytes, expected 52,428,800 at most"):
        read_submission(path, read_notebook(source))


def test_a_link_is_no_submission(source: Path, tmp_path: Path) -> None:
    """Its target may be the solutions."""
    whole = write(tmp_path / "solutions" / "rnn.ipynb", submission())
    (tmp_path / "ada").mkdir()
    (tmp_path / "ada" / "rnn.ipynb").symlink_to(whole)
    (tmp_path / "cleo").symlink_to(whole.parent)
    for student in ("ada", "cleo"):
        with pytest.raises(BadSubmission, match="rnn.ipynb is a link to another place, expected"):
            read_submission(tmp_path / student / "rnn.ipynb", read_notebook(source))


def test_helpers_and_library_functions(tmp_path: Path) -> None:
    notebook = cells(SOLUTIONS)
    text = "from rnnlab.layers import lstm_step_backward, rnn_forward, temporal_affine_forward as scores"
    notebook.append(cell("code", text))
    source = read_notebook(write(tmp_path / "source.ipynb", notebook))
    assert len(helpers(source)) == 2
    path = tmp_path / "rnn.ipynb"
    assert library_functions(source, Submission(path, {}, {})) == {"lstm_step_backward": lstm_step_backward}
    own = {"cell 3": "def lstm_step_backward(dnext_h, dnext_c, cache):\n    return 1"}
    assert library_functions(source, Submission(path, {}, own)) == {}


def test_cells_are_in_the_order_of_the_notebook(source: Path, tmp_path: Path) -> None:
    notebook = submission("last = 1")
    notebook.insert(3, cell("code", "between = 1"))
    found = read_submission(write(tmp_path / "rnn.ipynb", notebook), read_notebook(source))
    names = [*found.cells]
    assert names[:3] == ["rnn_step_forward", "cell 3", "rnn_step_backward"]
    assert found.cells[names[-1]] == "last = 1"
    assert found.cells == {**found.exercises, **found.others}


def test_lost_metadata(source: Path, tmp_path: Path) -> None:
    notebook = submission()
    for each in notebook:
        each["metadata"] = {}
    with pytest.raises(BadSubmission, match="its metadata are lost"):
        read_submission(write(tmp_path / "rnn.ipynb", notebook), read_notebook(source))


def test_byte_order_mark(source: Path, tmp_path: Path) -> None:
    path = write(tmp_path / "rnn.ipynb", submission())
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert read_submission(path, read_notebook(source)).exercises


def test_a_function_below_the_untouched_exercise(source: Path, tmp_path: Path) -> None:
    text = "def rnn_forward(x, h0, Wx, Wh, b):\n    return 1"
    notebook = submission(text, rnn_forward=stub("rnn_forward"))
    found = read_submission(write(tmp_path / "rnn.ipynb", notebook), read_notebook(source))
    assert found.exercises["rnn_forward"] == text


def test_a_draft_beside_a_solved_exercise(source: Path, tmp_path: Path) -> None:
    """The line that was handed out may be left after the return."""
    function = "def rnn_forward(x, h0, Wx, Wh, b):\n    return {}"
    solved = f"{function.format(1)}\n    # YOUR CODE HERE\n    raise NotImplementedError()"
    notebook = submission(function.format(2), rnn_forward=solved)
    found = read_submission(write(tmp_path / "rnn.ipynb", notebook), read_notebook(source))
    assert found.exercises["rnn_forward"] == solved
    assert len(found.others) == 1


def test_a_function_that_is_defined_again(source: Path, tmp_path: Path) -> None:
    """What its test sees counts: a definition before the test, not one after it."""
    function = "def rnn_forward(x, h0, Wx, Wh, b):\n    return {}"
    notebook = submission(rnn_forward=function.format(1))
    places = [k for k, each in enumerate(notebook) if "rnn_forward" in str(each["metadata"])]
    own, test = (
        places[0],
        next(
            k
            for k, each in enumerate(notebook)
            if each["metadata"].get("nbgrader", {}).get("grade_id") == "test_rnn_forward"
        ),
    )
    again, scratch = (cell("code", function.format(number)) for number in (2, 3))
    assert own < test
    notebook = [*notebook[:test], again, *notebook[test:], scratch]
    found = read_submission(write(tmp_path / "rnn.ipynb", notebook), read_notebook(source))
    assert found.exercises["rnn_forward"] == f"{function.format(1)}\n\n{function.format(2)}"
    assert list(found.others.values()) == [function.format(3)]


NOTEBOOKS = sorted((Path(__file__).resolve().parents[3] / "notebooks").glob("*.ipynb"))
FORWARDS = [
    (path, cell.subject)
    for path in NOTEBOOKS
    for cell in read_notebook(path).exercises
    if cell.subject == exercise(cell.subject).functions[0]
]


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("path", "name"), FORWARDS, ids=lambda each: getattr(each, "stem", each))
def test_the_forwards_of_the_notebooks_stand_alone(path: Path, name: str) -> None:
    """Their caches are those that a backward is marked with where the student has no forward."""
    forward = solution(read_notebook(path), name)
    assert forward is not None
    assert examine(name, forward, seed=0).passed
