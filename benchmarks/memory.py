"""The memory of training steps of the captioning model, Adam included, without that of the model itself.

It is the peak of the resident memory during three steps minus the resident memory before them. By then the
libraries are imported, a step of a tiny model has loaded their kernels, and the model exists. The first step
allocates the gradients and Adam's state. Only on Linux with glibc.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from pathlib import Path

from benchmarks import captioning

CASES = {case: sizes for case, sizes in captioning.CASES.items() if case.startswith("N=")}
SIDES = ("rnnlab", "torch", "torch packed")
TARGETS = {case: {"torch": 1.0} for case in CASES}
UNIT = "MB"
FRESH = True
ROUNDS = 3
STEPS = 3
TINY = captioning.Sizes(4, 16, 8, 8, 8, 100)


def prepare(side: str, sizes: captioning.Sizes) -> Callable[[], object]:
    """The three steps."""
    captioning.prepare(side, TINY)()
    step = captioning.prepare(side, sizes)
    return lambda: [step() for _ in range(STEPS)]


def measure(work: Callable[[], object]) -> float:
    """Megabytes by which the resident memory grew at its peak."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # memory that is free already, such as that of the drawn weights
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # reset the peak
    work()
    return resident("VmHWM") - before


def resident(what: str) -> float:
    """The resident memory of this process in megabytes: VmRSS now, VmHWM at its peak."""
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == what:
            return int(value.split()[0]) / 1000
    raise RuntimeError(f"/proc/self/status has no {what}")
