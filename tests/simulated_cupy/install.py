"""Replace CuPy by the stand-in, and restore everything afterwards."""

from __future__ import annotations

import contextlib
import importlib
import shutil
import sys
from collections.abc import Iterator
from types import ModuleType

from . import capture, compiler, cublas_library, cuda, module

OPS = "rnnlab.ops"
CUDA = f"{OPS}.cuda"
CUPY = ("cupy", "cupyx", "cupy_backends")


def missing() -> str:
    """Why the stand-in cannot be used here; empty if it can."""
    return "" if shutil.which(compiler.COMPILER) else f"{compiler.COMPILER} is not installed"


@contextlib.contextmanager
def installed() -> Iterator[ModuleType]:
    """In the with block, ``import cupy`` returns the stand-in, with counters at zero and unlimited memory."""
    importlib.import_module("rnnlab.ops")
    saved = _knowing_cupy()
    _remove(saved)
    _reset()
    stand_ins = {"cupy": module, "cupy.cuda": cuda}
    sys.modules.update(stand_ins | {"cupyx": None, "cupy_backends": None})
    try:
        yield module
    finally:
        _reset()
        _remove(_knowing_cupy())
        for name, each in saved.items():
            sys.modules[name] = each
            package, _, attribute = name.rpartition(".")
            if package == OPS:
                setattr(sys.modules[OPS], attribute, each)


def _reset() -> None:
    cuda.limit, cuda.pool_limit = None, 0
    cuda.transfers.reset()
    cuda.launches.clear()
    cuda.Stream.null.use()
    cuda.forget_captures()
    cuda.forget_pools()
    capture.connect(cublas_library.load())


def _knowing_cupy() -> dict[str, ModuleType]:
    """The modules of CuPy, and the package of the library that uses them."""
    return {
        name: each
        for name, each in sys.modules.items()
        if name.partition(".")[0] in CUPY or f"{name}.".startswith(f"{CUDA}.")
    }


def _remove(modules: dict[str, ModuleType]) -> None:
    for name in modules:
        del sys.modules[name]
        package, _, attribute = name.rpartition(".")
        if package == OPS:
            vars(sys.modules[OPS]).pop(attribute, None)
    for value in vars(sys.modules[OPS]).values():
        if hasattr(value, "cache_clear"):  # its cached choice of primitives depends on the stand-in
            value.cache_clear()
