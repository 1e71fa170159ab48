"""Kernels: loops over arrays that numba compiles when they are first needed and caches on disk.

    @kernel("T[:,::1], T[:,::1]", arguments="x (n, H); out! (n, H)", parallel_from=30_000)
    def double(part, parts, x, out):
        for row in share(x.shape[0], part, parts):
            ...

T in the signature is the dtype of all floating-point arguments: each kernel has a version for float32 and one
for float64. ``arguments`` declares the arrays (:mod:`rnnlab.ops.arguments`); a call checks them before it
touches memory. A kernel whose first parameters are ``part`` and ``parts`` does one part of the work; threads
do the parts in parallel (:mod:`rnnlab.ops.numba.parallel`). A kernel whose first parameter is ``parts`` alone
has several phases, each of which it divides with ``in_parts``. There are as many parts as threads if the
first array has at least ``parallel_from`` elements, else one.

Compiling a version takes half a second to 8 seconds, once. The machine code is cached next to this file, or
in the user's cache folder if that place is read-only, or in the folder named by NUMBA_CACHE_DIR. It is
compiled again after a change in one of the files of kernels, or if a file of the cache is damaged.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import inspect
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from rnnlab.environment import environment
from rnnlab.errors import InputError, InputTypeError, NotInstalledError
from rnnlab.ops.arguments import PRIMITIVES, Declaration, is_unusual
from rnnlab.ops.numba import amx, registers
from rnnlab.ops.numba.guard import FITS, OVERLAP, guarded
from rnnlab.ops.numba.parallel import OPENMP, start_threads
from rnnlab.ops.threads import default_jobs, import_numba, num_threads
from rnnlab.pools import map_in_processes
from rnnlab.signals import deferred_signals

numba = import_numba()
if numba.config.DISABLE_JIT:
    raise NotInstalledError("NUMBA_DISABLE_JIT is set")

__all__ = [
    "DTYPES",
    "OPTIONS",
    "Kernel",
    "RefusedError",
    "always_parallel",
    "cache_folder",
    "inlined",
    "kernel",
    "named_errors",
    "phase",
    "primitive",
    "reduction",
    "shared_by",
    "strict",
    "tell_compiled",
    "threads",
    "unfused",
    "warm_up",
]

DTYPES = {"f": "float32", "d": "float64"}

# The number of threads is data, never a constant of a kernel, because processes with different numbers of
# threads share the machine code in the cache on disk.
_threads = num_threads() if OPENMP else 1  # other threads than OpenMP's cannot be shared with MKL
_always_parallel = 0  # number of active contexts
_lock = threading.Lock()

# a b + c may be a single instruction, which rounds once; x / 0 is inf, as in NumPy; the GIL is released
OPTIONS: dict[str, Any] = {"fastmath": {"contract"}, "error_model": "numpy", "nogil": True}
_FOR_KERNELS = OPTIONS | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}  # not called from Python
_KERNELS: list[Kernel] = []

# Functions that kernels call. A reduction may be reordered into as many partial sums as a register holds.
inlined = numba.njit(**_FOR_KERNELS)
reduction = numba.njit(**_FOR_KERNELS | {"fastmath": {"contract", "reassoc"}})
unfused = numba.njit(**_FOR_KERNELS | {"fastmath": False})  # rounds each operation, as NumPy does
# Functions that run in parts. LLVM must inline them. Otherwise a function is optimised a second time together
# with its caller. The process that compiles it would run the first version, and processes that load it from
# the cache the second, which may round differently.
phase = numba.njit(forceinline=True, **_FOR_KERNELS)


def _after_fork() -> None:
    """Use the serial versions of all kernels, and a lock that no thread of the parent holds."""
    global _threads, _lock
    _threads, _lock = 1, threading.Lock()


# GNU's OpenMP would end a process that was forked after its first parallel loop
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def threads() -> int:
    """The number of threads among which kernels divide their work."""
    return _threads


def shared_by(work: int, parallel_from: int) -> int:
    """The number of parts of ``work``: as many as threads from ``parallel_from`` on, else one."""
    return _threads if work >= parallel_from or _always_parallel else 1


@contextlib.contextmanager
def always_parallel() -> Iterator[None]:
    """Divide the work of all kernels among threads, however small the arrays are: for tests."""
    global _always_parallel
    with _lock:
        _always_parallel += 1
    try:
        yield
    finally:
        with _lock:
            _always_parallel -= 1


def kernel(
    signature: str, *, arguments: str = "", parallel_from: int | None = None, dtypes: str = "".join(DTYPES)
) -> Callable[[Callable[..., Any]], Kernel]:
    """Make a kernel of a function; see the module's docstring.

    Parameters
    ----------
    signature : str
        The types of the arguments in numba's notation, with T for the dtype. The first one is an array of T.
    arguments : str
        The declaration of the arrays (:mod:`rnnlab.ops.arguments`). If it is empty, that of the primitive
        with the kernel's name, which may begin with an underscore.
    parallel_from : int, optional
        The number of elements of the first argument from which on a call uses all threads.
    dtypes : str
        The types that T may be: "f" for float32, "d" for float64.

    Raises
    ------
    ValueError
        If an array of the signature is not declared, or has another number of axes.
    """
    return lambda function: Kernel(function, signature, arguments, parallel_from, dtypes)


class RefusedError(InputTypeError):
    """The arguments are right, but have a layout or an integer type that the kernel does not accept."""


class Kernel:
    """A function over arrays, compiled for each dtype when it is first called with it.

    Raises
    ------
    TypeError, ValueError, IndexError
        By a call, before anything is written, if the arguments are not as declared.
    RefusedError
        By a call, if they are as declared, but strided, read-only, unaligned or of another integer type.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        signature: str,
        arguments: str,
        parallel_from: int | None,
        dtypes: str,
    ) -> None:
        functools.update_wrapper(self, function)
        name = function.__name__
        self.function, self.signature, self.parallel_from = function, signature, parallel_from
        self.dtypes = dtypes
        self.declaration = Declaration(arguments) if arguments else PRIMITIVES[name.removeprefix("_")]
        names = function.__code__.co_varnames[: function.__code__.co_argcount]
        self._own = names[: 2 if names[:2] == ("part", "parts") else names[0] == "parts"]
        parameters = names[len(self._own) :]
        kinds = dict(zip(parameters, re.findall(r"\w+(?:\[[^]]*\])?", signature), strict=True))
        axes = {key: kind.count(",") + 1 for key, kind in kinds.items() if "[" in kind}
        if axes != {each.name: len(each.axes or ()) for each in self.declaration.arguments}:
            raise InputError(f"{name}: the declaration of the arrays does not fit the signature")
        self._strided = [key for key, kind in kinds.items() if "[" in kind and "1]" not in kind]
        self.parameters = parameters
        self._versions: dict[np.dtype, Callable[..., Any]] = {}  # a dtype in the other byte order has none
        _KERNELS.append(self)

    def __call__(self, *arguments: Any) -> None:
        """Run the version for these arguments, in a number of parts that suits their size."""
        parts = 1 if self.parallel_from is None else shared_by(arguments[0].size, self.parallel_from)
        self.run(parts, *arguments)

    def run(self, parts: int, *arguments: Any) -> None:
        """Run it in this many parts."""
        try:
            version = self._versions.get(arguments[0].dtype)
            if version is None:
                self._check(arguments)
                version = self.version(arguments[0].dtype.char)
            found = version(parts, *arguments, False) if self._strided else version(parts, *arguments)
        except (TypeError, ValueError, AttributeError) as error:
            self._check(arguments)
            if len(arguments) != len(self.parameters):
                raise
            unusual = [
                name for name, array in zip(self.parameters, arguments, strict=True) if is_unusual(array)
            ]
            found = f"{' and '.join(unusual)} strided, read-only or unaligned; " if unusual else ""
            raise RefusedError(f"{self.function.__name__}: {found}{error}") from error
        if found != FITS:
            self._check(arguments)
            if found != OVERLAP or not self._strided:
                raise AssertionError(f"{self.function.__name__}: the guard is stricter than the declaration")
            version(parts, *arguments, True)

    def _check(self, arguments: tuple[Any, ...]) -> None:
        """Raise an error that names the first argument that is not as declared, if there is one."""
        given = dict(zip(self.parameters, arguments, strict=False))
        self.declaration.check(self.function.__name__, given)

    def version(self, dtype: str) -> Any:
        """The compiled function for a dtype, "f" or "d": numba's dispatcher."""
        version = self._versions.get(np.dtype(dtype))
        if version is None:
            if dtype not in self.dtypes:
                raise RefusedError(
                    f"{self.function.__name__}: there is no version for {DTYPES.get(dtype, dtype)}"
                )
            with deferred_signals():  # numba is unusable after an exception at some places of it
                version = self._versions[np.dtype(dtype)] = self._compile(dtype)
        return version

    def cache_name(self, dtype: str) -> str:
        """A part of the name of the files with this version in numba's cache."""
        return f"{self.function.__name__}-{DTYPES[dtype]}-{_digest()}"

    def _compile(self, dtype: str) -> Any:
        started = time.perf_counter()
        start_threads()
        # a separate function: within the guard the compiler cannot rule out overlaps, and loops stay scalar
        body = phase(self.function)
        guard = guarded(body, self.function, self._own, self.declaration, self._strided, inlined)
        # qualname is part of the file's name in numba's cache, which does not distinguish options
        name = guard.__qualname__ = self.cache_name(dtype)
        signature = self.signature + ", boolean" * bool(self._strided)
        types = f"(int64, {signature.replace('T', DTYPES[dtype])})"
        dispatcher = numba.njit(**OPTIONS)(guard)
        cached: list[Path] = []
        try:
            dispatcher.enable_caching()
        except RuntimeError:  # numba finds no writable folder
            _announce(None)
        else:
            path = Path(dispatcher.stats.cache_path)
            cached = list(path.glob(f"*{name}*"))
            if not cached:
                _announce(path)
        try:
            dispatcher.compile(types)
        except Exception as error:  # numba does not recognise damaged files
            if cached:
                for file in cached:
                    file.unlink(missing_ok=True)
                return self._compile(dtype)
            if not (isinstance(error, OSError) and dispatcher.overloads):
                raise
            _announce_unsaved(error)
        dispatcher.disable_compile()
        if not dispatcher.stats.cache_hits:
            _compiled.append(time.perf_counter() - started)
        return dispatcher


