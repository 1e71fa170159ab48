"""NumPy's own BLAS for large products, if it is faster than the kernels.

Which is faster depends on the processor and on the BLAS of this NumPy: OpenBLAS, Apple's Accelerate or
another. The answer is measured once for each number of threads and stored in a file next to the compiled
kernels, so that all processes with as many threads make the same choice, and a run that resumes gives the
same bits.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from llvmlite import binding

from rnnlab.ops.numba.memory import empty
from rnnlab.types import Array

__all__ = ["NumpyBlas", "is_faster"]
_SIZES = 512, 512, 2048  # sizes of the measured products
_ROUNDS = 5  # measurements, of which the shortest time counts
_CLEARLY = 0.9  # BLAS is chosen if it takes less than this fraction of the kernels' time
_FASTER, _SLOWER = "NumPy's BLAS is faster\n", "the kernels are faster\n"


class NumpyBlas:
    """Products by ``numpy.matmul``."""

    def covers(self, x: Array, w: Array, out: Array) -> bool:
        """Whether it can multiply these arrays: they must have the same dtype."""
        return x.dtype == w.dtype == out.dtype

    def multiply(self, x: Array, w: Array, out: Array, *, add: bool) -> None:
        """out = x w, or out += x w, (n, K) (K, G) -> (n, G)."""
        if add:
            out += np.matmul(x, w, out=empty(out.shape, out.dtype))
        else:
            np.matmul(x, w, out=out)


def is_faster(multiply: Callable[[Array, Array, Array], None], folder: str | None, threads: int) -> bool:
    """Whether NumPy's BLAS multiplies large matrices clearly faster than the kernels.

    Parameters
    ----------
    multiply : callable
        The kernels' product, ``multiply(x, w, out)``.
    folder : str, optional
        Where the answer is stored. Without a folder the answer is always no.
    threads : int
        The kernels' number of threads.
    """
    if folder is None:
        return False
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    setup = f"{binding.get_host_cpu_name()} {threads} {np.__version__} {blas}"
    path = Path(folder) / f"large-products-{hashlib.sha256(setup.encode()).hexdigest()[:16]}.txt"
    noted = _read(path)
    if noted not in (_FASTER, _SLOWER):
        rounds = [(_seconds(np.matmul), _seconds(multiply)) for _ in range(_ROUNDS)]
        of_blas, of_kernels = map(min, zip(*rounds, strict=True))
        noted = _note(path, _FASTER if of_blas < _CLEARLY * of_kernels else _SLOWER)
    return noted == _FASTER


def _seconds(multiply: Callable[[Array, Array, Array], object]) -> float:
    n, K, G = _SIZES
    x, w, out = np.ones((n, K), np.float32), np.ones((K, G), np.float32), np.empty((n, G), np.float32)
    started = time.perf_counter()
    multiply(x, w, out)
    return time.perf_counter() - started


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def _note(path: Path, answer: str) -> str:
    """Store the answer atomically, unless another process has stored one; return the stored answer."""
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent)
    except OSError:
        return _SLOWER  # no process can store it, so all use the kernels
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(answer)
        with contextlib.suppress(FileExistsError):
            os.link(temporary, path)
    except OSError:
        return _SLOWER
    finally:
        os.unlink(temporary)
    return _read(path)
