"""Where a rank is, and whether it can use NCCL; tests/training/test_on_mpi.py has the sums."""

import importlib
import socket
from types import SimpleNamespace

import pytest


@pytest.fixture
def nccl(simulated):
    return importlib.import_module("rnnlab.ops.cuda.nccl")


def test_a_place_is_a_gpu_of_a_machine(nccl, simulated, monkeypatch):
    monkeypatch.setattr(simulated.cuda, "nccl", SimpleNamespace(available=True))
    assert nccl.machine_and_gpu() == (socket.gethostname(), "0000:00:00.0")


@pytest.mark.parametrize("module", [SimpleNamespace(available=False), SimpleNamespace(), None])
def test_there_is_no_place_without_nccl(module, nccl, simulated, monkeypatch):
    """CuPy for another platform has no such module, or one without its functions."""
    if module is None:
        monkeypatch.delattr(simulated.cuda, "nccl")
    else:
        monkeypatch.setattr(simulated.cuda, "nccl", module)
    assert nccl.machine_and_gpu() is None
