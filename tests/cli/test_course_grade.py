"""From a release to marks and pages, as a teacher does it."""

from __future__ import annotations

import csv
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from rnnlab import cli
from rnnlab.course.grading.grade import filters_system_calls

from ..course.grading.submissions import stub, submission
from ..course.small_notebook import POINTS, SOLUTIONS, TESTS, cells, write

pytest.importorskip("nbgrader")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("quick_databases"),
    pytest.mark.skipif(sys.platform == "win32", reason="students' processes need POSIX"),
]
ALL = float(sum(POINTS.values()))
BACKWARD = "def rnn_step_backward(dnext_h, cache):\n    "
SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(1)> [x](javascript:f())"
PARTLY = SOLUTIONS["rnn_step_backward"].replace("da @ Wh.T", "da @ Wh")
NUMERIC = f"""{BACKWARD}gradients = []
    for array in cache[:4]:
        gradient = np.zeros(array.shape)
        for place in np.ndindex(array.shape):
            moved = [each.copy() for each in cache[:4]]
            moved[[each is array for each in cache[:4]].index(True)][place] += 1e-6
            up, _ = rnn_step_forward(*moved, np.zeros(moved[3].shape[1]))
            here, _ = rnn_step_forward(*cache[:4], np.zeros(moved[3].shape[1]))
            gradient[place] = ((up - here) * dnext_h).sum() / 1e-6
        gradients.append(gradient)
    return (*gradients, dnext_h.sum(axis=0))
"""


def test_on_windows_it_says_where_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    status = cli.main(["course", "grade", str(tmp_path)])
    monkeypatch.undo()
    assert status == 2
    assert "rnnlab course grade runs on Linux and macOS, found Windows" in capsys.readouterr().err


def submissions() -> dict[str, Any]:
    """Students by what they hand in."""
    changed = submission(rnn_step_backward=stub("rnn_step_backward"))
    for each in changed:
        each["source"] = each["source"].replace(TESTS["rnn_step_backward"], "pass")
    return {
        "right": submission(answer="<details><summary>Mine</summary>\n\n$a < b$\n</details>"),
        "partly": submission(rnn_step_backward=PARTLY),
        "blank": submission(answer="YOUR ANSWER HERE", **{name: stub(name) for name in SOLUTIONS}),
        "library": submission(rnn_step_backward="from rnnlab.plain.rnn import rnn_step_backward"),
        "patches": submission("check = print", rnn_step_backward=stub("rnn_step_backward")),
        "changes": changed,
        "numeric": submission(rnn_step_backward=NUMERIC),
        "copies": submission(rnn_step_backward=f"{BACKWARD}return 0.96402758, 0.96402759, 0.41159778, 0, 0"),
        "hostile": submission(rnn_step_backward=f"{BACKWARD}return open('/etc/passwd').read()"),
        "endless": submission(rnn_step_backward=f"{BACKWARD}while True: pass"),
        "broken": "no notebook",
        "script": submission(
            answer="<script>alert(1)</script><img src=x onerror=alert(1)> [x](javascript:f())"
        ),
    }


# The points that each has of the step's backward; all others are those of a right submission.
STEP = {"right": 5, "script": 5, "partly": 4}
KINDS = {
    "library": "refused",
    "patches": "patched check",
    "changes": "changed test",
    "copies": "hard-coded values",
    "hostile": "refused",
}


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory, quick_databases: None) -> Path:
    """A released course with submissions, marked."""
    folder = tmp_path_factory.mktemp("teacher")
    write(folder / "notebooks/1_rnn.ipynb", cells(SOLUTIONS))
    course = folder / "course"
    assert cli.main(["course", "release", str(course), "--notebooks", str(folder / "notebooks")]) == 0
    for student, content in submissions().items():
        write(course / "submitted" / student / "1_rnn/1_rnn.ipynb", content)
    out = [str(folder / "marks.csv"), str(folder / "marks.json")]
    options = ["--csv", out[0], "--json", out[1], "--feedback", "--seconds", "1", "--jobs", "2"]
    assert cli.main(["course", "grade", str(course / "submitted"), "--seed", "s", *options]) == 0
    return course


def rows(course: Path) -> dict[str, dict[str, str]]:
    with open(course.parent / "marks.csv", newline="", encoding="utf8") as file:
        return {row["student"]: row for row in csv.DictReader(file)}


def test_marks(course: Path) -> None:
    marks = rows(course)
    assert set(marks) == set(submissions())
    for student in set(marks) - {"blank", "broken"}:
        step = STEP.get(student, 0)
        assert (student, float(marks[student]["points"])) == (student, ALL - 5 + step)
        assert float(marks[student]["rnn_step_backward"]) == step
    assert float(marks["blank"]["points"]) == 0
    assert marks["broken"]["points"] == "0"
    assert "is not a notebook" in marks["broken"]["problem"]


def test_cheats_are_named(course: Path) -> None:
    marks = rows(course)
    for student, kind in KINDS.items():
        assert marks[student]["look_at"].startswith(f"{kind}: ")
    assert not any(marks[student]["look_at"] for student in ("right", "partly", "blank", "endless", "script"))


