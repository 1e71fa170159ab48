"""Planted mistakes get the right name, and right functions are never accused.

``pytest -m slow -s tests/course/test_naming.py`` prints the table.
"""

import collections

import numpy as np
import pytest

from rnnlab.course.check import examine
from rnnlab.course.exercises import EXERCISES

from .mistakes import HELD_OUT, MISTAKES, RIGHT, names


def functions(name, exercise, source):
    """The functions of a student, None for one that is not defined."""
    space = {"np": np}
    exec(compile(source, f"<{name}>", "exec"), space)
    return [space.get(function) for function in EXERCISES[exercise].functions]


def told(report):
    """What a report says first, and all that it says."""
    first = report.problems + [note for each in report.diagnoses for note in each.notes]
    first += [mistake[0] for each in report.diagnoses for mistake in each.mistakes]
    ties = [name for each in report.diagnoses for mistake in each.mistakes for name in mistake]
    return ". ".join(first), ". ".join([*first, *ties])


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def outcomes():
    """For each planted mistake: named, named among ties, not named, or not even noticed."""
    found = {}
    for mistake in [*MISTAKES, *HELD_OUT]:
        report = examine(mistake.exercise, *functions(mistake.name, mistake.exercise, mistake.source), seed=1)
        first, everything = told(report)
        if report.passed:
            found[mistake.name] = "not noticed"
        elif names(first, mistake.expected):
            found[mistake.name] = "named"
        else:
            found[mistake.name] = "among ties" if names(everything, mistake.expected) else "not named"
    return found


def test_mistakes_are_named(outcomes):
    table = collections.defaultdict(collections.Counter)
    for mistake in MISTAKES:
        table[mistake.kind][outcomes[mistake.name]] += 1
        table["tuned on"][outcomes[mistake.name]] += 1
    for mistake in HELD_OUT:
        table["held out"][outcomes[mistake.name]] += 1
    columns = ("named", "among ties", "not named", "not noticed")
    print(f"\n{'planted':>30} {'':>5} " + " ".join(f"{column:>12}" for column in columns))
    for kind, counts in table.items():
        print(
            f"{kind:>30} {sum(counts.values()):5} " + " ".join(f"{counts[column]:12}" for column in columns)
        )
    assert len(MISTAKES) >= 250
    assert table["tuned on"]["named"] >= 0.9 * len(MISTAKES)
    assert table["held out"]["named"] >= 0.8 * len(HELD_OUT)


def test_mistakes_are_noticed(outcomes):
    """But for those in keyword-only arguments that no exercise passes."""
    missed = {name for name, outcome in outcomes.items() if outcome == "not noticed"}
    assert missed == {
        "doubly_stochastic_loss_ignores_lengths",
    }


def test_right_functions_are_not_accused():
    """In over 1,000 draws: each report compares four."""
    sources = [(each.name, each.exercise, each.source) for each in RIGHT]
    sources += [(each.name, each.exercise, each.fixed) for each in MISTAKES if not each.square]
    reports = [examine(exercise, *functions(name, exercise, source)) for name, exercise, source in sources]
    assert 4 * len(reports) > 1000
    wrong = [str(report) for report in reports if not report.passed]
    # those that do not subtract the maximum overflow there, and nowhere else
    overflow = [each for each in wrong if "where a large number is added to all scores of a" in each]
    assert [each for each in wrong if each not in overflow] == []
    assert 0 < len(overflow) <= 10
