from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import numpy as np
import pytest

from rnnlab import options
from rnnlab.gradcheck.cases import CELLS
from rnnlab.layers.attention.scores import SCORES
from rnnlab.options import (
    AttentionScore,
    CellType,
    Count,
    Natural,
    NotNegative,
    Number,
    Positive,
    Probability,
    Range,
    Stored,
    UpdateRuleName,
    accepts,
    check_option,
    check_options,
    described,
    expectation,
    option_annotations,
)
from rnnlab.training import UPDATE_RULES

Unit = Annotated[float, Range("(0, 1]")]


@pytest.mark.parametrize(
    ("annotation", "allowed", "refused"),
    [
        (bool, [True, np.True_], [1, "true", None]),
        (int, [3, np.int64(3), -1], [True, 2.0, "3"]),
        (float, [3, 2.5, np.float32(1)], [True, "1", 1j]),
        (str, ["a"], [3, None]),
        (Count, [1, 10], [0, 1.0, True]),
        (Natural, [0, 10], [-1]),
        (Number, [-3.0, 0], [math.inf, math.nan]),
        (Positive, [1e-9], [0, math.inf, math.nan]),
        (NotNegative, [0.0], [-1e-9, math.inf]),
        (Probability, [0, 0.5], [1, -0.1, math.nan]),
        (Unit, [1], [0]),
        (Literal["a", "b"], ["a"], ["c", 1]),
        (Count | None, [None, 3], [0]),
        (CellType, ["lstm", "package.module:Cell"], [3]),
        (list[Count], [[], [1, 2], (1,)], [[0], 3, "12"]),
        (Sequence[str], [["a"], ("a",)], ["a", [3]]),
        (Mapping[str, Any], [{}, {"a": object()}], [{1: 2}, [1]]),
    ],
)
def test_what_an_annotation_accepts(annotation, allowed, refused):
    assert [accepts(annotation, value) for value in allowed] == [True] * len(allowed)
    assert [accepts(annotation, value) for value in refused] == [False] * len(refused)
    for value in refused:
        with pytest.raises(ValueError, match="^f: x is .*, expected "):
            check_option("f", "x", annotation, value)


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        (Count, "an integer of at least 1"),
        (Natural | None, "an integer of at least 0 or None"),
        (Number, "a finite number"),
        (Positive, "a positive number"),
        (NotNegative, "a finite number of at least 0"),
        (Probability, "a probability in [0, 1)"),
        (Unit, "a number in (0, 1]"),
        (Annotated[int, Range("[1, 9]")], "an integer in [1, 9]"),
        (Literal["a", "b"], "one of 'a', 'b'"),
        (CellType, "one of 'rnn', 'lstm', 'gru', 'simplified_gru' or 'package.module:Object'"),
        (bool, "True or False"),
        (list[str], "a list of strings"),
        (dict[str, Any], "a mapping"),
    ],
)
def test_expectations_in_words(annotation, words):
    assert expectation(annotation) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.zeros((2, 3), np.int64), "an array of shape (2, 3) and dtype int64"),
        (np.float64(3), "a float64"),
        (3, "an int"),
        ([1], "a list"),
        (None, "None"),
        ((1.5, []), "a tuple of float, list"),
        ((), "a tuple of nothing"),
        ((1,) * 9, f"a tuple of {'int, ' * 8}..."),
    ],
)
def test_what_was_found_in_words(value, words):
    assert described(value) == words


class Example:
    def __init__(
        self,
        data: Mapping[str, int],
        size: Count = 3,
        dtype: Annotated[Any, Stored(Literal["float32", "float64"])] = np.float32,
        *,
        rng: np.random.Generator | int = 0,
        dropout: Probability | None = None,
    ) -> None:
        pass


def test_a_constructor_is_checked_by_its_annotations():
    given = {"data": {"a": "not checked"}, "size": 2, "dtype": "float64", "rng": "not checked", "other": 1}
    check_options("Example", Example, given)
    for name, value, expected in (
        ("size", 0, "an integer of at least 1"),
        ("dropout", 1.5, r"a probability in \[0, 1\) or None"),
        ("dtype", "float16", "one of 'float32', 'float64'"),
    ):
        with pytest.raises(ValueError, match=f"Example: {name} is {value!r}, expected {expected}"):
            check_options("Example", Example, given | {name: value})


def test_annotations_have_the_form_of_recipes():
    assert option_annotations(Example)["dtype"] == Literal["float32", "float64"]
    assert "return" not in option_annotations(Example)


def test_choices_are_those_that_there_are():
    assert expectation(UpdateRuleName).startswith(f"one of {', '.join(map(repr, UPDATE_RULES))} or")
    assert expectation(CellType).startswith(f"one of {', '.join(map(repr, CELLS))}")
    assert expectation(AttentionScore) == f"one of {', '.join(map(repr, SCORES))}"


@pytest.mark.parametrize(
    ("notation", "inside", "outside"),
    [
        ("[0, 1)", [0, 0.5], [-1, 1, math.nan]),
        ("(0, inf)", [1e-9, 1e9], [0, math.inf]),
        ("(0, 1]", [1], [0, 2]),
    ],
)
def test_interval(notation, inside, outside):
    assert all(number in Range(notation) for number in inside)
    assert not any(number in Range(notation) for number in outside)


def test_the_guide_describes_the_types_of_numbers():
    guide = (Path(__file__).resolve().parents[1] / "docs" / "extending.md").read_text(encoding="utf-8")
    table = guide.partition("## Types of options")[2]
    described = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", table, re.MULTILINE))
    numbers = {name for name in options.__all__ if get_args(getattr(options, name))[:1] in ((int,), (float,))}
    assert described == {name: options.expectation(getattr(options, name)) for name in numbers}
