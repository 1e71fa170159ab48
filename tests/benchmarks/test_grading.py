"""The class whose marking is timed."""

import csv

from benchmarks.grading import hand_in
from rnnlab import cli
from rnnlab.course.release import release


def test_a_third_is_right(tmp_path):
    (assignment,) = release(tmp_path / "course", only=["1"])
    hand_in(tmp_path / "course", assignment.name, 3)
    command = ["course", "grade", str(tmp_path / "course" / "submitted"), "--csv", str(tmp_path / "marks.csv")]
    assert cli.main(command) == 0
    with (tmp_path / "marks.csv").open(encoding="utf-8", newline="") as file:
        right, transposed, empty = (float(row["points"]) for row in csv.DictReader(file))
    assert right == 20
    assert 10 < transposed < 20
    assert 5 < empty < transposed
