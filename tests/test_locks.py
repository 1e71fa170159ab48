"""Locks of directories."""

from __future__ import annotations

import subprocess
import sys

import pytest

from rnnlab.locks import NAME, InUseError, locked

HOLD = """
import sys
from pathlib import Path
from rnnlab.locks import locked
with locked(Path(sys.argv[1]), "in use"):
    print("locked", flush=True)
    sys.stdin.read()
"""


def test_one_at_a_time(tmp_path):
    run = tmp_path / "runs" / "a"
    with locked(run, "in use"):
        assert [path.name for path in run.iterdir()] == [NAME]
        with (
            pytest.raises(InUseError, match="^in use$"),
            locked(run, "in use"),
        ):
            pytest.fail("locked twice")
    with locked(run, "in use"):
        pass


def test_a_killed_process_releases_the_lock(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with process:
        assert process.stdout.readline() == b"locked\n"
        with pytest.raises(InUseError), locked(tmp_path, "in use"):
            pytest.fail("locked by two processes")
        process.kill()
        process.wait()
    with locked(tmp_path, "in use"):
        pass
