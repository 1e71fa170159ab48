"""The CUDA source of the kernels: a file a subject, compiled together, each after those that it needs."""

from __future__ import annotations

import functools
import re
from importlib import resources

__all__ = ["FILES", "kernel_parameters", "kernel_source"]

FILES = (
    "common.cu",
    "rows.cu",
    "cells.cu",
    "lstm_steps.cu",
    "scores.cu",
    "margin.cu",
    "attention.cu",
    "optim.cu",
)


_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_KERNEL = re.compile(r"^(?:BLOCK_|GRID_)?KERNEL\((\w+)\)\s*\(([^)]*)\)\s*\{", re.MULTILINE)


def kernel_source() -> str:
    """The text of all files, in order."""
    folder = resources.files(__package__) / "cuda" / "kernels"
    return "\n".join(folder.joinpath(name).read_text("utf-8") for name in FILES)


@functools.cache
def kernel_parameters() -> dict[str, tuple[str, ...]]:
    """The types of each kernel's parameters, such as ``Size`` and ``REAL``; ``*`` for an array."""
    kernels = _KERNEL.findall(_COMMENT.sub("", kernel_source()))
    return {
        name: tuple("*" if "*" in each else each.split()[-2] for each in parameters.split(","))
        for name, parameters in kernels
    }
