"""Waits that take too long, and others."""

from __future__ import annotations

import sys
import threading
import time
from queue import SimpleQueue
from types import SimpleNamespace

import numpy as np
import pytest

from rnnlab.parameters import Parameters
from rnnlab.training.distributed import MPICommunicator, in_shares
from rnnlab.training.gradient_sum import GradientSum
from rnnlab.training.watchdog import Watchdog


def test_a_wait_beyond_the_limit_ends():
    ended = SimpleQueue()
    watchdog = Watchdog(0.1, ended.put)
    with watchdog.over("sum"):
        assert ended.get(timeout=30).exchange == "sum"


@pytest.mark.slow
def test_many_short_waits_do_not_add_up():
    ended = SimpleQueue()
    watchdog = Watchdog(5.0, ended.put)
    until = time.monotonic() + 6
    while time.monotonic() < until:
        with watchdog.over("sum"):
            time.sleep(0.05)
    assert ended.empty()


def test_work_between_waits_does_not_count():
    ended = SimpleQueue()
    watchdog = Watchdog(0.2, ended.put)
    with watchdog.over("gather"):
        pass
    time.sleep(1)
    assert ended.empty()


@pytest.fixture
def aborted(monkeypatch):
    """A stand-in for mpi4py whose exchanges wait until the job is aborted, and its exit status."""
    monkeypatch.setattr("sys.excepthook", sys.excepthook)
    waits, statuses = threading.Event(), []

    def wait(*arrays):
        waits.wait(timeout=60)
        return []

    def abort(status):
        statuses.append(status)
        waits.set()

    def begin(*arrays):
        return SimpleNamespace(Wait=wait)

    exchanges = {"allgather": wait, "Bcast": wait, "Ialltoallv": begin, "Iallgatherv": begin}
    return MPICommunicator(SimpleNamespace(rank=0, size=2, Abort=abort, **exchanges), timeout=0.2), statuses


@pytest.mark.parametrize("exchange", ["gather", "sum", "share"])
def test_the_error_names_the_exchange_and_who_needs_it(exchange, aborted, capsys):
    communicator, statuses = aborted
    if exchange == "sum":
        GradientSum(communicator, Parameters({"W": (4,)})).end()
    else:
        getattr(communicator, exchange)(np.zeros(4))
    assert statuses == [1]
    shown = capsys.readouterr().err
    assert f"rank 0 of 2 has waited 0.2 s for the others in the exchange {exchange}, called by " in shown
    assert "called by test_the_error_names_the_exchange_and_who_needs_it (test_watchdog.py, line " in shown
    assert "the last checkpoint remains" in shown


def test_the_error_names_who_shares_work(aborted, capsys):
    communicator, _ = aborted
    in_shares(communicator, [], abs)
    shown = capsys.readouterr().err
    assert "called by test_the_error_names_who_shares_work (test_watchdog.py, line " in shown
