"""Locks of directories."""

from __future__ import annotations

import subprocess
import sys

import pytest

from rnnlab.files import WriteError
from rnnlab.locks import NAME, DirectoryLock, InUseError, locked

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


def test_a_lock_whose_directory_is_deleted(tmp_path):
    run = tmp_path / "run"
    with locked(run, "in use") as lock:
        lock.check()
        (run / NAME).unlink()
        run.rmdir()
        lock.check()  # nobody else has it: the lock is made again
        with pytest.raises(InUseError), locked(run, "in use"):
            pytest.fail("locked twice")
        (run / NAME).unlink()
        with locked(run, "in use"), pytest.raises(InUseError, match="^in use$"):
            lock.check()
        for _ in range(2):
            with pytest.raises(InUseError, match="^in use$"):
                lock.check()  # the other process may have written to it


def test_a_lock_that_cannot_be_made_again(tmp_path):
    run = tmp_path / "run"
    with locked(run, "in use") as lock:
        (run / NAME).unlink()
        run.rmdir()
        run.write_text("a file")
        with pytest.raises(WriteError, match="was not written"):
            lock.check()
        run.unlink()
        run.symlink_to(tmp_path / "nowhere")
        with pytest.raises(WriteError, match="was not written: .*run: File exists"):
            lock.check()
        with pytest.raises(InUseError):
            lock.check()


def test_a_lock_that_cannot_be_written(tmp_path):
    (tmp_path / NAME).mkdir()
    with pytest.raises(WriteError, match=f"^{tmp_path / NAME} was not written: Is a directory$"):
        DirectoryLock(tmp_path, "in use")
