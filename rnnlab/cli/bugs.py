"""The text that a command prints below the traceback of a bug."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib import metadata

import rnnlab

_OPENING = "This is a bug of rnnlab, or of a module of yours that it uses."


def how_to_report() -> str:
    """Instructions for a bug report, and the versions."""
    versions = [f"rnnlab {rnnlab.__version__}", f"Python {platform.python_version()}"]
    for package in ("numpy", "scipy", "h5py", "numba"):
        try:
            versions.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            versions.append(f"no {package}")
    return (
        f"{_OPENING} To report it, send the command and all of these lines: see CONTRIBUTING.md.\n"
        f"{', '.join(versions)}, {platform.platform()}"
    )


def without_reports(lines: Sequence[str]) -> list[str]:
    """The lines of a log without those of :func:`how_to_report`."""
    opened = [line.startswith(_OPENING) for line in lines]
    return [line for k, line in enumerate(lines) if not any(opened[max(0, k - 1) : k + 1])]
