"""Stream capture: operations are recorded, and run each time the graph is launched.

Nothing is computed during a capture: a function of NumPy runs only to find the shape of its result. The graph
reads and writes the memory that the arrays had at the capture. At a launch that memory has lost the contents
that a device may lose, see :meth:`Graph.launch`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from . import blocks, cuda

CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_longlong)
CUBLAS = {np.matmul, np.dot, np.tensordot, np.outer}
JOINS = {np.concatenate, np.stack, np.hstack, np.vstack}
LARGE = 2 << 20  # bytes; CuPy joins many smaller arrays with one kernel
SORTS = {np.sort, np.argsort}


class GivenBackError(AssertionError):
    """A graph was launched after memory that it uses was given back."""


class Recorder:
    """The operations of a capture, and the memory that they use."""

    def __init__(self) -> None:
        self.invalid = False
        self._operations: list[Callable[[], None]] = []
        self._used: dict[int, blocks.Block] = {}  # by identity, like the others
        self._born: dict[int, blocks.Block] = {}
        # A graph holds these blocks, since a kernel may use addresses that the recorder does not know.
        self._before = blocks.live.copy()

    # Operations in the capture.

    def evaluate(self, function: Any, args: tuple[Any, ...], options: dict[str, Any], wrap: Any) -> Any:
        """The views and new arrays that ``wrap`` makes of a result. Launches write to the new arrays."""
        self._check_captured(function, args)
        with np.errstate(all="ignore"):
            shapes = {name: _zeros(value) for name, value in options.items()}
            result = function(*args[:1], *_zeros(args[1:]), **shapes)
        wrapped = wrap(result)
        new = [(place, array._array) for place, array in enumerate(_flat(wrapped)) if _is_new(array, args)]
        if not new:
            return wrapped

        def compute() -> None:
            results = list(_flat(function(*args, **options)))
            for place, target in new:
                assert np.shape(results[place]) == target.shape, f"{function}: a shape that depends on values"
                target[...] = results[place]

        self.add(compute, (args, *options.values(), [target for _, target in new]))
        return wrapped

    def write(
        self, function: Any, args: tuple[Any, ...], options: dict[str, Any], target: np.ndarray
    ) -> None:
        """Record a call that writes to an array: ``function(target, *args, **options)``."""
        self._check_captured(function, args)
        with np.errstate(all="ignore"):
            shapes = {name: _zeros(value) for name, value in options.items()}
            function(np.empty_like(target), *_zeros(args), **shapes)
        self.add(lambda: function(target, *args, **options), (target, args, *options.values()))

    def add(self, operation: Callable[[], None], uses: Any) -> None:
        """Append an operation that uses these arrays of NumPy, nested in tuples and lists."""
        self.check_valid()
        for array in _flat(uses):
            block = blocks.block_of(array) if isinstance(array, np.ndarray) else None
            if block is not None:
                self._used[id(block)] = block
        self._operations.append(operation)

    def add_unknown(self, operation: Callable[[], None]) -> None:
        """Append an operation that may use any array of the capture."""
        self.add(operation, [block.array for block in self._born.values() if block.died is None])

    def born(self, block: blocks.Block) -> None:
        block.recorder = self
        self._born[id(block)] = block

    def died(self, block: blocks.Block) -> None:
        self._operations.append(block.poison)  # the next array may have the same memory

    # Refused operations.

    def check_valid(self) -> None:
        if self.invalid:
            raise cuda.CUDARuntimeError(
                "cudaErrorStreamCaptureInvalidated: operation failed due to a previous error during capture"
            )

    def invalidate(self, error: str) -> None:
        """Raise an error of CUDA, which ends the capture."""
        self.invalid = True
        raise cuda.CUDARuntimeError(error)

    def refuse(self, what: str) -> None:
        """Raise an error of CuPy; the capture continues."""
        if self.invalid:
            raise RuntimeError("the stream was capturing, but an error has invalidated the capture sequence")
        raise RuntimeError(f"the current stream is capturing, so {what} are disallowed")

    def refuse_cublas(self) -> None:
        raise NotImplementedError("calling cuBLAS API during stream capture is currently unsupported")

    def _check_join(self, arrays: Any) -> None:
        """CuPy sends the addresses of many small arrays to the device before it joins them."""
        if (
            len(arrays) > 8
            and len({array.dtype for array in arrays}) == 1
            and sum(array.nbytes for array in arrays) < len(arrays) * LARGE
        ):
            self.refuse("H2D transfers")

    def _check_captured(self, function: Any, args: tuple[Any, ...]) -> None:
        self.check_valid()
        function = getattr(function, "function", function)
        if function in CUBLAS:
            self.refuse_cublas()
        if function in SORTS:  # Thrust waits for the stream
            self.invalidate(cuda.CAPTURES)
        if function in JOINS or (function is np.array and isinstance(args[0], list)):
            self._check_join(args[0])

    # The end.

    def finish(self) -> Graph:
        for block in self._born.values():
            block.recorder = None
        self.check_valid()
        graph = Graph.__new__(Graph)
        graph._operations = self._operations
        graph._born = list(self._born.values())
        graph._used = list(self._used.values())
        graph._held = [*self._before.values(), *graph._born]
        for block in graph._held:
            block.held = True
            if block.died is not None:
                block.poison()
        return graph


class Graph:
    """A graph of captured operations."""

    __module__ = "cupy.cuda.graph"
    _operations: list[Callable[[], None]]
    _born: list[blocks.Block]  # blocks allocated in the capture
    _used: list[blocks.Block]
    _held: list[blocks.Block]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            "currently this class cannot be initiated by the user and must be created via stream capture"
        )

    def launch(self, stream: Any = None) -> None:
        """Run the operations.

        All memory that the graph uses must still be in use, except for arrays that were allocated in the
        capture from the graph's own pool, if this pool exists and has not freed its blocks. The content of
        such arrays is lost between launches. Arrays that the pool has allocated on the same stream after
        memory of the capture first returned to it may share this memory, so their content is lost as well.
        """
        stream = cuda.get_current_stream() if stream is None else stream
        if stream.recorder is not None:
            raise NotImplementedError("a graph that is launched while a stream captures is not simulated")
        self._check_memory()
        self._lose()
        cuda.launches["graph"] += 1
        with np.errstate(all="ignore"):
            for operation in self._operations:
                operation()
        for block in self._held:
            block.check("an array at a graph's launch")

    def upload(self, stream: Any = None) -> None:
        pass

    def _check_memory(self) -> None:
        born = {id(block) for block in self._born}
        for block in self._used:
            if block.died is None or (id(block) in born and block.account.keeps and block.reserved):
                continue
            origin = "allocated in the capture" if id(block) in born else "from before the capture"
            array = f"the {block.array.dtype} array of shape {block.array.shape} {origin}"
            raise GivenBackError(f"the graph uses memory that was given back: {array}")

    def _lose(self) -> None:
        first: dict[
            tuple[int, int], int
        ] = {}  # (account, stream): time at which memory of the graph first returned
        for block in self._born:
            if block.died is not None:
                block.poison()
                place = id(block.account), block.stream
                first[place] = min(first.get(place, block.died), block.died)
        for block in blocks.live.copy().values():
            if block.born > first.get((id(block.account), block.stream), block.born):
                block.poison()


def connect(library: ctypes.CDLL) -> None:
    """Record the calls of a library while the current stream captures.

    Parameters
    ----------
    library
        It has two functions. After ``void shim_on_call(int (*callback)(long long index))`` with a callback,
        the library stores its calls instead of executing them, and passes the number of each call to the
        callback, which returns 1 if the capture is invalid. With NULL, it executes its calls at once.
        ``int shim_replay(long long index)`` executes a stored call and returns 0 or its error.
    """
    if not any(library is known for known, _ in _libraries):
        library.shim_replay.argtypes = [ctypes.c_longlong]
        library.shim_replay.restype = ctypes.c_int
        library.shim_on_call.argtypes, library.shim_on_call.restype = [CALLBACK], None
        _libraries.append((library, CALLBACK(lambda index: _called(library, index))))
    switch()


_libraries: list[tuple[Any, Any]] = []


def _called(library: Any, index: int) -> int:
    """Record a call; return 1 if the capture is invalid."""
    if cuda.thread.recording is None or cuda.thread.recording.invalid:
        return 1
    cuda.thread.recording.add_unknown(lambda: _replay(library, index))
    return 0


def _replay(library: Any, index: int) -> None:
    if status := library.shim_replay(index):
        raise AssertionError(f"a call of a library fails in a graph: status {status}")


def switch() -> None:
    """Let the libraries record their calls if the current stream captures, and otherwise execute them."""
    for library, callback in _libraries:
        library.shim_on_call(callback if cuda.thread.recording is not None else CALLBACK())


def _flat(values: Any) -> Iterable[Any]:
    if isinstance(values, tuple | list):
        for value in values:
            yield from _flat(value)
    else:
        yield values


def _is_new(array: Any, args: tuple[Any, ...]) -> bool:
    ours = hasattr(array, "_array")
    return ours and array.base is None and all(array._array is not value for value in _flat(args))


def _zeros(value: Any) -> Any:
    """The argument with arrays of integers set to zero: they may be indices that have no content yet."""
    if isinstance(value, tuple | list):
        return type(value)(map(_zeros, value))
    if isinstance(value, np.ndarray) and value.dtype.kind in "iu":
        return np.zeros_like(value)
    return value
