"""The stand-in of ``cupy.cuda.nccl``: the GPUs of the ranks of an MPI job send through MPI.

As in NCCL, the messages between ``groupStart`` and ``groupEnd`` are sent and received together.
"""

from __future__ import annotations

import ctypes
from typing import Any

available = True
NCCL_FLOAT32, NCCL_FLOAT64 = 7, 8
moved: list[int] = []  # the bytes of each message
_BYTES = {NCCL_FLOAT32: 4, NCCL_FLOAT64: 8}
_group: list[Any] | None = None  # requests


def get_unique_id() -> tuple[int, ...]:
    return tuple(range(-64, 64))


def groupStart() -> None:
    global _group
    assert _group is None
    _group = []


def groupEnd() -> None:
    global _group
    assert _group is not None
    for request in _group:
        request.Wait()
    _group = None


class NcclCommunicator:
    def __init__(self, ndev: int, commId: tuple[int, ...], rank: int) -> None:
        from mpi4py import MPI

        assert commId == get_unique_id()
        assert (rank, ndev) == (MPI.COMM_WORLD.rank, MPI.COMM_WORLD.size)
        self._mpi = MPI.COMM_WORLD.Dup()

    def send(self, sendbuf: int, count: int, datatype: int, peer: int, stream: int) -> None:
        self._begin(self._mpi.Isend, sendbuf, count, datatype, peer)

    def recv(self, recvbuf: int, count: int, datatype: int, peer: int, stream: int) -> None:
        self._begin(self._mpi.Irecv, recvbuf, count, datatype, peer)

    def _begin(self, move: Any, buffer: int, count: int, datatype: int, peer: int) -> None:
        size = count * _BYTES[datatype]
        moved.append(size)
        assert _group is not None
        assert peer != self._mpi.rank
        _group.append(move((ctypes.c_char * size).from_address(buffer), peer))
