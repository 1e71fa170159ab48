"""Commands on several processes, and how an error ends them."""

from __future__ import annotations

import argparse
import sys
from types import SimpleNamespace

import pytest

from rnnlab import cli
from rnnlab.cli.mpi_option import add_mpi, find_ranks
from rnnlab.training.distributed import TIMEOUT


def test_the_option_asks_mpi(monkeypatch):
    monkeypatch.setattr("rnnlab.cli.mpi_option.world", lambda wanted, timeout: (wanted, timeout))
    parser = argparse.ArgumentParser()
    add_mpi(parser)
    assert find_ranks(parser.parse_args(["--mpi"])) == (True, TIMEOUT)
    assert find_ranks(parser.parse_args(["--mpi-timeout", "60"])) == (False, 60)
    assert find_ranks(argparse.Namespace()).size == 1


@pytest.mark.parametrize("rank", [0, 1])
def test_an_error_ends_all_processes_with_the_status_of_the_command(rank, monkeypatch, capsys, tmp_path):
    done = []
    ranks = SimpleNamespace(
        rank=rank,
        size=2,
        begin_abort=lambda: done.append(capsys.readouterr().err),
        abort=lambda status: done.append((status, capsys.readouterr().err)),
    )
    monkeypatch.setattr("rnnlab.cli.find_ranks", lambda options: ranks)
    assert cli.main(["train", str(tmp_path / "none.toml")]) == 2
    nothing, (status, shown) = done
    assert nothing == ""
    assert status == 2
    assert shown.startswith("rnnlab train: ")


def test_without_mpi4py_a_command_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    assert cli.main(["train", "shapes", "--mpi"]) == 2
    assert 'pip install "rnnlab[mpi]"' in capsys.readouterr().err
