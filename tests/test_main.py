"""The command as a process."""

import subprocess
import sys

import pytest

import rnnlab
from rnnlab.__main__ import _formatted


def test_a_warning_of_the_library_is_one_line():
    assert _formatted("no AMX", RuntimeWarning, rnnlab.__file__, 3) == "rnnlab: no AMX\n"


def test_other_warnings_show_their_place():
    assert _formatted("old", DeprecationWarning, rnnlab.__file__, 3).startswith(f"{rnnlab.__file__}:3: ")
    assert _formatted("overflow", RuntimeWarning, "cells.py", 3).startswith(
        "cells.py:3: RuntimeWarning: over"
    )


@pytest.mark.slow
def test_the_command_runs_without_docstrings():
    command = [sys.executable, "-OO", "-m", "rnnlab", "--version"]
    assert subprocess.run(command, capture_output=True, text=True).stdout.startswith("rnnlab ")