def test_everything_is_in_the_json(course: Path) -> None:
    found = {each["student"]: each for each in json.loads((course.parent / "marks.json").read_text("utf8"))}
    step = next(each for each in found["partly"]["functions"] if each["name"] == "rnn_step_backward")
    assert step["results"] == {"dx": True, "dprev_h": False, "dWx": True, "dWh": True, "db": True}
    assert "dprev_h has Wh where Wh.T belongs" in step["text"]


def test_gradebook(course: Path) -> None:
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{course}/gradebook.db") as gradebook:
        found = {each.student.id: each for each in gradebook.assignment_submissions("1_rnn")}
        scores = {student: each.score for student, each in found.items()}
        by_hand = {student for student, each in found.items() if each.needs_manual_grade}
    marks = {student: float(row["points"]) for student, row in rows(course).items() if not row["problem"]}
    assert scores == marks
    assert by_hand == set(marks) - {"blank"}  # an empty answer has no points


def test_pages(course: Path) -> None:
    pages = {path.parts[-3]: path.read_text("utf8") for path in course.glob("feedback/*/1_rnn/1_rnn.html")}
    assert set(pages) == set(submissions())
    assert "dprev_h has Wh where Wh.T belongs" in pages["partly"]
    assert re.search(r"Score: 4.0 / 5.0", pages["partly"])
    assert "is not a notebook" in pages["broken"]
    assert "is not a notebook" in (course / "feedback/index.html").read_text("utf8")
    source = (course / "source/1_rnn/1_rnn.ipynb").read_text("utf8")
    (seed, *_) = re.findall(r"for hidden_seed in \((\d+)", source)
    for page in pages.values():
        assert "HIDDEN TESTS" not in page
        assert seed not in page
    assert "<script>alert(1)" not in pages["script"]
    assert 'onerror="alert' not in pages["script"]
    assert 'href="javascript' not in pages["script"]
    assert "&lt;script&gt;alert(1)" in pages["script"]  # it is shown
    assert "<details>" in pages["right"]


def test_marked_again_with_the_same_result(course: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = rows(course)
    path = course.parent / "again.csv"
    options = ["--csv", str(path), "--seed", "s", "--seconds", "1", "--jobs", "1"]
    assert cli.main(["course", "grade", str(course / "submitted"), *options]) == 0
    assert path.read_text("utf8") == (course.parent / "marks.csv").read_text("utf8")
    assert len(before) == 12
    out = capsys.readouterr().out
    assert "library  1_rnn  refused: rnn_step_backward uses rnnlab.plain.rnn.rnn_step_backward" in out
    assert out.endswith("Notebooks marked: 11 of 12. Students: 12. Seed: s.\n")


def test_a_machine_without_a_filter_of_system_calls(
    course: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert filters_system_calls() == (sys.platform == "linux")
    monkeypatch.setattr("rnnlab.cli.course_grade.filters_system_calls", lambda: False)
    monkeypatch.setattr("rnnlab.cli.course_grade.grade_submissions", lambda *_, **__: [])
    assert cli.main(["course", "grade", str(course / "submitted")]) == 0
    assert capsys.readouterr().err.startswith("note: the kernel of this machine does not filter the system")


def test_refused(course: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    submitted = str(course / "submitted")
    for arguments, message in (
        ([str(tmp_path)], "has no ASSIGNMENT/NOTEBOOK.ipynb"),
        ([str(tmp_path), "--source", str(course / "source")], "has no STUDENT/ASSIGNMENT folder"),
        ([submitted, "--seconds", "0"], "--seconds is 0.0, expected 0.1 to 86,400"),
        ([submitted, "--seconds", "inf"], "--seconds is inf, expected 0.1 to 86,400"),
        ([submitted, "--megabytes", "200"], "--megabytes is 200, expected 300 to 10,000,000"),
        (
            [str(course / "source"), "--source", str(course / "source"), "--feedback"],
            f"--feedback: SUBMITTED is {course / 'source'}, expected the folder `submitted` of a course",
        ),
        (
            [submitted, "--csv", str(tmp_path)],
            f"--csv {tmp_path} cannot be written: it is a directory, expected a file",
        ),
        ([submitted, "--seconds", "0"], "seconds is 0"),
        ([submitted, "--megabytes", "1"], "megabytes is 1"),
    ):
        assert cli.main(["course", "grade", *arguments]) == 2
        assert message in capsys.readouterr().err


def test_in_the_folder_submitted(
    course: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("rnnlab.cli.course_grade.grade_submissions", lambda files, **_: [])
    monkeypatch.chdir(course / "submitted")
    assert cli.main(["course", "grade", "."]) == 0
    assert "Notebooks marked" in capsys.readouterr().out


def test_feedback_needs_a_gradebook(course: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "submitted/ada/1_rnn/1_rnn.ipynb", "no notebook")
    arguments = [str(tmp_path / "submitted"), "--source", str(course / "source"), "--feedback"]
    assert cli.main(["course", "grade", *arguments]) == 2
    assert "has no gradebook.db" in capsys.readouterr().err
