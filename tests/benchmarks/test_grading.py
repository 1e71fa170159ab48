"""The class whose marking is timed."""

import csv

import pytest

from benchmarks.grading import hand_in
from rnnlab import cli
from rnnlab.course.release import release


@pytest.mark.slow
def test_a_third_is_right(tmp_path):
    (assignment,) = release(tmp_path / "course", only=["1"])
    hand_in(tmp_path / "course", assignment.name, 3)
    submitted, marks = tmp_path / "course" / "submitted", tmp_path / "marks.csv"
    command = ["course", "grade", str(submitted), "--csv", str(marks)]
    assert cli.main(command) == 0
    with marks.open(encoding="utf-8", newline="") as file:
        right, transposed, empty = (float(row["points"]) for row in csv.DictReader(file))
    assert right == 20
    assert 10 < transposed < 20
    assert 5 < empty < transposed
