"""The precision of matrix products of float32.

- "float32": the default.
- "tf32": a GPU rounds the factors to 10 bits of mantissa. On the CPU it is float32.
- "tf32x3": a GPU splits each factor of a large product into two numbers of 10 bits and sums three of their
  products. By an estimate, errors are five to ten times those of float32 (:mod:`rnnlab.ops.cuda.factors`).
  On the CPU it is float32.
- "bfloat16": the factors are rounded to bfloat16, to nearest even, which leaves 7 bits.

Products of two numbers, their sums and the results are float32 in each case, and so are parameters,
activations, gradients and updates. Products of float64 are not affected. The environment variable
RNNLAB_MATMUL sets the precision of the process and is read once; :func:`products_in` sets it for a block of
code in one thread.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Iterator
from contextvars import ContextVar
from typing import get_args

from rnnlab.errors import InputError
from rnnlab.options import MatmulName

__all__ = ["products_in", "products_precision"]


def _checked(name: str, asked: str) -> MatmulName:
    for known in get_args(MatmulName):
        if asked == known:
            return known
    raise InputError(f"{name} is {asked!r}, expected 'float32', 'tf32', 'tf32x3' or 'bfloat16'")


@functools.cache
def _of_process() -> MatmulName:
    return _checked("RNNLAB_MATMUL", os.environ.get("RNNLAB_MATMUL") or "float32")


_of_block: ContextVar[MatmulName | None] = ContextVar("products_precision", default=None)


def products_precision() -> MatmulName:
    """The current precision of products of float32.

    Raises
    ------
    ValueError
        If RNNLAB_MATMUL is not one of the four names.
    """
    return _of_block.get() or _of_process()


@contextlib.contextmanager
def products_in(matmul: MatmulName) -> Iterator[None]:
    """Compute the products of this thread in another precision.

    Parameters
    ----------
    matmul : str
        "float32", "tf32", "tf32x3" or "bfloat16".

    Raises
    ------
    ValueError
        If it is not one of the four names.
    """
    token = _of_block.set(_checked("matmul", matmul))
    try:
        yield
    finally:
        _of_block.reset(token)
