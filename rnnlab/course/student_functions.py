"""The functions that students write: their signatures, and wrappers that count and check calls.

The names, arguments and results are those of the exercises (:mod:`rnnlab.course.exercises`) and of
:mod:`rnnlab.layers`. A call of a :class:`StudentFunction` checks each result, so that a mistake is found in
the function that made it.
"""

from __future__ import annotations

import functools
import inspect
import os
import re
import sys
from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from rnnlab.course.exercise import Exercise
from rnnlab.course.exercises import EXERCISES
from rnnlab.errors import InputError, InputTypeError
from rnnlab.layers.checks import check_shapes
from rnnlab.options import described
from rnnlab.types import Array


class Signature(NamedTuple):
    """The arguments and results of a function, by name, each with its axes; no axes mean a number."""

    arguments: Mapping[str, str | None]  # None for a cache
    results: Mapping[str, str | None]


def _signatures(exercise: Exercise) -> dict[str, Signature]:
    """The functions of an exercise."""
    return {
        name: Signature(
            exercise.arguments(kind),
            exercise.results(kind) | ({"cache": None} if kind == "forward" and not exercise.is_loss else {}),
        )
        for name, kind in zip(exercise.functions, ("forward", "backward"), strict=False)
    }


CELLS: dict[str, dict[str, Signature]] = {
    cell: _signatures(EXERCISES[f"{cell}_step"]) | _signatures(EXERCISES[cell])
    for cell in ("rnn", "lstm", "gru", "simplified_gru")
}

SIGNATURES: dict[str, Signature] = {
    name: signature
    for signatures in (
        *CELLS.values(),
        _signatures(EXERCISES["word_embedding"]),
        _signatures(EXERCISES["temporal_affine"]),
        _signatures(EXERCISES["temporal_softmax_loss"]),
    )
    for name, signature in signatures.items()
}


class StudentCache(NamedTuple):
    """A cache that a student's forward returned, and the shapes that its arguments had."""

    value: Any
    shapes: dict[str, tuple[Array, str]]  # arrays that only have a shape, and their axes


