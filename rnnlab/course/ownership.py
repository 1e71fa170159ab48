"""Whether a function is a student's own: it is not the library's, and does not call the library's."""

from __future__ import annotations

import cProfile
import sys
from collections.abc import Callable, Collection
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import rnnlab

__all__ = ["Watched", "set_profiler"]

_LIBRARY = str(Path(rnnlab.__file__).parent)


class Watched:
    """A function whose calls of the library's solutions are recorded.

    Parameters
    ----------
    function : callable
        The student's function.
    name : str
        The name of the function to be written.
    solutions : collection of str
        The names of the functions of the exercise. Functions of the package ``rnnlab`` with these names must
        not be called; others may.
    """

    def __init__(self, function: Callable[..., Any], name: str, solutions: Collection[str]) -> None:
        self.function, self.name, self.solutions = function, name, frozenset(solutions)
        self.__wrapped__ = function  # lets inspect find its arguments
        self.called: dict[str, None] = {}  # functions of the library, as an ordered set

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Call the function, and record the functions that it calls."""
        before = sys.getprofile()
        sys.setprofile(self._note)
        try:
            return self.function(*arguments, **options)
        finally:
            set_profiler(before)

    @property
    def problems(self) -> list[str]:
        """The problems to report; empty if the function is the student's own."""
        code = getattr(self.function, "__code__", None)
        module = getattr(self.function, "__module__", None) or ""
        if module.partition(".")[0] == "rnnlab" or (code is not None and _in_library(code)):
            found = f"{module}.{getattr(self.function, '__qualname__', self.name)}"
            return [f"{self.name} is {found}, the library's own: expected a function that you have written"]
        return [
            f"{self.name} calls {called}, the library's own: expected a function that you have written"
            for called in self.called
        ]

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_name in self.solutions and _in_library(frame.f_code):
            module = frame.f_globals.get("__name__")  # generated code has none
            if module is not None:
                self.called[f"{module}.{frame.f_code.co_name}"] = None


def set_profiler(profiler: Any) -> None:
    """Restore a profiler that :func:`sys.getprofile` has returned."""
    if isinstance(profiler, cProfile.Profile):  # it is not callable, so sys.setprofile cannot set it
        profiler.enable()
    else:
        sys.setprofile(profiler)


def _in_library(code: CodeType) -> bool:
    return Path(_LIBRARY) in Path(code.co_filename).parents
