"""Proxies for a student's functions, which run in another process."""

from __future__ import annotations

import inspect
import re
import time
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from rnnlab.course.grading.process import Stopped, StudentProcess
from rnnlab.course.grading.sandbox import wire
from rnnlab.course.running import FunctionStopped
from rnnlab.types import Array

# Packages that contain the correct functions, compute gradients, or give access to files and other processes.
_SUSPECT = re.compile(
    r"uses (rnnlab|torch|tensorflow|keras|jax|autograd"
    r"|importlib|builtins|ctypes|os|sys|pathlib|socket|subprocess|urllib|http|requests|ssl)\b"
)


_MOST_TIMES = 12  # time limit of all calls of a mark, in limits of one call; numeric gradients have thousands


class RemoteCache(tuple[Array]):
    """A placeholder for a cache, which stays in the student's process.

    Its only element is an array: the number of the cache, and how often a function has written into it.
    """


class RemoteFunction:
    """Calls a function of a student in the student's process.

    If the function changes its arguments, the caller's arguments are changed, too.

    Parameters
    ----------
    process : StudentProcess
    name : str
    keep_cache : bool
        Whether the last result is a cache.
    given : mapping of str to callable
        Functions that run in this process instead of the student's, whenever the function calls them.
    options : collection of str
        The keyword arguments that the function should have.

    Attributes
    ----------
    forwards : int
        The largest number so far of calls of forwards within one call.
    refused : str
        A refused action of the function, such as importing a solution or opening a file; "" if there was
        none.
    """

    def __init__(
        self,
        process: StudentProcess,
        name: str,
        *,
        keep_cache: bool = False,
        given: Mapping[str, Callable[..., Any]] = MappingProxyType({}),
        options: Collection[str] = (),
    ) -> None:
        self.__name__ = self.__qualname__ = name
        self._process = process
        self._keep_cache = keep_cache
        self._given = given
        self.__signature__ = inspect.Signature(
            [inspect.Parameter(each, inspect.Parameter.KEYWORD_ONLY) for each in options]
        )
        self._stopped = ""
        self._seconds = 0.0  # total time of all calls
        self.forwards = 0
        self.refused = ""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Call the function.

        Raises
        ------
        FunctionStopped
            If the function raises an exception, or has no result.
        NotImplementedError
            If the function raises it.
        """
        if self._seconds > (most := _MOST_TIMES * self._process.limits.seconds):
            self._stopped = self._stopped or f"takes more than {most:g} s in all calls"
        if self._stopped:  # it would be stopped again
            raise FunctionStopped(self._stopped)
        start = time.monotonic()
        sent = tuple(_handle(each) if isinstance(each, RemoteCache) else each for each in arguments)
        try:
            answer = self._process.call(
                self.__name__, sent, options, keep_cache=self._keep_cache, given=self._given
            )
        except Stopped as stopped:
            self._stopped = str(stopped)
            raise FunctionStopped(self._stopped) from None
        finally:
            self._seconds += time.monotonic() - start
        if "error" in answer:
            raise self._error(answer)
        self.forwards = max(self.forwards, answer["forwards"])
        for given, after, changed in zip(arguments, answer["arguments"], answer["changed"], strict=True):
            if isinstance(given, RemoteCache):
                given[0][1] += changed
            else:
                _write_back(given, after)
        _write_back(options, answer["options"])
        return _received(answer["results"])

    def _error(self, answer: Mapping[str, Any]) -> Exception:
        kind, message = str(answer["error"]), str(answer["message"])
        place = f", in {answer['place']}" if answer["place"] else ""
        if kind == "NotImplementedError":
            return NotImplementedError()
        if kind in ("NotAtHand", "Refused"):
            if kind == "Refused" or _SUSPECT.search(message):
                self.refused = f"{message}{place}"
            return FunctionStopped(f"{message}{place}")
        return FunctionStopped(f"raises {kind}{': ' if message else ''}{message}{place}")


def _handle(cache: RemoteCache) -> wire.Handle:
    return wire.Handle(int(cache[0][0]))


def _received(value: Any) -> Any:
    if isinstance(value, wire.Handle):
        return RemoteCache((np.array([value.number, 0]),))
    if isinstance(value, wire.Foreign):
        return type(value.type_name, (), {})()  # an object whose type an error can name
    if isinstance(value, dict):
        return {key: _received(each) for key, each in value.items()}
    return tuple(map(_received, value)) if isinstance(value, tuple | list) else value


def _write_back(given: Any, after: Any) -> None:
    """Copy the changes of a function's arguments to the caller's arrays."""
    if isinstance(given, dict) and isinstance(after, dict):
        for key in given.keys() & after.keys():
            _write_back(given[key], after[key])
        for key in given.keys() - after.keys():
            del given[key]
        given |= {key: _received(after[key]) for key in after.keys() - given.keys()}
    elif isinstance(given, np.ndarray) and isinstance(after, np.ndarray) and given.shape == after.shape:
        given[...] = after
