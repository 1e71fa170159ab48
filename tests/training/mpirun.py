"""Python programs as the ranks of an MPI job on this machine."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import Any

import pytest

_MPIRUN = which("mpirun", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
_ROOT = Path(__file__).resolve().parents[2]

lacks_mpi = find_spec("mpi4py") is None or _MPIRUN is None
needs_mpi = pytest.mark.skipif(lacks_mpi, reason="needs the extra mpi and an MPI library")


def mpirun(count: int, program: str, *arguments: object) -> tuple[list[str], dict[str, Any]]:
    """The command and the options of :mod:`subprocess` that run the text of a program on so many ranks."""
    launcher = [str(_MPIRUN), "-n", str(count), "--oversubscribe"]
    environment = os.environ | {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "PYTHONPATH": str(_ROOT),
        "MPLBACKEND": "Agg",
    }
    command = [*launcher, sys.executable, "-c", program, *map(str, arguments)]
    return command, {"env": environment, "cwd": _ROOT, "text": True}
