"""Runs that are killed end with the bits of a run that is not."""

from __future__ import annotations

import os

import pytest

from .kills import kill_many
from .small_runs import recipes

pytest.importorskip("sklearn")
pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    pytest.mark.usefixtures("no_pictures"),
]


def check(folder, count):
    for number, (name, tables) in enumerate(recipes(folder).items()):
        where = folder / f"runs{number}"
        where.mkdir()
        found = kill_many(tables, where, count, seed=number)
        assert (found.different, found.failed) == (0, []), name
        assert found.kills >= count


def test_a_few_kills_of_each_recipe(tmp_path):
    check(tmp_path, 4)


@pytest.mark.slow
def test_a_thousand_kills(tmp_path):
    check(tmp_path, 200)
