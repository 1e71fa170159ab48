"""Commands whose output is read in part, or not at all."""

import errno
import os
import subprocess
import sys
from contextlib import contextmanager, redirect_stdout
from io import StringIO

import pytest

from rnnlab.cli.closed_output import quiet_when_closed


@contextmanager
def closed_output():
    """Standard output is a pipe that nothing reads. After a fixture, pytest would set its own output."""
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as output, redirect_stdout(output):
        yield output


def printing(status):
    print("a line")
    return status


def test_output_that_is_read(capsys):
    assert quiet_when_closed(lambda: printing(2)) == 2
    assert capsys.readouterr() == ("a line\n", "")


def test_output_that_is_closed_before_the_flush():
    with closed_output() as output:
        assert quiet_when_closed(lambda: printing(0)) == 141
        print("and more")
        output.flush()


def test_output_that_is_closed_while_the_command_prints():
    def flushing():
        print("a line", flush=True)
        raise AssertionError("not reached")

    with closed_output():
        assert quiet_when_closed(flushing) == 141


def test_help_that_is_closed():
    def helping():
        print("usage")
        raise SystemExit(0)

    with closed_output():
        assert quiet_when_closed(helping) == 141


def test_a_full_disk_is_left_to_the_flush_at_exit():
    class Full(StringIO):
        def flush(self):
            raise OSError(errno.ENOSPC, "No space left on device")

    with redirect_stdout(Full()):
        assert quiet_when_closed(lambda: printing(2)) == 2


def test_other_errors_are_not_caught(capsys):
    def failing():
        print("a line")
        raise FileNotFoundError("no such file")

    with pytest.raises(FileNotFoundError, match="no such file"):
        quiet_when_closed(failing)
    assert capsys.readouterr().out == "a line\n"


@pytest.mark.slow
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("arguments", [["recipes", "list"], ["--help"], ["recipes", "--help"]], ids=" ".join)
def test_the_command_ends_without_a_message(arguments, unbuffered):
    read, write = os.pipe()
    os.close(read)
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "rnnlab", *arguments],
            stdout=write,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
        )
    finally:
        os.close(write)
    assert ended.stderr == ""
    if not unbuffered or "--help" not in arguments:  # argparse ignores the errors of writing help
        assert ended.returncode == 141
