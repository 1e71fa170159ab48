"""The CUDA source of the kernels: a file a subject, compiled together, each after those that it needs."""

from __future__ import annotations

from importlib import resources

__all__ = ["FILES", "kernel_source"]

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


def kernel_source() -> str:
    """The text of all files, in order."""
    folder = resources.files(__package__) / "cuda" / "kernels"
    return "\n".join(folder.joinpath(name).read_text("utf-8") for name in FILES)