class StudentFunction:
    """A student's function, which is called with the course's arguments and whose results are checked.

    It gets its inputs and the parameters as read-only arrays, and the gradients as copies, which it may
    change. float64 results of a float32 model are converted to float32.

    Parameters
    ----------
    name : str
        A name of :data:`SIGNATURES`.
    function : callable
    calls : dict of str to int
        Counts the calls, under ``name``.
    """

    def __init__(self, name: str, function: Callable[..., Any], calls: dict[str, int]) -> None:
        self.name, self.title = name, f"{name} ({', '.join(filter(None, ('yours', place_of(function))))})"
        self._function, self._calls, self._signature = function, calls, SIGNATURES[name]
        calls[name] = 0

    def __call__(self, *arguments: Any) -> tuple[Any, ...]:
        """Call the function.

        Parameters
        ----------
        *arguments
            Arrays, or the cache that the call of the forward returned.

        Returns
        -------
        tuple
            All results, even if there is only one.

        Raises
        ------
        ValueError
            If the number of results or a shape is wrong, or a result is not finite.
        TypeError
            If a result is not an array or has a wrong dtype, or the arguments are not NumPy arrays.
        """
        given: list[Any] = []
        shapes: dict[str, tuple[Array, str]] = {}
        dtype = next(each.dtype for each in arguments if getattr(each, "dtype", np.dtype(int)).kind == "f")
        for (name, axes), argument in zip(self._signature.arguments.items(), arguments, strict=True):
            if axes is None:
                given.append(argument.value)
                shapes |= argument.shapes
                continue
            if not isinstance(argument, np.ndarray):
                raise InputTypeError(
                    f"{self.title}: {name} is a {type(argument).__name__}: the model has been moved to a "
                    "device, expected it on the CPU, where NumPy functions run"
                )
            given.append(argument.copy() if name.startswith("d") else _read_only(argument))
            shapes[name] = np.broadcast_to(np.zeros((), dtype), argument.shape), axes
        self._calls[self.name] += 1
        try:
            found = self._function(*given)
        except ValueError as error:
            if "read-only" in str(error):
                error.add_note(f"{self.title}: inputs and parameters cannot be written: make a new array")
            raise
        return self._checked(found, shapes, dtype, dict(zip(self._signature.arguments, given, strict=True)))

    def _checked(
        self, found: Any, shapes: dict[str, tuple[Array, str]], dtype: np.dtype, given: Mapping[str, Any]
    ) -> tuple[Any, ...]:
        """The results, after a check of their types, shapes, dtypes and finiteness."""
        checked: list[Any] = []
        for (name, axes), result in zip(self._signature.results.items(), self._unpacked(found), strict=True):
            if axes is None:
                checked.append(StudentCache(result, shapes))
            elif not axes:
                checked.append(self._number(name, result))
            else:
                array = self._array(name, result, dtype)
                check_shapes(self.title, **shapes, **{name: (array, axes)})
                checked.append(array)
            if axes is not None:
                self._check_finite(name, checked[-1], given)
        return tuple(checked)

    def _unpacked(self, found: Any) -> tuple[Any, ...]:
        names = tuple(self._signature.results)
        expected = f"{len(names)}: {', '.join(names)}" if len(names) > 1 else f"an array {names[0]}"
        if found is None:
            raise InputError(f"{self.title}: returned None, expected {expected}; is its return missing?")
        if len(names) == 1:
            return (found,)
        if not isinstance(found, tuple | list):
            raise InputError(f"{self.title}: returned one result, {described(found)}, expected {expected}")
        if len(found) != len(names):
            raise InputError(f"{self.title}: returned {len(found)} results, expected {expected}")
        return tuple(found)

    def _array(self, name: str, result: Any, dtype: np.dtype) -> np.ndarray:
        """The result as an array of the model's dtype."""
        if not isinstance(result, np.ndarray):
            raise InputTypeError(f"{self.title}: {name} is {described(result)}, expected an array")
        if result.dtype not in (dtype, np.dtype(np.float64)):
            expected = dtype if dtype == np.float64 else f"{dtype} or float64"
            raise InputTypeError(f"{self.title}: {name} has dtype {result.dtype}, expected {expected}")
        with np.errstate(over="ignore"):  # an overflow in float32 is reported as inf
            return np.asarray(result, dtype=dtype, order="C")

    def _number(self, name: str, result: Any) -> float:
        if isinstance(result, np.ndarray) and result.shape == () and result.dtype.kind == "f":
            result = result[()]
        if isinstance(result, bool) or not isinstance(result, Real):
            raise InputTypeError(f"{self.title}: {name} is {described(result)}, expected a number")
        return float(result)

    def _check_finite(self, name: str, result: Any, given: Mapping[str, Any]) -> None:
        finite = np.isfinite(result)
        if np.all(finite):
            return
        at = tuple(np.argwhere(~finite)[0].tolist()) if np.ndim(result) else ()
        place, number = f"[{', '.join(map(str, at))}]" * bool(at), np.asarray(result)[at]
        before = [
            argument
            for argument, array in given.items()
            if self._signature.arguments[argument] is not None and not np.isfinite(array).all()
        ]
        reason = f"; not finite before the call: {', '.join(before)}" if before else ""
        raise InputError(f"{self.title}: {name}{place} is {number}, expected finite numbers{reason}")


def place_of(function: Callable[..., Any]) -> str:
    """The place where a function is defined: "notebook cell In [12], line 3", "file.py:3", or ""."""
    function = inspect.unwrap(function)
    while isinstance(function, functools.partial):
        function = inspect.unwrap(function.func)
    code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    if code is None:
        return ""
    cell = _notebook_cell(code.co_filename)
    if cell:
        return f"notebook {cell}, line {code.co_firstlineno}"
    path, here = code.co_filename, os.getcwd() + os.sep
    return f"{path.removeprefix(here)}:{code.co_firstlineno}"


def _notebook_cell(path: str) -> str:
    """The notebook cell that IPython compiled under this path; "" if the path is not a cell's.

    It is called "cell In [12]", as the notebook shows it: the number counts executions.
    """
    if found := re.match(r"<ipython-input-(\d+)-", path):  # before IPython 8
        return f"cell In [{found[1]}]"
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    label = shell.compile.format_code_name(path) if shell is not None else None
    return "" if label is None else f"cell {label[1].replace('In[', 'In [')}"


def _read_only(array: np.ndarray) -> np.ndarray:
    view = array.view()
    view.flags.writeable = False
    return view
