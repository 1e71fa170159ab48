"""The selection and the description of GPUs."""

from __future__ import annotations

import cupy as cp

from rnnlab.errors import InputError, NotInstalledError

__all__ = ["count", "describe", "use"]


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
        found = count()
    except ImportError as error:
        raise NotInstalledError(f"device is {name!r}, but {error}") from None
    if number >= found:
        raise InputError(f"device is {name!r}, but there are {found} GPUs, numbered from 0")
    cp.cuda.Device(number).use()


def describe(number: int | None = None) -> str:
    """The name and the memory of a GPU, by default the one in use, and CuPy's version.

    Raises
    ------
    ImportError
        If CuPy finds no GPU.
    """
    if not count():
        raise NotInstalledError("CuPy finds no GPU")
    number = cp.cuda.runtime.getDevice() if number is None else number
    properties = cp.cuda.runtime.getDeviceProperties(number)
    memory = properties["totalGlobalMem"] / 2**30
    return f"{properties['name'].decode()}, {memory:.1f} GiB, CuPy {cp.__version__}"


def count() -> int:
    """The number of GPUs of this machine.

    Raises
    ------
    ImportError
        If CuPy finds no driver, or one that is too old.
    """
    try:
        return cp.cuda.runtime.getDeviceCount()
    except cp.cuda.runtime.CUDARuntimeError as error:
        raise NotInstalledError(f"CuPy finds no GPU, see nvidia-smi: {error}") from None
