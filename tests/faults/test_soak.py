"""Training for long takes no more memory, files and threads than training for a short time."""

from __future__ import annotations

import sys

import pytest

from .small_runs import recipes
from .soak import soak

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


def check(folder, steps, megabytes):
    first, *_, last = soak(recipes(folder)["captions, dropout, zoneout"], folder, steps)[5:]
    assert last.steps >= 0.9 * steps
    assert last.megabytes - first.megabytes < megabytes
    assert (last.files, last.threads) == (first.files, first.threads)


@pytest.mark.slow
def test_hundreds_of_steps(tmp_path):
    check(tmp_path, 300, megabytes=10)


@pytest.mark.long
def test_a_hundred_thousand_steps(tmp_path):
    check(tmp_path, 100_000, megabytes=20)
