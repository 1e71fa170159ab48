"""Shared libraries compiled by g++ for the stand-in, cached in the temporary folder."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from . import cuda

COMPILER = "g++"


def shared_library(source: str, flags: Sequence[str], headers: Sequence[Path] = ()) -> Path:
    """The path of the shared library of the source, which is compiled unless it is cached."""
    texts = [path.read_text("utf-8") for path in headers]
    key = hashlib.sha256("\0".join((source, *texts, *flags, platform.machine())).encode())
    folder = Path(tempfile.gettempdir()) / f"simulated_cupy_{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / f"{key.hexdigest()[:32]}.so"
    if not path.exists():
        _compile(source, [*flags, *(word for path in headers for word in ("-include", str(path)))], path)
    return path


def _compile(source: str, flags: Sequence[str], path: Path) -> None:
    if shutil.which(COMPILER) is None:
        raise cuda.CompileException(f"{COMPILER} is not installed")
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        input, output = Path(folder, "source.cpp"), Path(folder, path.name)
        input.write_text(source, "utf-8")
        command = [COMPILER, "-std=c++17", "-shared", "-fPIC", *flags, str(input), "-o", str(output)]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise cuda.CompileException(result.stderr)
        os.replace(output, path)
