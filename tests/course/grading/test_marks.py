"""The files of marks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rnnlab.course.grading import FunctionMark, SubmissionMark, Suspicion, write_csv, write_json


def test_formulas_for_spreadsheets_are_defused(tmp_path: Path) -> None:
    write_csv(tmp_path / "marks.csv", [SubmissionMark("=1+1", "rnn", ())])
    assert "'=1+1" in (tmp_path / "marks.csv").read_text("utf8")


def test_names_and_messages_that_are_no_text_are_escaped(tmp_path: Path) -> None:
    marks = [SubmissionMark("Jos\udce9", "rnn", (), problem="\udc80")]
    write_csv(tmp_path / "marks.csv", marks)
    assert r"Jos\udce9" in (tmp_path / "marks.csv").read_text("utf8")
    write_json(tmp_path / "marks.json", marks)
    assert json.loads((tmp_path / "marks.json").read_text("utf8"))[0]["student"] == "Jos\udce9"


def test_sums_and_text() -> None:
    functions = [FunctionMark("a", 2, 1.5), FunctionMark("b", 5, 5)]
    mark = SubmissionMark(
        "ada", "rnn", functions, suspicions=[Suspicion("refused", "x"), Suspicion("refused", "y")]
    )
    assert (mark.points, mark.max_points) == (6.5, 7)
    assert str(mark) == "ada  rnn  6.5 of 7   look at: refused"


def test_nothing_is_half_written(tmp_path: Path) -> None:
    path = tmp_path / "marks.csv"
    path.write_text("before")
    with pytest.raises(AttributeError):
        write_csv(path, [None])  # type: ignore[list-item]
    assert path.read_text() == "before"
