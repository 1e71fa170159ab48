"""The stand-in of ``cupy.cuda``: one device that completes its work before a call returns."""

from __future__ import annotations

import collections
import contextlib
import threading
import time
import weakref
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from .blocks import Account, Memory, MemoryPointer, accounts, rounded

MULTIPROCESSORS = 4
SHARED_MEMORY = 232448  # maximum number of bytes of a block
TOTAL_MEMORY = 16 << 30
RUNTIME_VERSION = 99_000  # no version of CUDA has this number

ATTRIBUTES = {
    "MultiProcessorCount": MULTIPROCESSORS,
    "MaxSharedMemoryPerBlock": 48 * 1024,
    "MaxSharedMemoryPerBlockOptin": SHARED_MEMORY,
    "MaxThreadsPerBlock": 1024,
    "CooperativeLaunch": 1,
    "WarpSize": 32,
}

limit: int | None = None  # maximum number of bytes of all arrays together
pool_limit = 0  # maximum bytes of a new pool, 0 for no limit: CUPY_GPU_MEMORY_LIMIT


class Transfers:
    """The numbers of transfers between host and device and of synchronisations since :meth:`reset`."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.to_device = self.to_host = self.synchronisations = 0

    def __repr__(self) -> str:
        return f"Transfers({vars(self)})"


transfers = Transfers()
# Launches by the host: kernels by name, and "graph".
launches: collections.Counter[str] = collections.Counter()


class CUDARuntimeError(RuntimeError):
    pass


class CUDADriverError(RuntimeError):
    pass


class CompileException(Exception):
    pass


class OutOfMemoryError(MemoryError):
    def __init__(self, size: int, total: int) -> None:
        super().__init__(f"Out of memory allocating {size:,} bytes (allocated so far: {total:,} bytes).")


class MemoryPool:
    """A pool that, like CuPy's, keeps freed blocks; sizes are rounded up to multiples of 512 bytes.

    It does not fragment: it never reserves more than the peak of the memory in use.
    """

    def __init__(self, allocator: Any = None, *, keeps: bool = True) -> None:
        self._account, self._limit = Account(keeps), pool_limit

    def set_limit(self, size: int | None = None) -> None:
        self._limit = size or 0

    def __del__(self) -> None:
        self._account.keeps = False
        self._account.release()

    def malloc(self, size: int) -> MemoryPointer:
        growth = self._account.growth(rounded(size))
        if self._limit and self._account.reserved + growth > self._limit:
            self.free_all_blocks()  # including blocks that graphs still use
            if self._account.reserved + self._account.growth(rounded(size)) > self._limit:
                raise OutOfMemoryError(rounded(size), self._account.reserved)
        if limit is not None:
            taken, growth = _taken(), self._account.growth(rounded(size))
            if growth and taken + growth > limit:
                self.free_all_blocks()  # as CuPy does before it raises the error
                raise OutOfMemoryError(rounded(size), taken)
        memory = Memory(size, self._account, get_current_stream().ptr)
        if thread.recording is not None:
            thread.recording.born(memory.block)
        return MemoryPointer(memory, memory.block.ptr)

    def used_bytes(self) -> int:
        return self._account.used

    def total_bytes(self) -> int:
        return self._account.reserved

    def free_bytes(self) -> int:
        return self.total_bytes() - self.used_bytes()

    def free_all_blocks(self, stream: Any = None) -> None:
        self._account.release()


def _taken() -> int:
    return sum(account.reserved for account in accounts)


pool = MemoryPool(keeps=False)  # frees at once, so that the memory in use is exact


def forget_pools() -> None:
    """Stop counting the memory of the pools of earlier tests, which may not be collected yet."""
    accounts.clear()
    accounts.add(pool._account)


class Thread(threading.local):
    """The state of CuPy in a thread."""

    current: Stream | None = None  # None for the null stream
    recording: Any = None  # the recorder of the current stream while it captures
    allocator: Any = None


thread = Thread()


def alloc(size: int) -> MemoryPointer:
    return (thread.allocator or pool.malloc)(size)


@contextlib.contextmanager
def using_allocator(allocator: Any = None) -> Iterator[None]:
    before, thread.allocator = thread.allocator, allocator
    try:
        yield
    finally:
        thread.allocator = before


_capturing: weakref.WeakSet[Stream] = weakref.WeakSet()
CAPTURES = "cudaErrorStreamCaptureUnsupported: operation not permitted when stream is capturing"


def _synchronise() -> None:
    transfers.synchronisations += 1


def _synchronise_device() -> None:
    """Synchronise all streams, which invalidates captures."""
    for stream in _capturing:
        stream.recorder.invalid = True
    if _capturing:
        raise CUDARuntimeError(CAPTURES)
    _synchronise()


class Device:
    compute_capability = "90"

    def __init__(self, device: Any = None) -> None:
        self.id = device.id if isinstance(device, Device) else int(device or 0)
        self.attributes = ATTRIBUTES

    def use(self) -> None:
        if self.id != 0:
            raise CUDARuntimeError("cudaErrorInvalidDevice: invalid device ordinal")

    def __enter__(self) -> Device:
        self.use()
        return self

    def __exit__(self, *error: Any) -> None:
        pass

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __int__(self) -> int:
        return self.id

    def __repr__(self) -> str:
        return f"<CUDA Device {self.id}>"

    def synchronize(self) -> None:
        _synchronise_device()

    @property
    def pci_bus_id(self) -> str:
        return f"0000:00:{self.id:02x}.0"

    @property
    def mem_info(self) -> tuple[int, int]:
        total = TOTAL_MEMORY if limit is None else limit
        return total - _taken(), total


class Event:
    def __init__(self, block: bool = True, disable_timing: bool = False, interprocess: bool = False) -> None:
        self._time: float | None = None
        self.recorder: Any = None  # recorder of the capture that the event was recorded in

    @property
    def done(self) -> bool:
        if self.recorder is not None:
            self.recorder.invalid = True
        return self.recorder is None

    def record(self, stream: Any = None) -> None:
        self.recorder = (get_current_stream() if stream is None else stream).recorder
        self._time = time.perf_counter() if self.recorder is None else None

    def synchronize(self) -> None:
        if self.recorder is not None:
            self.recorder.invalidate(
                "cudaErrorCapturedEvent: "
                "operation not permitted on an event last recorded in a capturing stream"
            )
        _synchronise()


def get_elapsed_time(start_event: Event, end_event: Event) -> float:
    """Milliseconds between two recorded events."""
    if start_event._time is None or end_event._time is None:
        raise CUDARuntimeError("cudaErrorInvalidResourceHandle: invalid resource handle")
    return 1000 * (end_event._time - start_event._time)


class Stream:
    null: Stream

    def __init__(
        self, null: bool = False, non_blocking: bool = False, ptds: bool = False, priority: Any = None
    ):
        self.ptr = 0 if null else id(self)
        self.is_non_blocking = non_blocking
        self.recorder: Any = None  # None unless the stream captures
        self._before: dict[int, list[Stream]] = {}  # previous streams of each thread

    def __enter__(self) -> Stream:
        self._before.setdefault(threading.get_ident(), []).append(get_current_stream())
        return self.use()

    def __exit__(self, *error: Any) -> None:
        self._before[threading.get_ident()].pop().use()

    def use(self) -> Stream:
        thread.current = self
        _follow()
        return self

    @property
    def done(self) -> bool:
        if self.recorder is not None:
            self.recorder.invalid = True
        return self.recorder is None

    def synchronize(self) -> None:
        if self.recorder is not None:
            self.recorder.invalidate(CAPTURES)
        _synchronise()

    def record(self, event: Event | None = None) -> Event:
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        if event.recorder is not None and event.recorder is not self.recorder:
            raise NotImplementedError("a stream that joins the capture of another one is not simulated")
        if self.recorder is not None and event.recorder is None and event._time is not None:
            self.recorder.invalidate(
                "cudaErrorStreamCaptureIsolation: dependency created on uncaptured work in another stream"
            )

    def begin_capture(self, mode: int | None = None) -> None:
        from . import capture

        if self.ptr == 0:
            raise RuntimeError("cannot capture on the default (legacy) stream")
        if not self.is_non_blocking:
            raise NotImplementedError(
                "the capture of a stream that waits for the null stream is not simulated"
            )
        if self.recorder is not None:
            raise CUDARuntimeError(ILLEGAL)
        self.recorder = capture.Recorder()
        _capturing.add(self)
        _follow()

    def end_capture(self) -> Any:
        if self.recorder is None:
            raise CUDARuntimeError(ILLEGAL)
        recorder, self.recorder = self.recorder, None
        _capturing.discard(self)
        _follow()
        return recorder.finish()

    def is_capturing(self) -> bool:
        if self.recorder is not None and self.recorder.invalid:
            self.recorder.refuse("calls")
        return self.recorder is not None


ILLEGAL = "cudaErrorIllegalState: the operation cannot be performed in the present state"


def _follow() -> None:
    """Start or stop recording when the current stream or its capture has changed."""
    recorder = get_current_stream().recorder
    if thread.recording is not recorder:
        from . import capture

        thread.recording = recorder
        capture.switch()


Stream.null = Stream(null=True)


def forget_captures() -> None:
    """Drop captures that were not ended."""
    for stream in list(_capturing):
        stream.recorder = None
    _capturing.clear()


def get_current_stream(device_id: int | None = None) -> Stream:
    return thread.current or Stream.null


def is_available() -> bool:
    return True


def __getattr__(name: str) -> Any:
    if name != "cublas":
        raise AttributeError(f"module 'cupy.cuda' has no attribute {name!r}")
    from . import cublas_library

    return cublas_library.load()  # like CuPy's module, it is accessed to load the library


def alloc_pinned_memory(size: int) -> bytearray:
    """Page-locked memory: a writable buffer that may be longer than requested, like CuPy's."""
    return bytearray((size + 511) // 512 * 512)


def _properties(device: int) -> dict[str, Any]:
    return {
        "name": b"simulated",
        "major": 9,
        "minor": 0,
        "multiProcessorCount": MULTIPROCESSORS,
        "sharedMemPerBlock": 48 * 1024,
        "sharedMemPerBlockOptin": SHARED_MEMORY,
        "totalGlobalMem": TOTAL_MEMORY,
        "warpSize": 32,
    }


runtime = SimpleNamespace(
    CUDARuntimeError=CUDARuntimeError,
    getDeviceCount=lambda: 1,
    getDevice=lambda: 0,
    getDeviceProperties=_properties,
    deviceSynchronize=_synchronise_device,
    memGetInfo=lambda: Device(0).mem_info,
    runtimeGetVersion=lambda: RUNTIME_VERSION,
    driverGetVersion=lambda: 12090,
    streamCaptureModeGlobal=0,
    streamCaptureModeThreadLocal=1,
    streamCaptureModeRelaxed=2,
)
nccl = SimpleNamespace(available=False)


def _blocks_of_multiprocessor(function: int, threads: int, shared: int) -> int:
    """The number of blocks that are resident on a multiprocessor of compute capability 9.0."""
    return min(2048 // (-(-threads // 32) * 32), 32, 233472 // (shared + 1024))


driver = SimpleNamespace(
    CUDADriverError=CUDADriverError, occupancyMaxActiveBlocksPerMultiprocessor=_blocks_of_multiprocessor
)
compiler = SimpleNamespace(CompileException=CompileException)
memory = SimpleNamespace(
    OutOfMemoryError=OutOfMemoryError, MemoryPool=MemoryPool, MemoryPointer=MemoryPointer
)
stream = SimpleNamespace(Stream=Stream, Event=Event, get_current_stream=get_current_stream)
