"""The stand-in of ``cupy.cuda``: one device whose work is done by the time a call returns."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import numpy as np

MULTIPROCESSORS = 4
SHARED_MEMORY = 232448  # bytes that a block may ask for
TOTAL_MEMORY = 16 << 30
RUNTIME_VERSION = 99_000  # that of no CUDA

ATTRIBUTES = {
    "MultiProcessorCount": MULTIPROCESSORS,
    "MaxSharedMemoryPerBlock": 48 * 1024,
    "MaxSharedMemoryPerBlockOptin": SHARED_MEMORY,
    "MaxThreadsPerBlock": 1024,
    "CooperativeLaunch": 1,
    "WarpSize": 32,
}

limit: int | None = None  # bytes that all arrays together may take


class Transfers:
    """What went between host and device since :meth:`reset`, and how often the host waited."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.to_device = self.to_host = self.synchronisations = 0

    def __repr__(self) -> str:
        return f"Transfers({vars(self)})"


transfers = Transfers()


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
    """Counts what the arrays take, each rounded up to 512 bytes as in CuPy's own pool."""

    def __init__(self) -> None:
        self._used = 0

    def take(self, size: int) -> int:
        """Count an array of this many bytes; return what is to be given back."""
        size = (size + 511) // 512 * 512
        if limit is not None and self._used + size > limit:
            raise OutOfMemoryError(size, self._used)
        self._used += size
        return size

    def give_back(self, size: int) -> None:
        self._used -= size

    def used_bytes(self) -> int:
        return self._used

    total_bytes = used_bytes

    def free_bytes(self) -> int:
        return 0

    def free_all_blocks(self) -> None:
        pass


pool = MemoryPool()


def _synchronise() -> None:
    transfers.synchronisations += 1


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
        _synchronise()

    @property
    def mem_info(self) -> tuple[int, int]:
        total = TOTAL_MEMORY if limit is None else limit
        return total - pool.used_bytes(), total


class Event:
    done = True

    def __init__(self, block: bool = True, disable_timing: bool = False, interprocess: bool = False) -> None:
        self._time: float | None = None

    def record(self, stream: Any = None) -> None:
        self._time = time.perf_counter()

    def synchronize(self) -> None:
        _synchronise()


def get_elapsed_time(start_event: Event, end_event: Event) -> float:
    """Milliseconds between two recorded events."""
    if start_event._time is None or end_event._time is None:
        raise CUDARuntimeError("cudaErrorInvalidResourceHandle: invalid resource handle")
    return 1000 * (end_event._time - start_event._time)


class Stream:
    null: Stream
    done = True

    def __init__(
        self, null: bool = False, non_blocking: bool = False, ptds: bool = False, priority: Any = None
    ):
        self.ptr = 0 if null else id(self)
        self._before: list[Stream] = []

    def __enter__(self) -> Stream:
        self._before.append(get_current_stream())
        return self.use()

    def __exit__(self, *error: Any) -> None:
        self._before.pop().use()

    def use(self) -> Stream:
        global _current
        _current = self
        return self

    def synchronize(self) -> None:
        _synchronise()

    def record(self, event: Event | None = None) -> Event:
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        pass


Stream.null = Stream(null=True)
_current = Stream.null


def get_current_stream(device_id: int | None = None) -> Stream:
    return _current


def is_available() -> bool:
    return True


class _Allocated:
    """Device memory without an array."""

    def __init__(self, size: int) -> None:
        self._counted = 0
        self._counted = pool.take(size)
        self._raw = np.empty(size + 255, np.uint8)
        self.ptr = self._raw.ctypes.data + -self._raw.ctypes.data % 256

    def __del__(self) -> None:
        pool.give_back(self._counted)


def alloc(size: int) -> _Allocated:
    return _Allocated(size)


def __getattr__(name: str) -> Any:
    if name != "cublas":
        raise AttributeError(f"module 'cupy.cuda' has no attribute {name!r}")
    from . import cublas_library

    return cublas_library.load()  # as CuPy's module, it is there for its library to be loaded


def alloc_pinned_memory(size: int) -> bytearray:
    """Page-locked memory: a writable buffer that, as CuPy's, may be longer than what was asked for."""
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
    deviceSynchronize=_synchronise,
    memGetInfo=lambda: Device(0).mem_info,
    runtimeGetVersion=lambda: RUNTIME_VERSION,
    driverGetVersion=lambda: 12090,
)
driver = SimpleNamespace(CUDADriverError=CUDADriverError)
compiler = SimpleNamespace(CompileException=CompileException)
memory = SimpleNamespace(OutOfMemoryError=OutOfMemoryError)
stream = SimpleNamespace(Stream=Stream, Event=Event, get_current_stream=get_current_stream)
