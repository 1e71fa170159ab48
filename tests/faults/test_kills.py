"""Runs that are killed end with the bits of a run that is not."""

from __future__ import annotations

import os

import pytest

from ..training.mpirun import needs_mpi
from .killed_ranks import Job
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


@pytest.mark.slow
def test_a_few_kills_of_each_recipe(tmp_path):
    check(tmp_path, 4)


@pytest.mark.long
def test_a_thousand_kills(tmp_path):
    check(tmp_path, 200)


def check_ranks(folder, count):
    tables = recipes(folder)["captions, dropout, zoneout"]
    found = kill_many(tables, folder, count, seed=1, start=Job)
    assert (found.different, found.failed) == (0, [])
    assert found.kills >= count


@needs_mpi
def test_two_kills_of_ranks(tmp_path):
    check_ranks(tmp_path, 2)


@needs_mpi
@pytest.mark.long
def test_many_kills_of_ranks(tmp_path):
    check_ranks(tmp_path, 50)
