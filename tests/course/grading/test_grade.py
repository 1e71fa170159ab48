"""Submissions of every kind have the marks that they should, and none ends the batch."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import pytest

from rnnlab.course.grading import (
    SubmittedFile,
    find_submissions,
    grade_submission,
    grade_submissions,
    write_csv,
    write_json,
)

from ..small_notebook import SOLUTIONS, write
from .submissions import ALL, LIMITS, PARTLY, graded, points, stub, submission, text_of

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="students' processes need POSIX")


@pytest.mark.slow
def test_right(source: Path, tmp_path: Path) -> None:
    for secret in ("a", "b", "c"):
        mark = graded(source, submission(), tmp_path, secret)
        assert (mark.points, mark.max_points, mark.problem) == (ALL, ALL, "")
        assert not mark.suspicions
        assert mark.answers == {"answer_1": True}


def test_blank(source: Path, tmp_path: Path) -> None:
    blank = submission(answer="YOUR ANSWER HERE", **{name: stub(name) for name in SOLUTIONS})
    mark = graded(source, blank, tmp_path)
    assert mark.points == 0
    assert not mark.suspicions
    assert mark.answers == {"answer_1": False}
    assert "not implemented yet" in text_of(mark, "rnn_step_forward")
    assert "cannot be checked until rnn_step_forward works" in text_of(mark, "rnn_step_backward")


def test_a_student_whose_name_is_not_utf8(source: Path, tmp_path: Path) -> None:
    blank = submission(**{name: stub(name) for name in SOLUTIONS})
    file = SubmittedFile("Jos\udce9", "rnn", write(tmp_path / "rnn.ipynb", blank), source)
    mark = grade_submission(file, limits=LIMITS, secret="s")
    assert mark.problem == ""
    assert "not implemented yet" in text_of(mark, "rnn_step_forward")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("while True: pass", "has no result after 2 s"),
        ("while True: print('x' * 10_000)", "prints more than"),
        ("return np.ones(10**10)", "out of memory"),
        ("import random; random._os._exit(0)", "ends the process"),
        ("raise KeyboardInterrupt", "raises KeyboardInterrupt"),
        ("return rnn_step_backward(dnext_h, cache)", "RecursionError"),
        ("return None", "returns None, expected 5"),
        ("return [object()] * 5, 1, 2, 3, 4", "dx is a tuple of object, object"),
        ("return np.array([object()]), 1, 2, 3, 4", "expected an array"),
    ],
)
def test_hostile_functions_cost_their_own_points(source: Path, tmp_path: Path, body: str, says: str) -> None:
    text = f"def rnn_step_backward(dnext_h, cache):\n    {body}"
    mark = graded(source, submission(rnn_step_backward=text), tmp_path)
    assert points(mark) == {"rnn_step_backward": 0}
    assert says in text_of(mark, "rnn_step_backward")


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"cells": 3}',
        '{"cells": [{"source": 1}]}',
        "[" * 100_000,
        "\x00\udce4",
        '{"cells": [[]]}',
    ],
    ids=range(9),
)
def test_no_notebook(source: Path, tmp_path: Path, content: str) -> None:
    path = tmp_path / "rnn.ipynb"
    path.write_bytes(content.encode("utf8", "surrogatepass"))
    mark = grade_submission(SubmittedFile("ada", "rnn", path, source), limits=LIMITS, secret="s")
    assert (mark.points, mark.max_points) == (0, ALL)
    assert mark.problem.startswith("rnn.ipynb is not a notebook")


def test_missing_file(source: Path, tmp_path: Path) -> None:
    file = SubmittedFile("ada", "rnn", tmp_path / "rnn.ipynb", source)
    assert grade_submission(file, limits=LIMITS, secret="s").problem == "the folder has no rnn.ipynb"
    write(tmp_path / "rnn (1).ipynb", submission())
    write(tmp_path / "rnn/rnn.ipynb", submission())
    write(tmp_path / ".ipynb_checkpoints/rnn-checkpoint.ipynb", submission())
    expected = f"the folder has no rnn.ipynb, but {Path('rnn/rnn.ipynb')}, rnn (1).ipynb: move or rename it"
    assert grade_submission(file, limits=LIMITS, secret="s").problem == expected


@pytest.mark.slow
def test_batch_in_order_by_several_processes(source: Path, tmp_path: Path) -> None:
    course = source.parent.parent.parent
    for student, content in {
        "b": submission(),
        "a": "broken",
        "c": submission(rnn_step_backward=PARTLY),
    }.items():
        write(tmp_path / f"submitted/{student}/rnn/rnn.ipynb", content)
    files, others = find_submissions(tmp_path / "submitted", course / "source")
    assert others == []
    marks = list(grade_submissions(files, limits=LIMITS, secret="s", jobs=2))
    assert [(mark.student, mark.points) for mark in marks] == [("a", 0), ("b", ALL), ("c", ALL - 2)]
    assert marks == list(grade_submissions(files, limits=LIMITS, secret="s"))

    write_csv(tmp_path / "marks.csv", marks)
    with open(tmp_path / "marks.csv", newline="", encoding="utf8") as file:
        rows = list(csv.DictReader(file))
    assert [row["points"] for row in rows] == ["0", f"{ALL}", f"{ALL - 2}"]
    assert rows[2]["rnn_step_backward"] == "3"
    assert rows[0]["problem"].startswith("rnn.ipynb is not a notebook")
    assert (rows[0]["rnn_step_backward"], rows[0]["answers"]) == ("0", "0 of 1")
    write_json(tmp_path / "marks.json", marks)
    found = json.loads((tmp_path / "marks.json").read_text("utf8"))
    assert found[2]["functions"][1]["results"]["db"] is False
    assert (found[0]["points"], found[0]["problem"]) == (0, rows[0]["problem"])


def test_every_student_has_a_mark_for_every_assignment(source: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        write(tmp_path / f"source/{name}/{name}.ipynb", source.read_text("utf8"))
    submitted = tmp_path / "submitted"
    write(submitted / "ada/one/one.ipynb", submission())
    write(submitted / "ben/One/one.ipynb", submission())
    write(submitted / "cleo/one.ipynb", submission())
    (submitted / "dora").mkdir()
    write(submitted / "two.ipynb", submission())
    write(submitted / ".hidden/one/one.ipynb", submission())
    write(submitted / "ada/timestamp.txt", "2020-01-01")
    files, others = find_submissions(submitted, tmp_path / "source")
    assert [(each.student, each.assignment) for each in files] == [
        (student, "one") for student in ("ada", "ben", "cleo", "dora")
    ]
    strays = [Path(each) for each in ("two.ipynb", "ben/One", "cleo/one.ipynb")]
    assert others == [f"{path} is not STUDENT/ASSIGNMENT of one, two" for path in strays]
    marks = [grade_submission(each, limits=LIMITS, secret="s") for each in files[1:]]
    assert [mark.problem for mark in marks] == [
        f"the folder one is not handed in{instead}" for instead in (", but One", ", but one.ipynb", "")
    ]
    assert [(mark.points, mark.max_points) for mark in marks] == [(0, ALL)] * 3


def test_the_notebook_of_an_assignment_has_its_name(source: Path, tmp_path: Path) -> None:
    sources, submitted = tmp_path / "source", tmp_path / "submitted"
    write(submitted / "ada/one/one.ipynb", submission())
    for name in ("one/Untitled.ipynb", "one/one.ipynb", ".hidden/one.ipynb"):
        write(sources / name, source.read_text("utf8"))
    ((file,), _) = find_submissions(submitted, sources)
    assert file.source == sources / "one/one.ipynb"
    (sources / "one/one.ipynb").rename(sources / "one/two.ipynb")
    with pytest.raises(ValueError, match=r"has Untitled.ipynb, two.ipynb, expected one notebook, or"):
        find_submissions(submitted, sources)


def test_names_of_files_stay_on_one_line(source: Path, tmp_path: Path) -> None:
    write(tmp_path / "source/one/one.ipynb", source.read_text("utf8"))
    write(tmp_path / "submitted/ada/one/x\nben  20 of 20.ipynb", submission())
    write(tmp_path / "submitted/ada/\x1b[2K.txt", "")
    files, others = find_submissions(tmp_path / "submitted", tmp_path / "source")
    (mark,) = (grade_submission(each, limits=LIMITS, secret="s") for each in files)
    assert mark.problem == r"the folder has no one.ipynb, but x\nben  20 of 20.ipynb: move or rename it"
    assert others == [f"{Path('ada', chr(92) + 'x1b[2K.txt')} is not STUDENT/ASSIGNMENT of one"]


def test_nothing_to_mark(source: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has no STUDENT/ASSIGNMENT folder, expected assignments among rnn"):
        find_submissions(tmp_path, source.parent.parent)
    with pytest.raises(ValueError, match="has no ASSIGNMENT/NOTEBOOK.ipynb"):
        find_submissions(tmp_path, tmp_path)
    with pytest.raises(FileNotFoundError, match="nowhere is not a folder, expected the folder `submitted`"):
        find_submissions(tmp_path / "nowhere", source.parent.parent)
    (tmp_path / "submitted").mkdir()
    with pytest.raises(ValueError, match="is a course, expected its folder .*submitted"):
        find_submissions(tmp_path, source.parent.parent)
