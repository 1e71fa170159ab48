"""Define a student's functions, call them, and answer with their results.

The first request confines the process; see :mod:`.confinement`. Then, in any order:

    {"source": SOURCE, "name": CELL, ...}            -> {"problems": (...), "functions": (...)}
    {"function": NAME, "arguments": (...), ...}      -> {"results": ..., "arguments": (...), ...}

The answer's ``"arguments"`` and ``"options"`` are those that the function has changed, None for the others.

A cache stays in this process. The answer has a :class:`~.wire.Handle` in its place, which later arguments may
contain. ``"asked"`` lists functions that the other process computes: a call of one of them sends {"ask":
NAME, "arguments": (...), "options": {...}} and receives the result. ``"counted"`` lists functions whose calls
are counted, for the answer's ``"forwards"``.
"""

from __future__ import annotations

import ast
import functools
import linecache
import sys
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType, FunctionType, ModuleType
from typing import Any, BinaryIO

import numpy as np

from . import confinement, imports, wire

_MOST_CACHES = 256  # a limit, because numeric gradients call a forward thousands of times and need no cache
_MOST_LETTERS = 400  # maximum length of an error's message


def serve(requests: BinaryIO, replies: BinaryIO) -> None:
    """Answer requests until there are no more."""
    settings = _received(requests)
    imports.load(settings["code"])
    np.seterr(all="ignore")
    warnings.simplefilter("ignore")
    sys.setrecursionlimit(2000)
    student = _Student(requests, replies)
    confinement.limit_resources(**settings["limits"])
    sys.path[:] = []
    filtered = confinement.filter_system_calls()
    imports.guard()
    sys.setprofile(student.count)  # for good: the audit hook refuses to replace it
    confinement.refuse_by_audit()
    wire.send(replies, {"filtered": filtered})
    while (request := _received(requests)) is not None:
        answer = _answer(student, request)
        try:
            wire.send(replies, answer)
        except BaseException as error:  # of the student's results, such as a list that contains itself
            wire.send(replies, _described(error, "the results are too large"))


def _answer(student: _Student, request: dict[str, Any]) -> dict[str, Any]:
    try:
        return student.define(**request) if "source" in request else student.call(**request)
    except BaseException as error:  # of the student's objects, outside the student's functions
        described = _described(error, "out of memory")
        return {"problems": (described,), "functions": ()} if "source" in request else described


def _received(stream: BinaryIO) -> Any:
    start = stream.read(wire.START)
    return wire.value_of(start, stream.read(wire.frame_length(start, sys.maxsize))) if start else None


