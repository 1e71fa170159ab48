"""Sums over the GPUs of several processes, from GPU to GPU through NCCL, in the order of the ranks.

Rank r receives the r-th piece of every rank's array, adds the pieces in order, and sends the total to all.
The sum is therefore bitwise equal to a sum in host memory. NCCL's own sum adds in an order that depends on
how the GPUs are connected.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import cupy as cp
import numpy as np

from rnnlab.types import Array

__all__ = ["NCCLSum", "machine_and_gpu", "new_identity"]


def machine_and_gpu() -> tuple[str, str] | None:
    """The machine and the GPU in use, for each pair of which NCCL allows one rank; None without NCCL."""
    try:
        available = _nccl().available
    except (AttributeError, ImportError):
        return None
    return (socket.gethostname(), cp.cuda.Device().pci_bus_id) if available else None


def new_identity() -> Any:
    """An identifier that one rank creates and all ranks of a job pass to :class:`NCCLSum`."""
    return _nccl().get_unique_id()


class NCCLSum:
    """Sums arrays over the ranks. All ranks must create it, and call it, together.

    Parameters
    ----------
    identity
        Of :func:`new_identity`.
    rank, size : int
    """

    def __init__(self, identity: Any, rank: int, size: int) -> None:
        self._rank, self._size = rank, size
        self._communicator = _nccl().NcclCommunicator(size, identity, rank)

    def __call__(self, array: Array) -> None:
        """Replace an array (P,), float32 or float64, by the sum of all ranks' arrays, and wait for it."""
        bounds = [rank * array.size // self._size for rank in range(self._size + 1)]
        parts = [array[start:stop] for start, stop in pairwise(bounds)]
        own = parts[self._rank]
        pieces = cp.empty((self._size, own.size), array.dtype)
        pieces[self._rank] = own
        self._exchange(parts.__getitem__, pieces.__getitem__)
        total = pieces[0]
        for piece in pieces[1:]:
            total += piece
        own[...] = total
        self._exchange(lambda peer: own, parts.__getitem__)
        cp.cuda.get_current_stream().synchronize()

    def _exchange(self, sent: Callable[[int], Array], received: Callable[[int], Array]) -> None:
        """Send an array to every other rank and receive one from it, all at the same time."""
        nccl, stream = _nccl(), cp.cuda.get_current_stream().ptr
        kinds = {np.dtype(np.float32): nccl.NCCL_FLOAT32, np.dtype(np.float64): nccl.NCCL_FLOAT64}
        nccl.groupStart()
        for peer in range(self._size):
            if peer == self._rank:
                continue
            for move, array in (
                (self._communicator.send, sent(peer)),
                (self._communicator.recv, received(peer)),
            ):
                if array.size:
                    move(array.data.ptr, array.size, kinds[array.dtype], peer, stream)
        nccl.groupEnd()


def _nccl() -> Any:
    from cupy.cuda import nccl  # some builds of CuPy have a module without its functions

    return nccl
