"""The stand-in of cuBLAS: a shared library that is found by its name once it is loaded, like NVIDIA's.

Its version number does not exist, so that it cannot be mistaken for the real library.
"""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path

from . import compiler, cuda

SOURCE = Path(__file__).with_suffix(".cpp")
NAME = f"libcublas.so.{cuda.RUNTIME_VERSION // 1000}"
CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_longlong)  # of shim_on_call


@functools.cache
def load() -> ctypes.CDLL:
    """Compile and load the library. Its functions ``shim_...`` are for the stand-in and its tests."""
    flags = ("-O3", "-Wall", "-Wextra", "-Werror", f"-Wl,-soname,{NAME}")
    library = ctypes.CDLL(str(compiler.shared_library(SOURCE.read_text("utf-8"), flags)))
    for name, arguments, result in (
        ("shim_on_call", [CALLBACK], None),
        ("shim_replay", [ctypes.c_longlong], ctypes.c_int),
        ("shim_add_memory", [ctypes.c_void_p, ctypes.c_size_t], None),
        ("shim_remove_memory", [ctypes.c_void_p], None),
        ("shim_handles", [], ctypes.c_longlong),
        ("shim_workspaces_set", [], ctypes.c_longlong),
    ):
        function = getattr(library, name)
        function.argtypes, function.restype = arguments, result
    return library
