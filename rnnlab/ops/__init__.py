"""Array primitives, and the choice of the library that computes them.

``ops_for(x, Wx, Wh)`` returns the module of primitives for the library of these arrays. A layer asks once per
call. All modules have the functions of :class:`~rnnlab.ops.api.Primitives`. There is no global device, and no
fallback from one library to another.

- :mod:`rnnlab.ops.numpy` is the reference for NumPy arrays.
- :mod:`rnnlab.ops.numba` has compiled kernels for NumPy arrays. It is used where the extra ``[fast]`` is
  installed.
- :mod:`rnnlab.ops.cuda` works on CuPy arrays. It is imported when the first one arrives.

Environment variables:

- RNNLAB_OPS: "numpy" or "fused" selects one of the two modules for NumPy arrays. :func:`describe` names the
  one in use.
- RNNLAB_NUM_THREADS: the number of threads on the CPU (:mod:`rnnlab.ops.threads`).
- RNNLAB_STRICT: with "1", arrays of a layout that a compiled kernel does not accept raise TypeError. Without
  it, those that are read are copied; if one is written, NumPy computes, which is slower. Matrix products and
  dropout accept any layout.
- RNNLAB_MATMUL: the precision of float32 products: "float32" (the default), "tf32" or "tf32x3" (on a GPU), or
  "bfloat16" (:mod:`rnnlab.ops.precision`). :func:`describe_products` names the one in use.
- RNNLAB_PERSISTENT: "1" runs all steps of an LSTM in one launch wherever its weight fits into on-chip memory
  of the GPU; "0" never does. "block" and "grid" select one of the two implementations. If it is unset, the
  tables of :mod:`rnnlab.ops.cuda.persistent` decide.
"""

from __future__ import annotations

import functools
import importlib
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from rnnlab.errors import InputError, InputTypeError, NotInstalledError
from rnnlab.ops import numpy as numpy_ops
from rnnlab.ops.api import Primitives
from rnnlab.ops.precision import products_precision
from rnnlab.ops.step_masks import ChunkMasks, StepMasks
from rnnlab.ops.threads import limit_libraries

__all__ = [
    "ChunkMasks",
    "Primitives",
    "StepMasks",
    "describe",
    "describe_gpu",
    "describe_on",
    "describe_products",
    "device_of",
    "gpu_training",
    "is_subclassed",
    "num_gpus",
    "ops_for",
    "ops_on",
    "release_memory",
    "tell_compiled",
    "unchecked",
    "warm_up",
]

if TYPE_CHECKING:  # mypy compares the signatures of each module with the Protocol's
    from rnnlab.ops import cuda, numba

    _MODULES: tuple[Primitives, ...] = (numpy_ops, numba, cuda)

_NUMPY = (np.ndarray, np.generic)
_PLAIN = (np.generic, np.memmap)


def ops_for(*arrays: Any) -> Primitives:
    """The module of primitives for the library of these arrays.

    Raises
    ------
    TypeError
        If the arrays are of different libraries, or of one that has no primitives, or of a subclass of
        ``numpy.ndarray``: ``*`` of a matrix is another product, and a masked array hides elements.
    """
    for array in arrays:
        if type(array) is not np.ndarray and not isinstance(array, _PLAIN):
            break
    else:
        if arrays:
            return _for_numpy().module
    libraries = {type(array).__module__.partition(".")[0] for array in arrays}
    if libraries == {"cupy"}:
        return cast(Primitives, importlib.import_module("rnnlab.ops.cuda"))
    if libraries == {"numpy", "cupy"}:
        raise InputTypeError("expected arrays of one library, got NumPy and CuPy arrays together")
    for array in arrays:
        if is_subclassed(array):
            raise InputTypeError(
                f"got a {type(array).__name__}, expected a plain array, as numpy.array makes"
            )
    kinds = sorted({f"{type(array).__module__}.{type(array).__name__}" for array in arrays})
    raise InputTypeError(f"expected NumPy or CuPy arrays, got {', '.join(kinds)}")


def is_subclassed(array: Any) -> bool:
    """Whether an array is of a subclass of ``numpy.ndarray``, with its own operators or hidden elements."""
    return (
        type(array) is not np.ndarray and isinstance(array, np.ndarray) and not isinstance(array, np.memmap)
    )


def unchecked(ops: Primitives) -> Primitives:
    """The primitives without checks of their arguments, for steps on arrays that a layer has checked or made.

    In a loop over small arrays, NumPy's primitives would spend a fifth to a third of the time on checks.
    Compiled kernels always check, in compiled code.
    """
    return _unchecked_numpy() if ops is numpy_ops else ops


@functools.cache
def _unchecked_numpy() -> Primitives:
    return cast(Primitives, importlib.import_module("rnnlab.ops.numpy.unchecked").primitives())