class _Student:
    """The student's functions and the caches that they have returned."""

    def __init__(self, requests: BinaryIO, replies: BinaryIO) -> None:
        self._channel = requests, replies
        module = sys.modules["__student__"] = ModuleType("__student__")  # dataclasses look it up
        self._names: dict[str, Any] = module.__dict__
        self._names["np"] = np
        self._names["display"] = imports.display
        self._after: dict[str, dict[str, Any]] = {}  # the values of all names after each cell
        self._rebound: set[str] = set()  # the names to which a later cell gives another value
        self._asked: set[str] = set()  # the functions that the other process computes
        self._here = ""  # the cell of the running exercise
        self._caches: OrderedDict[int, Any] = OrderedDict()
        self._last_cache = 0
        self._counted: set[Any] = set()  # the code of the functions whose calls are counted
        self._forwards = 0

    def define(self, source: str, name: str, constants_only: bool) -> dict[str, Any]:
        """Run the definitions of a cell, one after the other; other statements are ignored.

        With ``constants_only``, values that need computation are ignored, too.
        """
        filename = f"<{name}>"
        linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
        try:
            statements = ast.parse(source, filename).body
        except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
            return {"problems": (_described(error),), "functions": ()}
        problems, before = [], dict(self._names)
        for statement in filter(_is_constant if constants_only else _defines, statements):
            try:
                exec(compile(ast.Module([statement], []), filename, "exec"), self._names)
            except BaseException as error:  # SystemExit and KeyboardInterrupt come from the student, too
                problems.append(_described(error))
        if callable(self._names.get(name)) and self._names[name] is not before.get(name):
            self._names[name] = self._linked(name)
        self._rebound |= {each for each, value in before.items() if self._names.get(each) is not value}
        self._after[name] = dict(self._names)
        functions = tuple(each for each, value in self._names.items() if callable(value))
        return {"problems": tuple(problems), "functions": functions}

    def call(
        self,
        function: str,
        arguments: tuple[Any, ...],
        options: dict[str, Any],
        keep_cache: bool,
        asked: tuple[str, ...],
        counted: tuple[str, ...],
    ) -> dict[str, Any]:
        """Call a function. On request, its last result is a cache, which stays in this process."""
        try:
            given = [
                self._caches[each.number] if isinstance(each, wire.Handle) else each for each in arguments
            ]
        except KeyError:
            return {"error": "KeyError", "message": "the cache is gone", "place": ""}
        watched = [*given, *options.values()]
        before = [_copies(each) for each in watched]
        with self._computed_elsewhere(asked):
            called = self._after.get(function, {}).get(function, self._names.get(function))
            if not callable(called):
                return {"error": "NameError", "message": f"{function} is not defined", "place": ""}
            own = [getattr(each, "__wrapped__", each) for each in map(self._names.get, counted)]
            self._counted = {getattr(each, "__code__", None) for each in own} - {None}
            self._forwards = 0
            try:
                returned = called(*given, **options)
            except MemoryError:
                raise
            except BaseException as error:
                return _described(error)
        is_cache = [isinstance(sent, wire.Handle) for sent in (*arguments, *options.values())]
        changed = [
            not _same(old, dict(_arrays(each)), may_grow=cache)
            for old, each, cache in zip(before, watched, is_cache, strict=True)
        ]
        after = [
            each if differs and not cache else None
            for each, differs, cache in zip(watched, changed, is_cache, strict=True)
        ]
        results = list(returned) if isinstance(returned, tuple | list) else [returned]
        if keep_cache and results:
            results[-1] = self._kept(results[-1])
        return {
            "results": tuple(results) if isinstance(returned, tuple | list) else results[0],
            "arguments": tuple(after[: len(given)]),
            "options": dict(zip(options, after[len(given) :], strict=True)),
            "changed": tuple(changed[: len(given)]),
            "forwards": self._forwards,
        }

    def count(self, frame: FrameType, event: str, _: Any) -> None:
        """Count the calls of some functions, such as forwards while a backward runs: a profile function."""
        if event == "call" and frame.f_code in self._counted:
            self._forwards += 1

    @contextmanager
    def _computed_elsewhere(self, asked: tuple[str, ...]) -> Iterator[None]:
        """A context in which the other process computes these functions."""
        self._asked = {*asked}
        own = {name: self._names[name] for name in asked if name in self._names}
        self._names.update({name: self._asker(name) for name in asked})
        try:
            yield
        finally:
            for name in asked:
                self._names.pop(name, None)
            self._names.update(own)
            self._asked = set()

    def _linked(self, name: str) -> Callable[..., Any]:
        """An exercise's function, which uses the values that names have after its own cell."""
        function = self._names[name]

        @functools.wraps(function)
        def linked(*arguments: Any, **options: Any) -> Any:
            before = self._here
            self._go_to(name)
            try:
                return function(*arguments, **options)
            finally:
                self._go_to(before)

        return linked

    def _go_to(self, cell: str) -> None:
        """Give names the values that they have after a cell.

        Names of exercises refer to the functions of their own cells. Names that are defined later have their
        last value.
        """
        self._here = cell
        here, last = self._after.get(cell, {}), self._after[next(reversed(self._after))]
        for name in self._rebound - self._asked:
            for after in (self._after.get(name, {}), here, last):
                if name in after:
                    self._names[name] = after[name]
                    break

    def _asker(self, name: str) -> Callable[..., Any]:
        """A function that the other process computes."""
        requests, replies = self._channel

        def ask(*arguments: Any, **options: Any) -> Any:
            wire.send(replies, {"ask": name, "arguments": arguments, "options": options})
            answer = _received(requests)
            if "raises" in answer:
                raise ValueError(answer["raises"])
            return answer["results"]

        return ask

    def _kept(self, cache: Any) -> wire.Handle:
        self._last_cache += 1
        self._caches[self._last_cache] = cache
        if len(self._caches) > _MOST_CACHES:
            self._caches.popitem(last=False)
        return wire.Handle(self._last_cache)


