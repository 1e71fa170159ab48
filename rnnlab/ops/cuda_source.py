"""The CUDA source of the kernels: one file per subject, compiled together, each after those that it needs.

The kernels of :data:`SEQUENCES` are compiled separately, for each set of constants.
"""

from __future__ import annotations

import functools
import re
from importlib import resources

__all__ = ["FILES", "SEQUENCES", "kernel_parameters", "kernel_source"]

FILES = (
    "common.cu",
    "rows.cu",
    "cells.cu",
    "lstm_steps.cu",
    "scores.cu",
    "beams.cu",
    "margin.cu",
    "attention.cu",
    "optim.cu",
    "narrow.cu",
)
SEQUENCES = ("common.cu", "lstm_sequences.cu")

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_KERNEL = re.compile(r"^(?:BLOCK_|GRID_)?KERNEL\((\w+)\)\s*\(([^)]*)\)\s*\{", re.MULTILINE)


def kernel_source(files: tuple[str, ...] = FILES) -> str:
    """The text of the files, in order."""
    folder = resources.files(__package__) / "cuda" / "kernels"
    return "\n".join(folder.joinpath(name).read_text("utf-8") for name in files)


@functools.cache
def kernel_parameters() -> dict[str, tuple[str, ...]]:
    """The types of each kernel's parameters, such as ``Size`` and ``REAL``; ``*`` for an array."""
    source = kernel_source() + kernel_source(SEQUENCES)
    kernels = _KERNEL.findall(_COMMENT.sub("", source))
    return {
        name: tuple("*" if "*" in each else each.split()[-2] for each in parameters.split(","))
        for name, parameters in kernels
    }
