"""Array primitives: the only floor that can tell NumPy from CuPy.

A layer asks once per call, ``ops = ops_for(x, Wx, Wh)``, and gets one of two plain modules with the same
function names and signatures. There is no global device and no fallback from one to the other: a primitive
that a module lacks is an AttributeError.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from rnnlab.ops import numpy_ops

__all__ = ["ops_for"]


def ops_for(*arrays: Any) -> ModuleType:
    """The module of primitives for the library that made these arrays.

    Raises
    ------
    TypeError
        If the arrays are of different libraries, or of none that has primitives.
    """
    libraries = {type(array).__module__.partition(".")[0] for array in arrays}
    if libraries == {"numpy"}:
        return numpy_ops
    if len(libraries) > 1 and libraries <= {"numpy", "cupy"}:
        raise TypeError("expected arrays of one library, got NumPy and CuPy arrays together")
    kinds = sorted({f"{type(array).__module__}.{type(array).__name__}" for array in arrays})
    raise TypeError(f"expected NumPy arrays, got {', '.join(kinds)}")
