"""What the ranks do together: they share work, sum and compare arrays, and divide the GPUs of a machine."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from hashlib import blake2b
from typing import Any, NamedTuple, TypeVar

import numpy as np

from rnnlab.errors import RnnlabError
from rnnlab.ops import gpu_training, num_gpus, ops_for
from rnnlab.parameters import Parameters
from rnnlab.training.distributed.communicators import Communicator
from rnnlab.training.interrupt import Interrupted

Item = TypeVar("Item")
Value = TypeVar("Value")


class DriftError(RnnlabError, RuntimeError):
    """Ranks have different parameters."""


@contextmanager
def rank_0_prints(communicator: Communicator) -> Iterator[None]:
    """A context that discards the standard output of all ranks but rank 0."""
    if communicator.rank == 0:
        yield
        return
    with open(os.devnull, "w", encoding="utf-8", errors="replace") as nowhere, redirect_stdout(nowhere):
        yield


def device_of_rank(communicator: Communicator, device: str) -> str:
    """The device of this rank. If ``device`` is "gpu", the ranks of a machine take its GPUs in turn.

    Raises
    ------
    ImportError
        If the device is "gpu", and CuPy is missing or finds no driver.
    """
    if communicator.size == 1 or device != "gpu":
        return device
    return f"gpu:{communicator.local_rank % max(num_gpus(), 1)}"


@contextmanager
def on_host(array: Any) -> Iterator[np.ndarray]:
    """A context with an array in the memory of the host, which is copied back to its device at the end."""
    ops = ops_for(array)
    found = ops.asnumpy(array)  # NumPy's arrays are there already
    yield found
    if found is not array:
        array[...] = ops.asarray(found)


def sum_on_gpus(communicator: Communicator, array: Any) -> Callable[[Any], None] | None:
    """A function that sums such an array over all ranks from GPU to GPU; None if sums go through host memory.

    It needs arrays on GPUs, one GPU for each rank, and NCCL on each rank.
    """
    if communicator.size == 1 or isinstance(array, np.ndarray):
        return None
    nccl = gpu_training()
    places = communicator.gather(nccl.machine_and_gpu())
    if None in places or len(set(places)) < len(places):
        return None
    identity = communicator.gather(nccl.new_identity() if communicator.rank == 0 else None)[0]
    with communicator.watch("sum"):
        return nccl.NCCLSum(identity, communicator.rank, communicator.size)


def check_same(communicator: Communicator, params: Parameters, when: str) -> None:
    """Compare the parameters of all ranks by a checksum.

    Raises
    ------
    DriftError
        On every rank, if they differ; names the ranks.
    """
    if communicator.size == 1:
        return
    flat: Any = ops_for(params.flat).asnumpy(params.flat)  # an array has the buffer protocol
    checksum = blake2b(flat, digest_size=16).digest()
    first, *others = communicator.gather(checksum)
    drifted = [str(rank) for rank, other in enumerate(others, 1) if other != first]
    if drifted:
        raise DriftError(
            f"{when}: the parameters of rank {', '.join(drifted)} are not those of rank 0; all ranks need "
            "the same data, seed, number of threads, versions of libraries, and kind of processor; a "
            "callback, which rank 0 alone calls, must not change parameters"
        )


def gather_results(communicator: Communicator, value: Value) -> list[Value]:
    """As :meth:`Communicator.gather`, in work that a signal may interrupt: see :func:`of_rank_0`.

    Raises
    ------
    Interrupted
        If a signal has interrupted the work of another rank.
    """
    values = communicator.gather(value)
    if any(isinstance(each, _Interruption) for each in values):
        raise Interrupted
    return values


def in_shares(
    communicator: Communicator, items: Sequence[Item], work: Callable[[Item], Value]
) -> list[Value]:
    """The results of work on each item, in order, on every rank. Rank r of K works on items r, r + K, ...

    The items, such as the batches of a split, must not depend on the number of ranks. The results are then
    bitwise independent of it, too.

    Raises
    ------
    Interrupted
        As :func:`gather_results`.
    """
    mine = slice(communicator.rank, None, communicator.size)
    results: list[Any] = [None] * len(items)
    own = [work(item) for item in items[mine]]
    for rank, of_rank in enumerate(gather_results(communicator, own)):
        results[rank :: communicator.size] = of_rank
    return results


def by_rank_0(communicator: Communicator, work: Callable[[], Value]) -> Value:
    """The result of work that rank 0 alone does, on every rank.

    Raises
    ------
    RnnlabError
        On every rank, if rank 0 raises it.
    Interrupted
        As :func:`gather_results`.
    """
    outcome: Any = None
    if communicator.rank == 0:
        try:
            outcome = work()
        except RnnlabError as error:
            outcome = _Failure(error)
    outcome = gather_results(communicator, outcome)[0]
    if isinstance(outcome, _Failure):
        raise outcome.error
    return outcome


def of_rank_0(communicator: Communicator, work: Callable[[], Value]) -> Value:
    """Let all ranks work, and return the result of rank 0.

    Parameters
    ----------
    communicator : Communicator
    work : callable
        May call :func:`gather_results`, :func:`in_shares` and :func:`by_rank_0`, and nothing else that
        communicates.

    Raises
    ------
    Interrupted
        On every rank, if a signal has interrupted the work of one.
    """
    outcome: _End | _Interruption
    try:
        outcome = _End(work())
    except Interrupted:
        outcome = _Interruption()
    # Ranks that are still working receive the interruption in their next exchange, and then come here.
    outcomes: list[Any] = communicator.gather(outcome)
    while not all(isinstance(each, _End | _Interruption) for each in outcomes):
        outcomes = communicator.gather(outcome)
    if any(isinstance(each, _Interruption) for each in outcomes):
        raise Interrupted
    return outcomes[0].result


class _End(NamedTuple):
    """Gathered by a rank whose work is done."""

    result: Any


class _Interruption:
    """Gathered instead of a value by a rank whose work was interrupted."""


class _Failure(NamedTuple):
    """Gathered instead of a value by a rank that has raised an error."""

    error: RnnlabError
