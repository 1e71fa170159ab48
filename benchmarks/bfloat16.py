"""Suites with products in bfloat16, compared with PyTorch in float32 and in bfloat16 autocast.

A side "autocast ..." is the side "torch ..." of another suite in autocast: PyTorch chooses which operations
are computed in bfloat16. rnnlab rounds the factors of all products of matrices, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any


def with_autocast(*torch_sides: str) -> tuple[str, ...]:
    """The sides of a suite, given PyTorch's sides in float32."""
    return ("rnnlab", *torch_sides, *(_other(side) for side in torch_sides))


def lacking() -> str:
    """Why this machine does not compute such products; empty if it does."""
    return f"is left out: {declined()}" if declined() else ""


def declined() -> str:
    """Why products in bfloat16 would be computed in float32, or slowly by NumPy; empty if they would not."""
    try:
        from rnnlab.ops.numba import bfloat16
    except ImportError as error:
        return f"there are no compiled kernels: {error}"
    return bfloat16.declined()


def prepare(suite: ModuleType, side: str, sizes: Any) -> Callable[[], Any]:
    """The work of a side, given the suite in float32."""
    work = suite.prepare(side.replace("autocast", "torch"), sizes)
    if side.startswith("torch"):
        return work
    context = _of_ours() if side.startswith("rnnlab") else _of_torch()

    def in_context() -> Any:
        with context():
            return work()

    return in_context


def _of_ours() -> Callable[[], AbstractContextManager[Any]]:
    from rnnlab.ops.precision import products_in

    return lambda: products_in("bfloat16")


def _of_torch() -> Callable[[], AbstractContextManager[Any]]:
    import torch

    return lambda: torch.autocast("cpu", torch.bfloat16)


def _other(side: str) -> str:
    return side.replace("torch", "autocast")
