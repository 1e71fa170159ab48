"""The choice of a communicator, and that of MPI with a stand-in for mpi4py."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from rnnlab.training.distributed import MPICommunicator, OneProcess, communicator_of, world


def mpi(monkeypatch, size):
    """A stand-in for the module of mpi4py, with a job of this size."""
    found = SimpleNamespace(COMM_WORLD=SimpleNamespace(size=size, rank=1, Alltoallv=None))
    monkeypatch.setitem(sys.modules, "mpi4py", SimpleNamespace(MPI=found))
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)


@pytest.fixture
def no_launcher(monkeypatch):
    for name in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("no_launcher")
@pytest.mark.parametrize("name", ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"])
def test_the_launcher_is_found(name, monkeypatch):
    mpi(monkeypatch, 2)
    assert isinstance(world(), OneProcess)
    assert isinstance(world(wanted=True), MPICommunicator)
    monkeypatch.setenv(name, "1")
    assert isinstance(world(), OneProcess)
    monkeypatch.setenv(name, "2")
    assert (world().rank, world().size) == (1, 2)
    monkeypatch.setenv(name, "3")
    with pytest.raises(
        ValueError, match="the launcher has started 3 processes, and MPI finds 2: mpi4py uses"
    ):
        world()


@pytest.mark.usefixtures("no_launcher")
def test_without_mpi4py(monkeypatch):
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    assert world().size == 1
    with pytest.raises(ImportError, match=r'needs mpi4py and an MPI library: pip install "rnnlab\[mpi\]"'):
        world(wanted=True)


def test_one_rank_is_one_process():
    assert isinstance(communicator_of(SimpleNamespace(size=1, rank=0, Alltoallv=None)), OneProcess)
    assert isinstance(communicator_of(None), OneProcess)


def test_a_communicator_of_mpi4py_is_wrapped_once(monkeypatch):
    """Each wrapper would leave a hook for exceptions and a thread."""
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr("rnnlab.training.distributed.communicators._MADE", [])
    given = [SimpleNamespace(size=2, rank=0, Alltoallv=None) for _ in range(2)]
    made = [communicator_of(each) for each in given]
    hook = sys.excepthook
    assert communicator_of(given[0]) is made[0]
    assert communicator_of(given[1]) is made[1]
    assert made[0] is not made[1]
    assert communicator_of(given[0], timeout=7) is not made[0]
    assert sys.excepthook is not hook


def test_an_exception_that_nothing_catches_ends_the_job(monkeypatch):
    statuses, shown = [], []
    monkeypatch.setattr(sys, "excepthook", lambda *error: shown.append(error))
    monkeypatch.setattr("rnnlab.training.distributed.communicators._SECONDS_OF_RANK_0", 0)
    MPICommunicator(SimpleNamespace(size=2, rank=1, Abort=statuses.append))
    sys.excepthook(ValueError, ValueError("wrong"), None)
    assert len(shown) == 1
    assert statuses == [1]


def test_a_signature_with_one_process_is_readable():
    assert repr(OneProcess()) == "OneProcess()"


def test_what_is_no_communicator():
    every = [name for name in dir(OneProcess) if not name.startswith("_")]
    own = SimpleNamespace(**dict.fromkeys(every, print))
    assert communicator_of(own) is own
    for lost in every:
        some = SimpleNamespace(**dict.fromkeys(set(every) - {lost}, print))
        with pytest.raises(TypeError, match="communicator is of type SimpleNamespace, expected a comm"):
            communicator_of(some)