def ops_on(device: str) -> Primitives:
    """The module of primitives for "cpu", "gpu" (the first one) or "gpu:N", which becomes the current GPU.

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
        raise InputError(f"device is {device!r}, expected 'cpu', 'gpu' or 'gpu:N'")
    _devices(device).use(int(found[1] or 0), device)
    return cast(Primitives, importlib.import_module("rnnlab.ops.cuda"))


def _devices(device: str) -> Any:
    """The module :mod:`rnnlab.ops.cuda.devices`; without CuPy the error names ``device``."""
    try:
        return importlib.import_module("rnnlab.ops.cuda.devices")
    except ModuleNotFoundError as error:
        if error.name != "cupy":
            raise
        raise NotInstalledError(f"device is {device!r}, which needs CuPy: {_INSTALL_CUPY}") from None


def device_of(array: Any) -> str:
    """The name of the device that holds an array: "cpu" or "gpu:N"."""
    return "cpu" if isinstance(array, _NUMPY) else f"gpu:{array.device.id}"


def describe() -> str:
    """The library that computes on NumPy arrays, and the reason for it, in one line."""
    return _for_numpy().description


def describe_gpu(number: int | None = None) -> str:
    """The name and memory of a GPU and CuPy's version, or the reason why there is none, in one line.

    Without ``number`` it is the GPU in use.
    """
    try:
        return importlib.import_module("rnnlab.ops.cuda.devices").describe(number)
    except ImportError as error:
        if getattr(error, "name", None) == "cupy":
            return f"none, CuPy is not installed: {_INSTALL_CUPY}"
        return f"none, {' '.join(str(error).split())}"


def describe_products(device: str = "cpu") -> str:
    """The current precision of float32 products on a device, "cpu" or "gpu:N", in one line."""
    asked, instructions, lacking = products_precision(), "NumPy", ""
    if device != "cpu":
        return f"products of float32: {_ON_GPU[asked]}, by cuBLAS"
    if _for_numpy().module is not numpy_ops:
        from rnnlab.ops.numba import bfloat16

        instructions, lacking = bfloat16.INSTRUCTIONS, bfloat16.declined()
    if asked == "bfloat16" and not lacking:
        return f"products of float32: bfloat16 factors, by {instructions}"
    if asked == "bfloat16":
        return f"products of float32: full precision ('bfloat16' is asked for, but {lacking})"
    if asked in ("tf32", "tf32x3"):
        return f"products of float32: full precision ({asked!r} is asked for, which is for a GPU)"
    available = "" if lacking else f" (RNNLAB_MATMUL=bfloat16: by {instructions})"
    return f"products of float32: full precision{available}"


_ON_GPU = {
    "float32": "full precision",
    "tf32": "TF32 factors",
    "tf32x3": "factors of two TF32 numbers in large products",
    "bfloat16": "bfloat16 factors",
}


def describe_on(device: str) -> list[str]:
    """The libraries that compute on a device, "cpu" or "gpu:N", as lines of text."""
    library = describe() if device == "cpu" else describe_gpu(int(device.removeprefix("gpu:")))
    return [library, describe_products(device)]


def gpu_training() -> ModuleType:
    """The functions that a solver needs on a GPU only, :mod:`rnnlab.ops.cuda.training`."""
    return importlib.import_module("rnnlab.ops.cuda.training")


def num_gpus() -> int:
    """The number of GPUs of this machine.

    Raises
    ------
    ImportError
        If CuPy is missing or finds no driver.
    """
    return int(_devices("gpu").count())


def release_memory() -> int:
    """Free the host memory that is no longer used by arrays but kept for new ones.

    The compiled kernels reuse the memory of deleted arrays, about as much as a training step needs. Call this
    after a large piece of work, in a process that continues with other work. CuPy's memory is freed by
    ``cupy.get_default_memory_pool().free_all_blocks()``.

    Returns
    -------
    int
        The number of bytes freed; 0 if the compiled kernels are not in use.
    """
    if _for_numpy().module is numpy_ops:
        return 0
    from rnnlab.ops.numba import memory

    return memory.release()


def warm_up(jobs: int = 1, progress: Callable[..., Iterable[int]] | None = None) -> int | None:
    """Compile all kernels for float32 and float64 that are not in the cache.

    Parameters
    ----------
    jobs : int
        The number of processes. A script that asks for several must be safe to import, as
        :mod:`multiprocessing` requires for new processes.
    progress : callable, optional
        Wraps an iterator over the kernels, and gets their number as ``total``, such as ``tqdm.tqdm``.

    Returns
    -------
    int or None
        How many were compiled; None if there are no kernels, because plain NumPy computes.
    """
    if _for_numpy().module is numpy_ops:
        return None
    from rnnlab.ops.numba import kernel

    return kernel.warm_up(jobs, progress)


def tell_compiled() -> None:
    """Report that the kernels of the first step are compiled, if their compilation was announced.

    A solver calls this after its first step.
    """
    kernel = sys.modules.get("rnnlab.ops.numba.kernel")  # not there if no kernel was called
    if kernel is not None:
        kernel.tell_compiled()


class _Choice(NamedTuple):
    module: Primitives
    description: str


@functools.cache
def _for_numpy() -> _Choice:
    """Choose at the first use, because numba takes a third of a second to import."""
    asked = os.environ.get("RNNLAB_OPS", "")
    if asked not in ("", "numpy", "fused"):
        raise InputError(f"RNNLAB_OPS is {asked!r}, expected 'numpy' or 'fused'")
    if asked == "numpy":
        return _reference("RNNLAB_OPS asks for it")
    try:
        fused_ops = importlib.import_module("rnnlab.ops.numba")
        fused_ops.products.verify()
        limit_libraries()  # including those that numba has loaded with the first kernel
    except ModuleNotFoundError as error:
        if asked:
            raise NotInstalledError(f"RNNLAB_OPS is 'fused', which needs {error.name}: {_INSTALL}") from None
        return _reference(f"{error.name} is not installed: {_INSTALL}")
    except ImportError as error:  # this numba does not support this NumPy, or products are wrong
        if asked:
            raise
        warnings.warn(f"compiled kernels are not used: {error}", RuntimeWarning, stacklevel=3)
        return _reference(f"compiled kernels cannot be used: {error}")
    return _Choice(fused_ops, fused_ops.DESCRIPTION)


_INSTALL = 'pip install "rnnlab[fast]"'
_INSTALL_CUPY = 'pip install "rnnlab[cuda12]" or "rnnlab[cuda13]", depending on your driver'


def _reference(reason: str) -> _Choice:
    return _Choice(numpy_ops, f"NumPy {np.__version__} ({reason})")
