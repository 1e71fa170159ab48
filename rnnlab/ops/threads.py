"""The number of threads of all computations on the CPU.

It is ``RNNLAB_NUM_THREADS`` if set, else ``OMP_NUM_THREADS``, which most libraries obey, else the number of
processors that this process may use. MKL and the compiled kernels share one pool of OpenMP threads, so that
together they never run more threads than this. Without OpenMP they use one thread.

A process that is forked from this one, as :mod:`multiprocessing` does on Linux before Python 3.14, uses one
thread, because GNU's OpenMP ends a forked process that starts a parallel loop. Processes that are spawned,
with ``multiprocessing.get_context("spawn")``, use all threads.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

from rnnlab.errors import InputError, NotInstalledError

__all__ = [
    "has_openmp_threads",
    "import_numba",
    "limit_libraries",
    "num_processors",
    "num_threads",
]
_MOST_THREADS = 1024  # with far more, OpenMP ends the process
_OLDEST_NUMBA = 0, 62  # the first with LLVM's untyped pointers, which the kernels use


def num_threads() -> int:
    """The number of threads to use, at least 1.

    Raises
    ------
    ValueError
        If ``RNNLAB_NUM_THREADS`` is not an integer from 1 to 1,024.
    """
    if asked := _asked():
        if not asked.isdecimal() or not 1 <= int(asked) <= _MOST_THREADS:
            raise InputError(
                f"RNNLAB_NUM_THREADS is {asked!r}, expected an integer from 1 to {_MOST_THREADS:,}"
            )
        return int(asked)
    openmp = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    if openmp.isdecimal() and int(openmp) > 0:
        return min(int(openmp), _MOST_THREADS)
    return num_processors()


def num_processors() -> int:
    """The number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def default_jobs() -> int:
    """The number of processes that compile kernels: each needs about 300 MB."""
    return min(num_processors(), 8)


def has_openmp_threads() -> bool:
    """Whether numba's threads are OpenMP's. Call it after :func:`import_numba`."""
    numba = sys.modules["numba"]
    try:
        layer = numba.threading_layer()  # known once threads have run
    except ValueError:
        layer = numba.config.THREADING_LAYER
    return layer == "omp"


def import_numba() -> Any:
    """Import numba with OpenMP threads, unless NUMBA_THREADING_LAYER asks for others.

    If ``RNNLAB_NUM_THREADS`` is set, the libraries that are already loaded are limited to it, too.

    Raises
    ------
    ImportError
        If numba or threadpoolctl is missing, or numba is too old.
    """
    numba: Any = importlib.import_module("numba")
    if tuple(map(int, numba.__version__.split(".")[:2])) < _OLDEST_NUMBA:
        oldest = ".".join(map(str, _OLDEST_NUMBA))
        raise NotInstalledError(f"numba {numba.__version__} is installed, expected at least {oldest}")
    importlib.import_module("threadpoolctl")
    if _has_openmp() and numba.config.THREADING_LAYER == "default":
        numba.config.THREADING_LAYER = "omp"
    limit_libraries()
    return numba


def limit_libraries() -> None:
    """If ``RNNLAB_NUM_THREADS`` is set, limit the BLAS and OpenMP libraries that are already loaded."""
    if _asked():
        importlib.import_module("threadpoolctl").threadpool_limits(num_threads())


def _asked() -> str:
    return os.environ.get("RNNLAB_NUM_THREADS", "").strip()


def _has_openmp() -> bool:
    try:
        import numba.np.ufunc.omppool  # noqa: F401
    except ImportError:
        return False
    return True
