"""Products with a recurrent weight within kernels that run many steps.

A kernel of steps is written once (:func:`step_kernels`), and compiled for two kinds of weights: panels of T,
or panels of pairs of bfloat16, which are uint32. numba chooses the functions below by the kind. Products of
rounded factors need a workspace for the rows of x in bfloat16 (:func:`factor_rows`).
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import overload

from rnnlab.ops.numba import amx, bfloat16
from rnnlab.ops.numba.bfloat16 import begin_tiles, end_tiles, pairs_by_panels, round_rows, rounded_rows
from rnnlab.ops.numba.gemm import rows_by_panels
from rnnlab.ops.numba.kernel import OPTIONS, Kernel, inlined, kernel
from rnnlab.ops.numba.parallel import in_parts

__all__ = [
    "StepKernels",
    "edge_rows",
    "factor_rows",
    "multiply_columns",
    "multiply_rows",
    "round_factors",
    "step_kernels",
]

_OPTIONS: Any = OPTIONS
_EDGE = amx.ROWS  # the most rows of a tile of any kernel


class StepKernels(NamedTuple):
    """The kernels of one function."""

    exact: Kernel
    rounded: Kernel  # has no version if this processor does not multiply bfloat16


def step_kernels(signature: str, *, arguments: str) -> Callable[[Callable[..., Any]], StepKernels]:
    """Make kernels of a function, as :func:`~rnnlab.ops.numba.kernel.kernel` does.

    ``W`` stands for the dtype of the weights' panels, as in ``W[:,:,::1]`` and ``panels (Q, K, C) W``.
    """

    def make(function: Any) -> StepKernels:
        rounded = FunctionType(function.__code__, function.__globals__, f"{function.__name__}_rounded")
        return StepKernels(
            kernel(signature.replace("W[", "T["), arguments=arguments.replace(") W", ")"))(function),
            kernel(
                signature.replace("W[", "uint32["),
                arguments=arguments.replace(") W", ") uint32"),
                dtypes=bfloat16.VERSIONS,
            )(rounded),
        )

    return make


@inlined
def edge_rows(panels, like):
    """A workspace for the last columns of a result, of the dtype of ``like``."""
    return np.empty((_EDGE, panels.shape[2]), like.dtype)


@inlined
def multiply_rows(x, panels, rows, first_rows, edge, out):
    """out = x w, or out += x w if ``first_rows`` is the number of rows.

    ``rows`` is a workspace of :func:`factor_rows`, and ``edge`` one of :func:`edge_rows`.
    """
    round_factors(1, x, panels, rows)
    multiply_columns(0, 1, x, panels, rows, first_rows, edge, out, False)


def factor_rows(number, panels):
    """A workspace for this many rows of x in bfloat16; empty if factors are not rounded."""


def round_factors(parts, x, panels, rows):
    """Round x (n, K), in parts, which begins a product; nothing if factors are not rounded."""


def multiply_columns(part, parts, x, panels, rows, first_rows, edge, out, backwards):
    """A part's columns of :func:`multiply_rows` after the rounding, from the first panel or from the last."""


def _by_kind(function: Callable[..., None], exact: Callable[..., Any], rounded: Callable[..., Any]) -> None:
    """Let numba compile ``exact`` or ``rounded`` for calls of ``function``."""
    place = function.__code__.co_varnames.index("panels")

    @overload(function, jit_options=_OPTIONS, strict=False)
    def choose(*kinds):
        return rounded if kinds[place].dtype == types.uint32 else exact


def _no_rows(number, panels):
    return np.empty((0, 0), np.uint32)


def _rounded_rows(number, panels):
    return rounded_rows(number, panels.shape[1])


def _do_not_round(parts, x, panels, rows):
    pass


def _round(parts, x, panels, rows):
    in_parts(parts, round_rows, (x, 0, panels.shape[1], rows))


def _multiply(part, parts, x, panels, rows, first_rows, edge, out, backwards):
    rows_by_panels(x, panels, part, parts, out, first_rows, edge, out, backwards)


def _multiply_rounded(part, parts, x, panels, rows, first_rows, edge, out, backwards):
    begin_tiles()
    pairs_by_panels(rows, panels, part, parts, first_rows, edge, out, backwards)
    end_tiles()


_by_kind(factor_rows, _no_rows, _rounded_rows)
_by_kind(round_factors, _do_not_round, _round)
_by_kind(multiply_columns, _multiply, _multiply_rounded)
