"""Damaged files are accepted or refused by name: no other error, no crash, no endless loop."""

from __future__ import annotations

import os
import sys

import pytest

from .formats import formats
from .mutations import damage_many
from .small_runs import recipes

pytestmark = [
    pytest.mark.skipif(
        not sys.platform.startswith("linux") or not hasattr(os, "fork"), reason="needs fork, /proc"
    ),
    pytest.mark.usefixtures("no_pictures"),
]


def check(folder, count):
    for name, each in formats(folder, recipes(folder)["captions, dropout, zoneout"]).items():
        each.read(each.path)  # the right file
        found = damage_many(each, count, seed=1)
        assert not found.examples, f"{name}: {found.counts} {found.examples}"
        assert found.counts["refused"] > count // 4, name


@pytest.mark.slow
def test_damaged_files_are_refused_by_name(tmp_path):
    check(tmp_path, 100)


@pytest.mark.long
def test_a_hundred_thousand_damaged_files(tmp_path):
    check(tmp_path, 8500)
