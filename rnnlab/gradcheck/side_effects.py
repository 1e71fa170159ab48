"""Checks that a backward has no side effects.

A backward must not write into its inputs, the gradient that it is given, or the cache, because a cache may be
used twice, and by several threads at once. :func:`check_untouched` compares all of them before and after.
:func:`check_threads` gives one cache to several threads and compares the gradients.
"""

from __future__ import annotations

import functools
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from rnnlab.gradcheck.numeric import relative_distance
from rnnlab.ops import ops_for
from rnnlab.types import Array


def check_untouched(
    forward: Callable[..., Any], backward: Callable[..., Any], inputs: dict[str, Array], dout: Any
) -> list[str]:
    """Find the arguments, and the parts of the cache, that a forward or a backward writes into.

    Parameters
    ----------
    forward : callable
        ``forward(**inputs)`` returns a tuple that ends with the cache.
    backward : callable
        ``backward(*dout, cache)``.
    inputs : dict of str to array
    dout : array or tuple of arrays

    Returns
    -------
    list of str
        The inputs, gradients and parts of the cache that changed, each once; empty if none did. All arrays
        that the cache holds are compared: see :func:`arrays_in`.
    """
    douts = dout if isinstance(dout, tuple) else (dout,)
    given = {f"input {name}": array for name, array in inputs.items()}
    before = _contents(given)
    *_, cache = forward(**inputs)
    changed = _differences(before, _contents(given))
    given |= {f"dout {k}": array for k, array in enumerate(douts)} | {"cache": cache}
    before = _contents(given)
    backward(*douts, cache)
    return list(dict.fromkeys(changed + _differences(before, _contents(given))))


def check_threads(
    forward: Callable[..., Any],
    backward: Callable[..., Any],
    inputs: dict[str, Array],
    dout: Any,
    *,
    num_threads: int = 4,
    repetitions: int = 8,
    tolerance: float = 1e-12,
) -> list[str]:
    """Compare gradients that several threads compute from one cache at once with those of one thread.

    Parameters
    ----------
    forward, backward, inputs, dout
        As in :func:`check_untouched`.
    num_threads : int
    repetitions : int
        How often each thread calls the backward.
    tolerance : float
        The largest :func:`~rnnlab.gradcheck.numeric.relative_distance` that passes.

    Returns
    -------
    list of str
        The gradients that differ, by their paths in the result of the backward; empty if none does.

    Raises
    ------
    Exception
        Any exception that the backward raises in a thread.
    """
    douts = dout if isinstance(dout, tuple) else (dout,)
    *_, cache = forward(**inputs)
    expected = {path: array.copy() for path, array in arrays_in(backward(*douts, cache))}
    barrier = threading.Barrier(num_threads)

    def work(_: int) -> set[str]:
        barrier.wait()
        wrong = set()
        for _ in range(repetitions):
            found = dict(arrays_in(backward(*douts, cache)))
            for path, gradient in expected.items():
                if not relative_distance(_on_cpu(found[path]), _on_cpu(gradient)) <= tolerance:
                    wrong.add(f"gradient {path}".rstrip())
        return wrong

    with ThreadPoolExecutor(num_threads) as pool:
        return sorted(set[str]().union(*pool.map(work, range(num_threads))))


def arrays_in(value: Any) -> Iterator[tuple[str, Array]]:
    """Every array in a value, with its path, such as ``cell.masks[0]``, or "" if the value is an array.

    Named tuples, tuples, lists, mappings, data classes, partial functions, methods, closures, and objects
    with attributes or slots are searched recursively. An array with several paths is found once.
    """
    return _arrays(value, "", {})


_LEAVES = (str, bytes, int, float, complex, type, ModuleType, np.generic, np.dtype, np.random.Generator)
_COMPILERS = ("numba", "llvmlite", "cupy")  # objects of these packages are not searched


def _arrays(value: Any, path: str, seen: dict[int, Any]) -> Iterator[tuple[str, Array]]:
    if value is None or isinstance(value, _LEAVES) or id(value) in seen:
        return
    seen[id(value)] = value  # a reference, so that no other object gets this id
    if isinstance(value, np.ndarray) and value.dtype == object:
        yield from _arrays(value.tolist(), path, seen)
    elif isinstance(value, np.ndarray) or hasattr(value, "__cuda_array_interface__"):
        yield path, value
    elif type(value).__module__.partition(".")[0] not in _COMPILERS:
        for step, part in _parts(value):
            yield from _arrays(part, (path + step).removeprefix("."), seen)


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """The parts of a value, each with its step in the path."""
    if isinstance(value, Mapping):
        yield from ((f"[{key!r}]", item) for key, item in value.items())
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        yield from ((f".{name}", getattr(value, name)) for name in value._fields)
    elif isinstance(value, tuple | list | deque | set | frozenset):
        yield from ((f"[{k}]", item) for k, item in enumerate(value))
    elif isinstance(value, functools.partial):
        yield from ((".func", value.func), (".args", value.args), (".keywords", value.keywords))
    elif isinstance(value, MethodType):
        yield ".__self__", value.__self__
    elif isinstance(value, FunctionType):
        yield from ((".__defaults__", value.__defaults__), (".__kwdefaults__", value.__kwdefaults__))
        yield from (
            (f".__closure__[{k}]", _cell_contents(cell)) for k, cell in enumerate(value.__closure__ or ())
        )
    else:
        yield from ((f".{name}", getattr(value, name)) for name in _attributes(value))


def _cell_contents(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a variable that has no value yet
        return None


def _attributes(value: Any) -> list[str]:
    """The names of an object's attributes: those in its slots and in its dictionary."""
    names: list[str] = []
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        names += [slots] if isinstance(slots, str) else list(slots)
    names += getattr(value, "__dict__", {})
    return [name for name in names if name not in ("__dict__", "__weakref__") and hasattr(value, name)]


def _contents(given: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    """The shape, dtype and bytes of every array; in bytes NaN equals itself."""
    contents = {}
    for label, value in given.items():
        for path, array in arrays_in(value):
            host = _on_cpu(array)
            contents[f"{label} {path}".rstrip()] = (host.shape, host.dtype, host.tobytes())
    return contents


def _on_cpu(array: Array) -> np.ndarray:
    return ops_for(array).asnumpy(array)


def _differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """The names whose contents differ, or that only one of the two has."""
    return [name for name in dict.fromkeys([*before, *after]) if before.get(name) != after.get(name)]
