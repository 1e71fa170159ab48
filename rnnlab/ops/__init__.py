"""Array primitives: the only floor that can tell NumPy from CuPy.

A layer asks once per call, ``ops = ops_for(x, Wx, Wh)``, and gets a plain module; all of them have the same
function names and signatures. There is no global device and no fallback from one library to another: a
primitive that a module lacks is an AttributeError.

For NumPy arrays there are two: :mod:`~rnnlab.ops.numpy`, the reference, and, where the extra ``[fast]``
is installed, :mod:`~rnnlab.ops.numba`, the same on compiled kernels. The environment variable
RNNLAB_OPS, "numpy" or "fused", insists on one of them; :func:`describe` tells which one is in use and why.
For CuPy arrays there is :mod:`~rnnlab.ops.cuda`, with kernels of its own, imported when it is first asked
for. :func:`ops_on` has the module for a device that is named. RNNLAB_MATMUL says how its products of float32
are done: "float32", the default; "tf32" or "bfloat16", less exact (:mod:`~rnnlab.ops.cuda.cublas`).
RNNLAB_PERSISTENT, "1" or "0", has the steps of an LSTM done in one launch wherever its weight fits on the
chip, or nowhere; unset, where the table of :mod:`~rnnlab.ops.cuda.persistent` says that it is faster.
"""

from __future__ import annotations

import functools
import importlib
import os
import re
import warnings
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from rnnlab.ops import numpy as numpy_ops
from rnnlab.ops.api import Primitives
from rnnlab.ops.step_masks import StepMasks

__all__ = [
    "Primitives",
    "StepMasks",
    "describe",
    "describe_gpu",
    "device_of",
    "gpu_training",
    "ops_for",
    "ops_on",
    "release_memory",
    "warm_up",
]

if TYPE_CHECKING:  # mypy compares the signatures of each module with those of the Protocol
    from rnnlab.ops import cuda, numba

    _MODULES: tuple[Primitives, ...] = (numpy_ops, numba, cuda)

_NUMPY = (np.ndarray, np.generic)


def ops_for(*arrays: Any) -> Primitives:
    """The module of primitives for the library that made these arrays.

    Raises
    ------
    TypeError
        If the arrays are of different libraries, or of none that has primitives.
    """
    if arrays and all(isinstance(array, _NUMPY) for array in arrays):
        return _for_numpy().module
    libraries = {type(array).__module__.partition(".")[0] for array in arrays}
    if libraries == {"cupy"}:
        return cast(Primitives, importlib.import_module("rnnlab.ops.cuda"))
    if libraries == {"numpy", "cupy"}:
        raise TypeError("expected arrays of one library, got NumPy and CuPy arrays together")
    kinds = sorted({f"{type(array).__module__}.{type(array).__name__}" for array in arrays})
    raise TypeError(f"expected NumPy or CuPy arrays, got {', '.join(kinds)}")


def ops_on(device: str) -> Primitives:
    """The module of primitives for "cpu", "gpu" (the first), or "gpu:N", which becomes the one in use.

    Raises
    ------
    ValueError
        If the name is none of these, or there is no GPU of that number.
    ImportError
        If a GPU is asked for, and CuPy is missing or finds no driver.
    """
    if device == "cpu":
        return _for_numpy().module
    found = re.fullmatch(r"gpu(?::(\d+))?", device) if isinstance(device, str) else None
    if found is None:
        raise ValueError(f"device is {device!r}, expected 'cpu', 'gpu' or 'gpu:N'")
    try:
        devices = importlib.import_module("rnnlab.ops.cuda.devices")
    except ModuleNotFoundError as error:
        if error.name != "cupy":
            raise
        raise ImportError(f"device is {device!r}, which needs CuPy: {_INSTALL_CUPY}") from None
    devices.use(int(found[1] or 0), device)
    return cast(Primitives, importlib.import_module("rnnlab.ops.cuda"))


def device_of(array: Any) -> str:
    """The name of the device that an array is on: "cpu", or "gpu:N"."""
    return "cpu" if isinstance(array, _NUMPY) else f"gpu:{array.device.id}"


def describe() -> str:
    """What works on NumPy arrays, and why: one line."""
    return _for_numpy().description


def describe_gpu() -> str:
    """The GPU's name and memory, and CuPy's version, or why there is none: one line."""
    try:
        return importlib.import_module("rnnlab.ops.cuda.devices").describe()
    except ImportError as error:
        if getattr(error, "name", None) == "cupy":
            return f"none, CuPy is not installed: {_INSTALL_CUPY}"
        return f"none, {' '.join(str(error).split())}"


def gpu_training() -> ModuleType:
    """What a solver does on a GPU alone: :mod:`rnnlab.ops.cuda.training`."""
    return importlib.import_module("rnnlab.ops.cuda.training")


def release_memory() -> int:
    """Free the host's memory that arrays no longer use and that is held for new arrays.

    The compiled kernels reuse the memory of arrays that are gone, about as much as a training step takes.
    Call this after a large piece of work in a process that goes on with something else. CuPy frees its own by
    ``cupy.get_default_memory_pool().free_all_blocks()``.

    Returns
    -------
    int
        The bytes that were freed; 0 where the compiled kernels are not in use.
    """
    if _for_numpy().module is numpy_ops:
        return 0
    from rnnlab.ops.numba import memory

    return memory.release()


def warm_up() -> float:
    """Compile all kernels for float32 and float64 that are not on disk yet; return the seconds it took."""
    if _for_numpy().module is numpy_ops:
        return 0.0
    from rnnlab.ops.numba import kernel

    return kernel.warm_up()


class _Choice(NamedTuple):
    module: Primitives
    description: str


@functools.cache
def _for_numpy() -> _Choice:
    """What is chosen at the first use: numba takes a third of a second to import."""
    asked = os.environ.get("RNNLAB_OPS", "")
    if asked not in ("", "numpy", "fused"):
        raise ValueError(f"RNNLAB_OPS is {asked!r}, expected 'numpy' or 'fused'")
    if asked == "numpy":
        return _reference("RNNLAB_OPS asks for it")
    try:
        fused_ops = importlib.import_module("rnnlab.ops.numba")
    except ModuleNotFoundError as error:
        if asked:
            raise ImportError(f"RNNLAB_OPS is 'fused', which needs {error.name}: {_INSTALL}") from None
        return _reference(f"{error.name} is not installed: {_INSTALL}")
    except ImportError as error:  # numba is there, but does not go with this NumPy, for instance
        if asked:
            raise
        warnings.warn(f"fused kernels are not used: {error}", RuntimeWarning, stacklevel=3)
        return _reference(f"fused kernels cannot be imported: {error}")
    return _Choice(fused_ops, fused_ops.DESCRIPTION)


_INSTALL = "pip install 'rnnlab[fast]'"
_INSTALL_CUPY = "pip install 'rnnlab[cuda12]' or 'rnnlab[cuda13]', as your driver is"


def _reference(reason: str) -> _Choice:
    return _Choice(numpy_ops, f"NumPy {np.__version__} ({reason})")
