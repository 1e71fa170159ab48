"""NumPy's own BLAS for large products, where it is faster than the kernels.

Which is faster depends on the processor and on the BLAS of this NumPy: OpenBLAS, Apple's Accelerate or
another. It is measured once and noted in a file beside the compiled kernels. So all processes choose the
same, and a run that resumes gets the same bits.
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
_SIZES = 512, 512, 2048  # of the products that are measured
_ROUNDS = 5  # the least time of each side counts
_CLEARLY = 0.9  # of the kernels' time, below which BLAS is chosen
_FASTER, _SLOWER = "NumPy's BLAS is faster\n", "the kernels are faster\n"


class NumpyBlas:
    """Products by ``numpy.matmul``."""

    def covers(self, x: Array, w: Array, out: Array) -> bool:
        """Whether it can multiply these: of one dtype."""
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
        Where the answer is noted; without a folder it is always no.
    threads : int
        Of the kernels.
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
    """Write the answer, whole or not at all; return what is noted: another process may have been first."""
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent)
    except OSError:
        return _SLOWER  # no process can note it, so all use the kernels
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