def _described(error: BaseException, out_of_memory: str = "") -> dict[str, Any]:
    """An exception, and the line of the student's code that raised it.

    If ``out_of_memory`` is given, it is the message of all kinds of MemoryError.
    """
    if out_of_memory and isinstance(error, MemoryError):
        return {"error": "MemoryError", "message": out_of_memory, "place": ""}
    try:
        message = error.msg if isinstance(error, SyntaxError) else _text(error)
        return {"error": type(error).__name__, "message": message[:_MOST_LETTERS], "place": _place(error)}
    except BaseException:  # the student's exception class may fail
        return {"error": "Exception", "message": "it cannot be shown", "place": ""}


def _place(error: BaseException) -> str:
    """The last line of the student's code before the exception."""
    place = ""
    if isinstance(error, SyntaxError) and error.lineno:
        place = f"line {error.lineno}: {(error.text or '').strip()}"
    traceback = error.__traceback__
    while traceback is not None:
        code, line = traceback.tb_frame.f_code, traceback.tb_lineno
        if code.co_filename.startswith("<") and code.co_filename in linecache.cache:
            place = f"{code.co_filename[1:-1]}, line {line}: {_line(code.co_filename, line)}"
        traceback = traceback.tb_next
    return place


def _defines(statement: ast.stmt) -> bool:
    """Whether a statement binds a name. A bare call or a loop does not."""
    kinds = (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
    return isinstance(statement, (*kinds, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.If, ast.Try))


def _is_constant(statement: ast.stmt) -> bool:
    """Whether a statement is a definition or an import, or binds a name without a call."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom):
        return True
    if not isinstance(statement, ast.Assign | ast.AnnAssign):
        return False
    lambdas = {
        inner for node in ast.walk(statement) if isinstance(node, ast.Lambda) for inner in ast.walk(node)
    }
    working = (ast.Call, ast.ListComp, ast.SetComp, ast.DictComp, ast.BinOp, ast.Await)
    return not any(isinstance(node, working) and node not in lambdas for node in ast.walk(statement))


def _text(error: BaseException) -> str:
    try:
        return str(error).encode("utf8", "backslashreplace").decode("utf8")
    except BaseException:  # the student's exception class may fail
        return ""


def _line(filename: str, number: int) -> str:
    lines = linecache.cache[filename][2]  # type: ignore[misc]
    return lines[number - 1].strip() if 0 < number <= len(lines) else ""


_Path = tuple[Any, ...]  # the keys and indices that lead to an array in a value


def _arrays(
    value: Any, path: _Path = (), seen: dict[int, Any] | None = None
) -> Iterator[tuple[_Path, np.ndarray]]:
    """All arrays in a value, including those in nested tuples, lists, dicts and attributes of objects.

    What is not an array is searched once.
    """
    seen = {} if seen is None else seen
    if isinstance(value, np.ndarray):
        yield path, value
    elif len(path) < 10 and id(value) not in seen:
        seen[id(value)] = value
        for key, each in _parts(value):
            yield from _arrays(each, (*path, key), seen)


def _parts(value: Any) -> Iterable[tuple[Any, Any]]:
    """The elements or attributes of a value, with their keys, indices or names."""
    if isinstance(value, dict):
        return value.items()
    if isinstance(value, tuple | list):
        return enumerate(value)
    if isinstance(value, type | ModuleType | FunctionType):
        return ()
    slots = [each for kind in type(value).__mro__ for each in _names_of(kind.__dict__.get("__slots__", ()))]
    names = [*getattr(value, "__dict__", ()), *slots]
    return [(name, getattr(value, name)) for name in names if hasattr(value, name)]


def _names_of(slots: Any) -> Iterable[str]:
    return (slots,) if isinstance(slots, str) else slots


def _copies(value: Any) -> dict[_Path, np.ndarray]:
    return {path: array.copy() for path, array in _arrays(value)}


def _same(old: dict[_Path, np.ndarray], new: dict[_Path, np.ndarray], *, may_grow: bool) -> bool:
    """Whether there are the same arrays as before, or with ``may_grow`` more, and none has changed."""
    same_paths = old.keys() <= new.keys() if may_grow else old.keys() == new.keys()
    return same_paths and all(_equal(array, new[path]) for path, array in old.items())


def _equal(one: np.ndarray, other: np.ndarray) -> bool:
    try:
        return np.array_equal(one, other, equal_nan=True)
    except (TypeError, ValueError):  # for objects and strings
        return True
