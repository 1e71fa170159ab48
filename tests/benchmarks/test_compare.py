"""Two runs of the command: which ratios have changed, and which only seem to."""

import json

import pytest

from benchmarks import __main__ as command
from benchmarks import compare
from benchmarks.table import Row


def report(about="a machine", **cases):
    """What --json writes: rounds of "rnnlab" and "torch" by case."""
    rows, results = [], []
    for case, (ours, theirs) in cases.items():
        ratio = min(theirs) / min(ours)
        rows.append(Row("lstm", case, "ms", min(ours), "torch packed", min(theirs), ratio, None).as_dict())
        rounds = {"rnnlab": ours, "torch packed": theirs, "sgemm": [1.0]}
        results.append({"suite": "lstm", "case": case, "unit": "ms", "rounds": rounds})
    return {"about": about, "rows": rows, "results": results}


def lines(before, now):
    return compare.changes(before, now, markdown=True).splitlines()[5:]


def test_the_interval_holds_the_ratio_and_grows_with_the_noise():
    steady = compare.interval({"rnnlab": [10.0, 10.1], "torch": [20.0, 20.2]}, "torch", on_gpu=False)
    noisy = compare.interval({"rnnlab": [10.0, 15.0], "torch": [20.0, 26.0]}, "torch", on_gpu=False)
    assert steady[0] <= 2.0 <= steady[1]
    assert noisy[0] < steady[0]
    assert noisy[1] > steady[1]


def test_a_change_beyond_noise_has_a_number_and_noise_has_none():
    before = report(a=([10.0, 10.1, 10.2], [20.0, 20.1, 20.3]), b=([10.0, 14.0], [20.0, 30.0]))
    now = report(a=([5.0, 5.1, 5.1], [20.0, 20.1, 20.2]), b=([11.0, 13.0], [21.0, 29.0]))
    faster, same = lines(before, now)
    assert faster.startswith("| lstm: a | torch | 2.00 (")
    assert faster.endswith("| +100% |")
    assert same.startswith("| lstm: b | torch | 2.00 (")
    assert same.endswith("|  |")


def test_a_mean_has_no_interval():
    before, now = report(a=([1.0], [2.0])), report(a=([1.0], [3.0]))
    for each, ratio in ((before, 2.0), (now, 3.0)):
        each["rows"].append(Row("lstm", "geometric mean", "", None, "torch", None, ratio, None).as_dict())
    assert lines(before, now)[1] == "| lstm: geometric mean | torch | 2.00 | 3.00 |  |"


def test_what_only_one_run_has_is_named():
    before, now = (
        report(a=([1.0], [2.0]), b=([1.0], [2.0])),
        report("another", a=([1.0], [2.0]), c=([1.0], [2.0])),
    )
    assert lines(before, now)[2:] == [
        "before: a machine",
        "not measured now: lstm: b",
        "not measured before: lstm: c",
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read"),
        ("{", "cannot be read"),
        ("[]", "is not a report of --json"),
        (json.dumps({"about": "", "rows": [], "results": [{"measured": {}}]}), "written by an older version"),
        (json.dumps({"about": "", "rows": [], "results": []}), "has no measurements"),
    ],
)
def test_a_file_that_cannot_be_compared(content, message, tmp_path, capsys):
    path = tmp_path / "old.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(SystemExit):
        command.main(["lstm", "--compare", str(path)])
    error = capsys.readouterr().err
    assert f"--compare: {path}" in error
    assert message in error
