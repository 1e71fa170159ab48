"""The differences between the scores of runs, by the paired bootstrap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rnnlab.metrics import paired_bootstrap
from rnnlab.reporting.differences import ABSENT
from rnnlab.reporting.results import Results
from rnnlab.tasks.captioning import CaptioningEvaluation

Rows = list[tuple[str, list[str]]]


def difference_rows(names: Sequence[str], results: Sequence[Results], samples: int) -> tuple[Rows, list[str]]:
    """The differences of the scores of runs from those of the first run.

    Parameters
    ----------
    names : sequence of str
        The names of the runs.
    results : sequence of Results
        One for each run.
    samples : int
        The number of bootstrap samples.

    Returns
    -------
    rows : list of (str, list of str)
        For each score that is computed from its examples, and for each run but the first, the difference, its
        95 % interval and p; a dash if one of the two runs lacks the score.
    notes : list of str
        The meaning of the numbers, and the runs that cannot be compared.
    """
    first, *others = [each.evaluation for each in results]
    found: list[dict[str, str]] = []
    notes = []
    for name, other in zip(names[1:], others, strict=True):
        found.append({})
        if first is None or other is None:
            notes.append(f"{name}: no differences from {names[0]}, because one of them has no scores")
        elif first.examples() != other.examples():
            notes.append(f"{name}: no differences from {names[0]}, because {_difference(first, other)}")
        else:
            found[-1] = _differences(first, other, samples)
            if not found[-1]:
                notes.append(
                    f"{name}: no differences from {names[0]}, because the bootstrap has none of the scores"
                )
    scores = dict.fromkeys(score for table in found for score in table)
    rows = [(score, [table.get(score, ABSENT) for table in found]) for score in scores]
    if rows:
        notes.insert(
            0,
            f"differences: value, 95 % interval and p-value of a paired bootstrap of {samples:,} samples; "
            "they describe the choice of the examples, not the seed of the training",
        )
    return rows, notes


def _difference(first: Any, other: Any) -> str:
    """Why the scores of two runs cannot be compared in pairs."""
    ours, theirs = getattr(first, "tokenizer", None), getattr(other, "tokenizer", None)
    if ours == theirs:
        return "they scored other examples"
    if type(first) is type(other) is CaptioningEvaluation:
        return f"the tokenizers are {ours} and {theirs}; --tokenizer sets one"
    return f"the tokenizers are {ours} and {theirs}"


def _differences(first: Any, other: Any, samples: int) -> dict[str, str]:
    ours, theirs = first.statistics(), other.statistics()
    shown, found = dict(first.rows()), {}
    for score in ours.keys() & theirs.keys():
        value, low, high, p = paired_bootstrap(ours[score], theirs[score], samples=samples)
        decimals = len(shown[score].partition(".")[2])
        numbers = [f"{number:+.{decimals}f}" for number in (value, low, high)]
        chance = "p < 0.001" if p < 0.001 else f"p {p:.3f}"
        found[score] = f"{numbers[0]} [{numbers[1]}, {numbers[2]}] {chance}"
    return {score: found[score] for score in shown if score in found}