def cache_folder() -> str | None:
    """The folder of the compiled kernels; None if they cannot be cached."""
    dispatcher = numba.njit(strict)
    try:
        dispatcher.enable_caching()
    except RuntimeError:  # numba finds no folder that it may write
        return None
    return dispatcher.stats.cache_path


def strict() -> bool:
    """Whether arguments that a kernel refuses are an error: whether RNNLAB_STRICT is "1"."""
    return os.environ.get("RNNLAB_STRICT") == "1"


def primitive(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which gets copies of arrays in a layout that no kernel accepts.

    If an array that it writes has such a layout, NumPy's function of the same name takes its place. Wrong
    arguments raise an error that names the primitive. With RNNLAB_STRICT=1, other layouts raise RefusedError.
    """
    reference_module = importlib.import_module(function.__module__.replace(".numba.", ".numpy."))
    reference = getattr(reference_module, function.__name__)
    signature, declaration = inspect.signature(reference), PRIMITIVES[function.__name__]
    positional = isinstance(function, Kernel)

    @functools.wraps(reference)
    def choose(*arguments: Any, **options: Any) -> Any:
        if options and positional:
            arguments, options = signature.bind(*arguments, **options).args, {}
        try:
            return function(*arguments, **options)
        except RefusedError:
            given = signature.bind(*arguments, **options)
            declaration.check(function.__name__, given.arguments)
            if strict():
                raise
            given.arguments |= declaration.copied(given.arguments)
            with contextlib.suppress(RefusedError):
                return function(*given.args, **given.kwargs)
        except (TypeError, ValueError, IndexError, AttributeError):
            declaration.check(function.__name__, signature.bind(*arguments, **options).arguments)
            raise
        return reference(*arguments, **options)

    choose.fused = function  # type: ignore[attr-defined]
    return choose


def named_errors(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with errors that name it rather than a kernel that it calls."""
    declaration, signature = PRIMITIVES[function.__name__], inspect.signature(function)

    @functools.wraps(function)
    def run(*arguments: Any, **options: Any) -> Any:
        try:
            return function(*arguments, **options)
        except (TypeError, ValueError, IndexError, AttributeError):
            declaration.check(function.__name__, signature.bind(*arguments, **options).arguments)
            raise

    return run


def warm_up(jobs: int = 1, progress: Callable[..., Iterable[int]] | None = None) -> int:
    """Compile all versions that are not in the cache; see :func:`rnnlab.ops.warm_up`."""
    folder = cache_folder()
    missing = _missing(None if folder is None else Path(folder))
    names = [(each.function.__module__, each.function.__name__, dtype) for each, dtype in missing]
    with environment(**{_ANNOUNCED: "1"}):  # processes inherit it
        compiled: Iterable[int] = map(_compile_named, names)
        if folder is not None and min(jobs, len(names)) > 1:
            jobs = min(jobs, len(names))
            compiled = map_in_processes(_compile_named, names, jobs=jobs, method="spawn", terminate=True)
        if names and progress is not None:
            compiled = progress(compiled, total=len(names))
        count, before = sum(compiled), len(_compiled)
        for each in _KERNELS:  # load all: files may be damaged, or for another processor
            for dtype in each.dtypes:
                each.version(dtype)
        return count + len(_compiled) - before


def _compile_named(version: tuple[str, str, str]) -> int:
    """Compile the version of this module, name and dtype; 0 if this process has it already, else 1."""
    *names, dtype = version
    importlib.import_module(names[0])
    before = len(_compiled)
    each = next(each for each in _KERNELS if [each.function.__module__, each.function.__name__] == names)
    each.version(dtype)
    return len(_compiled) - before


def _missing(folder: Path | None) -> list[tuple[Kernel, str]]:
    """The kernels and dtypes of which ``folder`` has no machine code."""
    cached = [path.name for path in folder.glob("*.nbi")] if folder and folder.is_dir() else []
    versions = [(each, dtype) for each in _KERNELS for dtype in each.dtypes]
    names = [each.cache_name(dtype) for each, dtype in versions]
    return [
        version
        for version, name in zip(versions, names, strict=True)
        if not any(name in file for file in cached)
    ]


_ANNOUNCED = "RNNLAB_KERNELS_ANNOUNCED"  # set in the environment, which child processes inherit
_announced = False  # whether this process has announced a compilation and not yet reported its end
_told_unsaved = False  # whether this process has reported that kernels could not be saved
_compiled: list[float] = []  # seconds to compile each version that was not in the cache


def _announce(folder: Path | None) -> None:
    """Explain why the first calls take so long, once for a process and the processes that it starts.

    ``folder`` is the folder of cached kernels, None if they cannot be cached.
    """
    global _announced
    if os.environ.get(_ANNOUNCED):
        return
    os.environ[_ANNOUNCED] = "1"
    missing, versions = len(_missing(folder)), sum(len(each.dtypes) for each in _KERNELS)
    work = f"{missing} of {versions} kernels are not compiled yet; each takes 1 to 8 s when it is first used"
    if folder:
        minutes = max(1, round(missing / 40 / default_jobs()))
        notice = (
            f"{work}, and is then saved. A training uses 10 to 20; rnnlab kernels --warm-up compiles "
            f"all that are missing, in about {minutes} min"
        )
    else:
        notice = f"{work}. They cannot be saved: set NUMBA_CACHE_DIR to a folder that can be written"
    print(f"rnnlab: {notice}", file=sys.stderr, flush=True)
    _announced = True


def _announce_unsaved(error: OSError) -> None:
    """Report once that compiled kernels could not be saved, for example on a full disk."""
    global _told_unsaved
    if _told_unsaved:
        return
    _told_unsaved = True
    notice = f"compiled kernels are not saved: {error}; set NUMBA_CACHE_DIR to a folder with room for them"
    print(f"rnnlab: {notice}", file=sys.stderr, flush=True)


def tell_compiled() -> None:
    """Report that the kernels of the first step are compiled, if this process has announced it."""
    global _announced
    if _announced:
        _announced = False
        work = f"{len(_compiled)} compiled in {sum(_compiled):.0f} s"
        print(
            f"rnnlab: the kernels of the first training step are ready: {work}", file=sys.stderr, flush=True
        )


@functools.cache
def _digest() -> str:
    """A digest of everything that machine code depends on and that numba's own cache key leaves out.

    numba's key covers the file of the kernel itself, the signature and the target processor. This adds the
    other files with functions and constants of kernels, and the constants that depend on the processor.
    """
    folder = Path(__file__).parent
    others = folder.parent / "numpy" / "masks.py", folder.parent / "arguments.py"  # guards are built from it
    content = b"".join(path.read_bytes() for path in (*sorted(folder.glob("*.py")), *others))
    settings = numba.config.LOOP_VECTORIZE, numba.config.SLP_VECTORIZE, numba.config.BOUNDSCHECK
    numbers = registers.VECTOR, registers.REGISTERS, amx.AMX, OPENMP, *settings
    return hashlib.sha256(content + " ".join(map(str, numbers)).encode()).hexdigest()[:8]
