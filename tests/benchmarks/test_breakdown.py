"""The primitives of a step are timed, and are themselves again afterwards."""

import pytest

from benchmarks import breakdown, captioning
from benchmarks.captioning import Sizes
from rnnlab.ops import describe, ops_on

SMALL = Sizes(3, 5, 6, 4, 5, 9, 3, 1, 2, 4)


def test_the_parts_of_a_step_are_within_it():
    adam = ops_on("cpu").adam
    whole, primitives = breakdown.breakdown(captioning.prepare("rnnlab", SMALL), 3)
    assert {"steps_forward", "steps_backward", "adam", "softmax_cross_entropy"} <= set(primitives)
    assert min(primitives.values()) > 0
    assert sum(primitives.values()) < whole
    assert ops_on("cpu").adam is adam


def test_a_primitive_within_another_is_not_counted_twice(monkeypatch):
    ops = ops_on("cpu")
    monkeypatch.setattr(ops, "clear", lambda x: ops.zeros(x, float))
    with breakdown.timed_primitives() as seconds:
        ops.clear(2)
        assert set(seconds) == {"clear"}
        ops.zeros(2, float)
    assert set(seconds) == {"clear", "zeros"}


def test_the_table(monkeypatch, capsys):
    monkeypatch.setattr(captioning, "CASES", {"small": SMALL})
    monkeypatch.setattr(breakdown, "use_threads", lambda threads: None)
    assert breakdown.main(["--steps", "2"]) == 0
    about, _, *lines = capsys.readouterr().out.strip().splitlines()
    assert about.endswith(describe())
    assert lines[0] == "| small | ms | share |"
    assert [line.split(" | ")[0][2:] for line in lines[-4:]] == [
        "other primitives",
        "outside primitives",
        "the step",
        "one product",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--threads", "0"], "--threads: '0', expected an integer of at least 1"),
        (["--steps", "0"], "--steps: '0', expected an integer of at least 1"),
        (["x"], "CASE is 'x'"),
    ],
)
def test_wrong_arguments(arguments, message, capsys):
    with pytest.raises(SystemExit):
        breakdown.main(arguments)
    assert message in capsys.readouterr().err
