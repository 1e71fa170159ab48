"""The GPU in use: choosing and describing it."""

from __future__ import annotations

import cupy as cp

from rnnlab.errors import InputError, NotInstalledError

__all__ = ["describe", "use"]


def use(number: int, name: str) -> None:
    """Use a GPU for new arrays of this thread; ``name`` is its name in errors.

    Raises
    ------
    ImportError
        If CuPy finds no driver, or one that is too old.
    ValueError
        If there is no GPU of that number.
    """
    try:
        count = _count()
    except ImportError as error:
        raise NotInstalledError(f"device is {name!r}, but {error}") from None
    if number >= count:
        raise InputError(f"device is {name!r}, but there are {count} GPUs, numbered from 0")
    cp.cuda.Device(number).use()


def describe() -> str:
    """The name and the memory of the GPU in use, and CuPy's version.

    Raises
    ------
    ImportError
        If CuPy finds no GPU.
    """
    if not _count():
        raise NotInstalledError("CuPy finds no GPU")
    properties = cp.cuda.runtime.getDeviceProperties(cp.cuda.runtime.getDevice())
    memory = properties["totalGlobalMem"] / 2**30
    return f"{properties['name'].decode()}, {memory:.1f} GiB, CuPy {cp.__version__}"


def _count() -> int:
    try:
        return cp.cuda.runtime.getDeviceCount()
    except cp.cuda.runtime.CUDARuntimeError as error:
        raise NotInstalledError(f"CuPy finds no GPU, see nvidia-smi: {error}") from None
