"""The CUDA source of the kernels: files by subject, compiled as one, each after those that it needs."""

from __future__ import annotations

from importlib import resources

__all__ = ["FILES", "kernel_source"]

FILES = (
    "kernels.cu",
    "kernels_rows.cu",
    "kernels_cells.cu",
    "kernels_lstm_steps.cu",
    "kernels_scores.cu",
    "kernels_attention.cu",
    "kernels_optim.cu",
)


def kernel_source() -> str:
    """All files one after another."""
    folder = resources.files(__package__)
    return "\n".join(folder.joinpath(name).read_text("utf-8") for name in FILES)
