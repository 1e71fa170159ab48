"""An implementation of an exercise with one mistake, and what a diagnosis of it must name."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

KINDS = (
    "missing term",
    "extra term",
    "missing factor",
    "doubled",
    "wrong sign",
    "wrong derivative",
    "wrong variable",
    "transposed",
    "wrong sum",
    "wrong scale",
    "gate order",
    "through time",
    "overwritten",
    "wrong step",
    "order of results",
    "wrong shape",
    "writes into an input",
    "wrong forward",
)

Expected = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Mistake:
    """A student's functions of one exercise.

    ``exercise`` is the name of functions of rnnlab.plain without _forward and _backward. ``source`` defines
    these functions. Where it defines only one of the pair, the other is that of rnnlab.plain, whose cache it
    reads or makes. Positional arguments are those of rnnlab.plain; keyword-only ones may be left out, and the
    score of an attention is the additive one.

    ``expected`` holds alternatives: a diagnosis names the mistake if it contains all words of one of them
    (see :func:`names`). ``fix`` maps each wrong passage of the source to the right one: the fixed source has
    no mistake. ``square`` is true if the source runs only where a weight is square.
    """

    name: str
    exercise: str
    source: str
    expected: Expected
    kind: str
    fix: Mapping[str, str]
    square: bool = False

    @property
    def fixed(self) -> str:
        """The source without its mistake."""
        source = self.source
        for wrong, right in self.fix.items():
            if source.count(wrong) != 1:
                raise ValueError(f"{self.name}: {wrong!r} occurs {source.count(wrong)} times, expected once")
            source = source.replace(wrong, right)
        return source


@dataclass(frozen=True)
class Right:
    """A student's functions of one exercise without a mistake, in a style of their own."""

    name: str
    exercise: str
    source: str


def planted(
    name: str,
    exercise: str,
    source: str,
    changes: Mapping[str, str],
    expected: Expected,
    kind: str,
    square: bool = False,
) -> Mistake:
    """A mistake that changes passages of a right source, each of which occurs once."""
    fix = {}
    for right, wrong in changes.items():
        if source.count(right) != 1:
            raise ValueError(f"{name}: {right!r} occurs {source.count(right)} times, expected once")
        source = source.replace(right, wrong)
        fix[wrong] = right
    return Mistake(name, exercise, source, expected, kind, fix, square)


def planter(exercise: str, source: str) -> Callable[[str, str, str, Expected, str], Mistake]:
    """A function that plants mistakes in one right source: ``plant(name, wrong, right, expected, kind)``."""

    def plant(name: str, wrong: str, right: str, expected: Expected, kind: str) -> Mistake:
        return planted(f"{exercise}_{name}", exercise, source, {right: wrong}, expected, kind)

    return plant


def either(*words: str) -> Expected:
    """Alternatives from words that are separated by "|": ``either("a|b", "c")`` is a with c, or b with c."""
    return tuple(itertools.product(*(word.split("|") for word in words)))


def names(message: str, expected: Expected) -> bool:
    """Whether a message contains all words of one alternative; ``o`` is a word of "o * g", not of "da_o"."""
    return any(all(_occurs(word, message) for word in words) for words in expected)


def _occurs(word: str, message: str) -> bool:
    before = r"(?<!\w)" if re.match(r"\w", word) else ""
    after = r"(?!\w)" if re.search(r"\w$", word) else ""
    return re.search(before + re.escape(word) + after, message) is not None


# What several diagnoses say in one of these words.
SIGN = "sign|negative|negated|minus|-1"
TWICE = "twice|double|doubled|factor 2|factor of 2|2 times|times 2"
HALF = "half|0.5|factor 2|factor of 2|2 times|times 2|1/2"
TRANSPOSED = "transposed|transpose|.T"
BATCH = "batch|summed|sum|axis"
AVERAGED = "batch|N|mean|average|averaged|1/N|divided"
OVER_STEPS = "1/T|/ T|by T|T steps|factor T|steps|mean|average|averaged|divided|time"
ORDER = "order|swapped|exchanged|interchanged|mixed up|places"
WRITTEN = "written|writes|changed|changes|modified|modifies|overwritten|overwrites|in-place"
ACCUMULATED = (
    "accumulated|added|sum|summed|overwritten|overwrites|each step|every step|all steps|one step|last step|"
    "first step|steps|time|+="
)
