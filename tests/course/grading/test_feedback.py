"""Marks in nbgrader's gradebook, and pages of them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from rnnlab.course.grading import FunctionMark, SubmissionMark
from rnnlab.course.grading.feedback import write_feedback
from rnnlab.course.release import release

from ..small_notebook import POINTS, SOLUTIONS, cell, cells, write
from .submissions import submission

pytest.importorskip("nbgrader")
pytestmark = pytest.mark.usefixtures("quick_databases")
SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(1)> fine"


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory, quick_databases: None) -> Path:
    """A released course with two submissions."""
    folder = tmp_path_factory.mktemp("teacher")
    write(folder / "notebooks/1_rnn.ipynb", cells(SOLUTIONS))
    release(folder / "course", notebooks=folder / "notebooks")
    scripts = [*submission(answer=SCRIPT), cell("raw", SCRIPT)]
    write(folder / "course/submitted/ada/1_rnn/1_rnn.ipynb", scripts)
    write(folder / "course/submitted/ben/1_rnn/1_rnn.ipynb", submission(answer="<details>mine</details>"))
    write(folder / "course/submitted/cleo/1_rnn/1_rnn.ipynb", "no notebook")
    return folder / "course"


def mark(student: str, share: float, text: str = "found this") -> SubmissionMark:
    functions = [FunctionMark(name, POINTS[name], share * POINTS[name], text=text) for name in SOLUTIONS]
    return SubmissionMark(student, "1_rnn", functions)


def page(course: Path, student: str) -> str:
    return (course / f"feedback/{student}/1_rnn/1_rnn.html").read_text("utf8")


@pytest.mark.slow
def test_points_pages_and_scripts(course: Path) -> None:
    from nbgrader.api import Gradebook

    broken = SubmissionMark("cleo", "1_rnn", [], problem="<b>1_rnn.ipynb is not a notebook</b>")
    feedback, refused = write_feedback(course, [mark("ada", 0.5, SCRIPT), mark("ben", 1), broken])
    assert not refused
    assert feedback == course / "feedback"
    with Gradebook(f"sqlite:///{course}/gradebook.db") as gradebook:
        scores = {each.student.id: each.score for each in gradebook.assignment_submissions("1_rnn")}
    assert scores == {"ada": sum(POINTS.values()) / 2, "ben": sum(POINTS.values())}
    assert "found this" in page(course, "ben")
    assert "Test cell" not in page(course, "ben")
    assert '<a href="#test_rnn_backward">rnn_backward</a> (Score: 5.0 / 5.0)' in page(course, "ben")
    assert '<a href="#answer_1">Question 1, marked by hand</a> (Score: 0.0 / 2.0)' in page(course, "ben")
    assert "<details>" in page(course, "ben")
    assert "HIDDEN TESTS" not in page(course, "ben")
    assert "&lt;b&gt;1_rnn.ipynb is not a notebook&lt;/b&gt;" in page(course, "cleo")
    assert "<script>alert(1)" not in page(course, "ada")
    assert "onerror=" not in page(course, "ada").replace("onerror=alert(1)&gt;", "")
    index = (feedback / "index.html").read_text("utf8")
    assert '<td>ada<td><a href="ada/1_rnn/1_rnn.html">1_rnn</a><td>7<td>14<td><td>\n' in index
    assert "<td>cleo" in index
    assert "<td>&lt;b&gt;1_rnn.ipynb is not a notebook&lt;/b&gt;" in index


@pytest.mark.slow
def test_marked_again(course: Path) -> None:
    write_feedback(course, [mark("ada", 0)])
    before = page(course, "ada")
    write_feedback(course, [mark("ada", 1, "all right now")])
    assert page(course, "ada") != before
    assert "all right now" in page(course, "ada")


@pytest.mark.slow
def test_a_notebook_that_nbgrader_refuses(tmp_path: Path) -> None:
    """The others have their pages."""
    write(tmp_path / "notebooks/1_rnn.ipynb", cells(SOLUTIONS))
    course = tmp_path / "course"
    release(course, notebooks=tmp_path / "notebooks")
    twice = submission()
    test = next(
        each for each in twice if each["metadata"].get("nbgrader", {}).get("grade_id") == "test_rnn_forward"
    )
    for student, notebook in (("ada", submission()), ("Doe, Ben", [*twice, test])):
        write(course / f"submitted/{student}/1_rnn/1_rnn.ipynb", notebook)
    (line,) = write_feedback(course, [mark("ada", 1), mark("Doe, Ben", 0.5)]).refused
    assert line.startswith("Doe, Ben  1_rnn  nbgrader refuses the notebook, so that these points are not in")
    assert "found this" in page(course, "ada")
    assert "nbgrader refuses" not in page(course, "ada")
    assert "<p>7 of 14 points: nbgrader refuses the notebook" in page(course, "Doe, Ben")
    assert "<pre>found this</pre>" in page(course, "Doe, Ben")


def test_names_that_nbgrader_cannot_read(tmp_path: Path) -> None:
    (tmp_path / "gradebook.db").touch()
    (tmp_path / "submitted" / "Lee [Sam]").mkdir(parents=True)
    with pytest.raises(ValueError, match=r"Lee \[Sam\]: found one of .* in the name of a student"):
        write_feedback(tmp_path, [])


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_names_that_are_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "gradebook.db").touch()
    student = os.fsdecode(b"Jos\xe9")
    write_feedback(tmp_path, [SubmissionMark(student, "1_rnn", [], problem="no notebook")])
    assert r"<h1>1_rnn, Jos\udce9</h1>" in page(tmp_path, student)
    index = (tmp_path / "feedback/index.html").read_text("utf8")
    assert r'<td>Jos\udce9<td><a href="Jos%E9/1_rnn/1_rnn.html">' in index


def test_no_gradebook(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"has no gradebook.db, expected what `rnnlab course release` writes"
    ):
        write_feedback(tmp_path, [])
