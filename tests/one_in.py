"""Tests with many alike cases, of which the default tests have some: the others are marked slow.

``@pytest.mark.one_in(3)`` keeps one in three of a test's cases. Tests on CuPy's stand-in keep one in four,
because it computes element by element.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence

import pytest

_ON_THE_STAND_IN = 4


@pytest.hookimpl(tryfirst=True)  # before pytest selects by marks
def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Mark the other cases slow."""
    cases: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if not any(map(item.get_closest_marker, ("gpu", "slow", "long"))):
            cases[item.nodeid.partition("[")[0]].append(item)
    for alike in cases.values():
        kept = -(-len(alike) // _share(alike[0]))
        for item in _shuffled(alike)[kept:]:
            item.add_marker("slow")


def _share(item: pytest.Item) -> int:
    """The default tests have one case in so many."""
    mark = item.get_closest_marker("one_in")
    if mark is not None:
        (share,) = mark.args
        return int(share)
    values = item.callspec.params.values() if hasattr(item, "callspec") else ()
    on_the_stand_in = "simulated" in getattr(item, "fixturenames", ()) or "simulated" in map(str, values)
    return _ON_THE_STAND_IN if on_the_stand_in else 1


def _shuffled(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """In an order that depends on the names alone, so that the same cases are kept in every run."""
    return sorted(items, key=lambda item: hashlib.sha256(item.nodeid.encode()).digest())
