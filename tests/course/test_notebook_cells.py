"""Reading the tags of a notebook, and clearing its solutions."""

import json
import os

import pytest

from rnnlab.course.notebook_cells import cleared, parsed, plain_python, read_notebook, source_of, tag_of

EXERCISE = """def double(x):
    \"\"\"Twice x.\"\"\"
    ### BEGIN SOLUTION
    y = x + x
    return y
    ### END SOLUTION"""

STUB = """def double(x):
    \"\"\"Twice x.\"\"\"
    # YOUR CODE HERE
    raise NotImplementedError()"""


def tag(grade_id, *, solution, grade, **more):
    return {"nbgrader": {"grade_id": grade_id, "solution": solution, "grade": grade, **more}}


def cell(source, metadata=None, cell_type="code"):
    return {"cell_type": cell_type, "metadata": metadata or {}, "source": source}


def written(tmp_path, *cells):
    path = tmp_path / "1_notebook.ipynb"
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}), "utf8")
    return path


def test_the_tagged_cells_in_their_order(tmp_path):
    path = written(
        tmp_path,
        cell("# Title", cell_type="markdown"),
        cell(EXERCISE.splitlines(keepends=True), tag("double", solution=True, grade=False)),
        cell("assert double(1) == 2", tag("test_double", solution=False, grade=True, points=3)),
        cell("given", tag("given", solution=False, grade=False)),
        cell("**Question 12.** Why?", cell_type="markdown"),
        cell("Because.", tag("answer_12", solution=True, grade=True, points=2), "markdown"),
    )
    notebook = read_notebook(path)
    assert notebook.path == path
    assert [
        (each.kind, each.grade_id, each.subject, each.points, each.index, each.cell_type)
        for each in notebook.cells
    ] == [
        ("exercise", "double", "double", 0, 1, "code"),
        ("test", "test_double", "double", 3, 2, "code"),
        ("answer", "answer_12", "12", 2, 5, "markdown"),
    ]
    assert [each.source for each in notebook.cells] == [EXERCISE, "assert double(1) == 2", "Because."]
    parts = notebook.exercises, notebook.tests, notebook.answers
    assert [each for part in parts for each in part] == list(notebook.cells)
    assert notebook.points == 5


def test_a_notebook_without_tags_has_no_cells(tmp_path):
    notebook = read_notebook(written(tmp_path, cell("x = 1"), cell("y", {"nbgrader": {}})))
    assert notebook.cells == ()
    assert notebook.points == 0


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        (tag("test_f", solution=True, grade=False), "grade_id is 'test_f', expected the name of a function"),
        (tag("f", solution=False, grade=True, points=1), "grade_id is 'f', expected test_ and"),
        (
            tag("answer_a", solution=True, grade=True, points=1),
            "grade_id is 'answer_a', expected answer_ and",
        ),
        (tag(None, solution=True, grade=False), "grade_id is None, expected the name"),
        (tag("test_f", solution=False, grade=True), "points is None, expected a positive number"),
        (tag("test_f", solution=False, grade=True, points="1"), "points is '1', expected a positive number"),
        (tag("answer_1", solution=True, grade=True, points=0), "points is 0, expected a positive number"),
    ],
)
def test_a_wrong_tag_is_named_with_its_cell(tmp_path, metadata, message):
    path = written(tmp_path, cell("x = 1"), cell("y", metadata))
    with pytest.raises(ValueError, match=rf"1_notebook\.ipynb, cell 1: {message}"):
        read_notebook(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"no json", "found text that is not JSON .*, expected a notebook"),
        (b"\xff\xfe", "found text that is not JSON .*, expected a notebook"),
        (b"[" * 100_000, "found JSON that is nested too deeply to be read, expected a notebook"),
        (b"[]", "has no list of cells"),
        (b'{"worksheets": []}', "has no list of cells"),
        (b'{"cells": [3]}', "cell 0 is not a cell"),
        (b'{"cells": [{"source": "", "metadata": []}]}', "cell 0 is not a cell"),
        (b'{"cells": [{"source": 3}]}', "cell 0 is not a cell"),
    ],
)
def test_a_file_that_is_no_notebook_is_named(tmp_path, content, message):
    path = tmp_path / "notes.ipynb"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"notes\.ipynb.* {message}"):
        read_notebook(path)


@pytest.mark.parametrize("source", ["x = 1\ny = 2", ["x = 1\n", "y = 2"]])
def test_the_source_and_the_tag_of_a_cell(source):
    assert source_of({"source": source}) == "x = 1\ny = 2"
    assert source_of({}) == ""
    assert tag_of(cell(source, tag("f", solution=True, grade=False)))["grade_id"] == "f"
    assert tag_of({}) == tag_of(cell(source, {"nbgrader": None})) == {}


def test_a_pipe_is_no_notebook(tmp_path):
    os.mkfifo(tmp_path / "pipe.ipynb")
    with pytest.raises(OSError, match=r"pipe\.ipynb: found a named pipe, expected a notebook"):
        read_notebook(tmp_path / "pipe.ipynb")


def test_a_solution_is_cleared():
    assert cleared(EXERCISE) == STUB


@pytest.mark.parametrize(
    "source",
    [
        STUB,
        EXERCISE.replace("### END SOLUTION", ""),
        EXERCISE.replace("### BEGIN SOLUTION", ""),
        EXERCISE.replace("### END SOLUTION", "### BEGIN SOLUTION"),
        "",
    ],
)
def test_a_missing_marker_is_an_error(source):
    with pytest.raises(ValueError, match="marker|no pair"):
        cleared(source)


def test_it_clears_as_nbgrader_does():
    preprocessors = pytest.importorskip("nbgrader.preprocessors")
    nbformat = pytest.importorskip("nbformat")
    tagged = nbformat.v4.new_code_cell(EXERCISE, metadata=tag("double", solution=True, grade=False))
    resources = {"language": "python"}
    found, _ = preprocessors.ClearSolutions().preprocess_cell(tagged, resources, 0)
    assert found.source == cleared(EXERCISE)


def test_commands_of_ipython():
    text = "%matplotlib inline\n  !pip install x\na = 5 % 3\n%%time\n"
    assert plain_python(text) == "pass\n  pass\na = 5 % 3\npass\n"


def test_continued_lines_are_no_commands():
    text = "x = (\n    a\n    != b\n)\ny = (7\n    % 3)\n"
    assert plain_python(text) == text
    assert plain_python("files = !ls\nt = %timeit -o f()\nz = 1\n") == "files = None\nt = None\nz = 1\n"


@pytest.mark.parametrize("text", ["def f(:", "\x00", "(" * 10_000])
def test_no_python(text):
    assert parsed(text).body == []
