"""The command as a process."""

import os
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


@pytest.mark.skipif(os.name == "nt", reason="shells of Windows cannot close the standard files")
def test_no_file_takes_the_number_of_a_closed_standard_file():
    start = "from rnnlab.__main__ import _open_closed_files; _open_closed_files(); import os"
    then = "file = open(os.devnull); print(file.fileno() > 2, os.get_inheritable(0), os.get_inheritable(2))"
    command = ["sh", "-c", f'"{sys.executable}" -c "{start}; {then}" <&- 2>&-']
    assert subprocess.run(command, capture_output=True, text=True).stdout == "True True True\n"


@pytest.mark.slow
def test_the_command_runs_without_docstrings():
    command = [sys.executable, "-OO", "-m", "rnnlab", "--version"]
    assert subprocess.run(command, capture_output=True, text=True).stdout.startswith("rnnlab ")
