from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import pytest

from rnnlab.options import Count, Probability
from rnnlab.training.configured import Configured, check_names


@dataclass(kw_only=True)
class Options(Configured):
    rate: Probability
    every: Count = 2
    kind: Literal["a", "b"] = "a"
    seen: list[int] = field(default_factory=list, init=False)


def test_fields_are_checked_and_returned():
    options = Options(rate=0, kind="b")
    assert options.config() == {"rate": 0.0, "every": 2, "kind": "b"}
    assert (type(options.rate), type(options.every)) == (float, int)
    for wrong, message in (
        ({"rate": 1}, r"Options: rate is 1, expected a probability in \[0, 1\)"),
        ({"rate": 0, "every": True}, "Options: every is True, expected an integer of at least 1"),
        ({"rate": 0, "kind": "c"}, "Options: kind is 'c', expected one of 'a', 'b'"),
    ):
        with pytest.raises(ValueError, match=message):
            Options(**wrong)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rate": 0, "evry": 1}, "place: unknown key 'evry'; it has rate, every, kind"),
        ({"rate": 0, "seen": []}, "place: unknown key 'seen'; it has rate, every, kind"),
        ({"every": 1}, "place: rate is missing"),
    ],
)
def test_names_are_those_of_the_fields(options, message):
    check_names("place", Options, {"rate": 0}, "it")
    with pytest.raises(ValueError, match=message):
        check_names("place", Options, options, "it")
