"""The modules that a student's code may import: those that were loaded before it.

The import of any other module gives a stand-in, so that a cell which imports matplotlib for a figure still
defines its functions. The first use of the stand-in raises :class:`NotAtHand`, which names the module.
"""

from __future__ import annotations

import builtins
import sys
from importlib import import_module
from typing import Any, NoReturn

import numpy

ALWAYS = (
    "abc", "bisect", "cmath", "collections", "collections.abc", "contextlib", "copy", "dataclasses",
    "decimal", "enum", "fractions", "functools", "heapq", "inspect", "itertools", "logging", "math",
    "numbers", "operator", "pprint", "random", "re", "statistics", "string", "textwrap", "time", "types",
    "typing", "typing_extensions", "unicodedata", "warnings", "numpy", "numpy.fft", "numpy.linalg",
    "numpy.random", "numpy.testing", "numpy.typing", "numpy.lib", "numpy.lib.stride_tricks",
)  # fmt: skip
ON_DEMAND = ("scipy", "scipy.special")  # loaded if the code mentions them


class NotAtHand(ImportError):
    """The student's code uses a module that is not available."""


class StandIn:
    """A replacement for a module, or for an attribute of it, that a student's code may not use."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def _use(self, *_: Any, **__: Any) -> NoReturn:
        raise NotAtHand(
            f"uses {self.__name__}, expected NumPy, scipy.special or one of Python's available modules"
        )

    def __getattr__(self, name: str) -> StandIn:
        if name.startswith("__"):
            raise AttributeError(name)
        return StandIn(f"{self.__name__}.{name}")

    __call__ = __getitem__ = __iter__ = __len__ = __bool__ = __enter__ = _use
    __lt__ = __le__ = __gt__ = __ge__ = __truediv__ = __rtruediv__ = __pow__ = __iadd__ = _use
    __array__ = __add__ = __radd__ = __mul__ = __rmul__ = __matmul__ = __sub__ = __rsub__ = __neg__ = _use


def display(*_: Any, **__: Any) -> None:
    """Do nothing. Notebooks have a function of this name."""


def load(code: str) -> None:
    """Import all modules that the student's code may import later."""
    for name in (*ALWAYS, *(name for name in ON_DEMAND if "scipy" in code)):
        try:
            import_module(name)
        except ImportError:  # not installed
            continue
    vars(numpy)["f2py"] = StandIn("numpy.f2py")  # generates Fortran wrappers, and is slow to load
    for name in numpy.__all__:  # access all attributes, because NumPy loads some at first use
        getattr(numpy, name, None)


def guard() -> None:
    """From now on, import only the modules that :func:`load` has loaded."""
    at_hand = {*ALWAYS, *ON_DEMAND}
    imported = builtins.__import__

    def guarded(
        name: str,
        globals: Any = None,
        locals: Any = None,
        fromlist: Any = (),
        level: int = 0,
    ) -> Any:
        # Modules that NumPy and Python import later by themselves have been loaded already.
        asking = (globals or {}).get("__name__", "") if isinstance(globals, dict) else ""
        if asking != "__student__" or (level == 0 and name in at_hand and name in sys.modules):
            return imported(name, globals, locals, fromlist, level)
        stand_in = StandIn(name if fromlist else name.partition(".")[0])
        if stand_in.__name__ == "IPython.display":
            vars(stand_in)["display"] = display
        return stand_in

    builtins.__import__ = guarded
