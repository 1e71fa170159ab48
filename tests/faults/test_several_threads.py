"""Models in several threads, and after a fork."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize(
    ("threads", "ops"),
    [("1", ""), ("1", "numpy"), *(pytest.param(each, "", marks=pytest.mark.long) for each in "23")],
)
def test_the_bits_are_those_of_one_thread(threads, ops):
    names = ("RNNLAB_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS")
    environment = os.environ | dict.fromkeys(names, threads) | ({"RNNLAB_OPS": ops} if ops else {})
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.several_threads"],
        env=environment,
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("the same bits") == 3
