"""Which GPU is in use, and what is on it."""

from __future__ import annotations

import cupy as cp

__all__ = ["use"]


def use(number: int, name: str) -> None:
    """Make a GPU the one that new arrays of this thread are on.

    Raises
    ------
    ImportError
        If CuPy finds no driver, or none that is new enough.
    ValueError
        If there is no GPU of that number.
    """
    try:
        count = cp.cuda.runtime.getDeviceCount()
    except cp.cuda.runtime.CUDARuntimeError as error:
        raise ImportError(f"device is {name!r}, but CuPy finds no GPU: {error}") from None
    if number >= count:
        raise ValueError(f"device is {name!r}, but there are {count} GPUs, numbered from 0")
    cp.cuda.Device(number).use()
