"""Suites on a GPU: their cases, the requirements on the machine, and the timing.

A suite that has ``GPU``, a :class:`Plan`, takes the device as a third argument of its ``prepare``. Both
libraries work on the same GPU, in processes of their own, one at a time. A time runs from an
idle GPU to the next time that it is idle; the median counts.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from benchmarks.table import OURS, precision_of

_TURN = 0.2  # seconds
_LEAST = 3  # runs in a turn, however long they take


class Plan(NamedTuple):
    """The cases, sides and targets of a suite on a GPU."""

    cases: Mapping[str, Any]
    sides: Sequence[str]
    targets: Mapping[str, Mapping[str, float | None]]

    def sides_of(self, case: str) -> list[str]:
        """The sides of a case: ours have another precision only where the case has full precision."""
        reduced = getattr(self.cases[case], "tf32", False)
        names = OURS, *self.targets[case]
        return [
            side for side in self.sides if side.split()[0] in names and not (reduced and precision_of(side))
        ]


def no_device() -> str:
    """Why rnnlab has no GPU here; empty if it has one."""
    from rnnlab import ops

    try:
        ops.ops_on("gpu")
    except (ImportError, ValueError) as error:
        return str(error)
    return ""


def lacking() -> str:
    """What this machine lacks for a comparison on a GPU; empty if nothing."""
    if reason := no_device():
        return reason
    try:
        import torch
    except ModuleNotFoundError:
        return "PyTorch is not installed: pip install torch"
    if torch.version.cuda is None:
        return f"PyTorch {torch.__version__} is built without CUDA"
    return "" if torch.cuda.is_available() else f"PyTorch {torch.__version__} finds no GPU"


def about() -> str:
    """The GPU and the versions of the libraries."""
    import torch

    from rnnlab import ops

    cudnn = torch.backends.cudnn.version()
    return f"PyTorch {torch.__version__} with cuDNN {cudnn}; rnnlab on {ops.describe_gpu()}"


def use_precision(side: str, tf32: bool) -> None:
    """Choose whether a side's matrix products use TensorFloat-32. Call this before the import of its library.

    By default PyTorch's LSTM uses it and its other products do not. One of our sides may name its precision.
    """
    if _is_ours(side):
        os.environ["RNNLAB_MATMUL"] = precision_of(side) or ("tf32" if tf32 else "float32")
        return
    import torch

    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.backends.cudnn.allow_tf32 = tf32


def begin(suite: ModuleType, side: str, case: str) -> tuple[Callable[[], object], Callable[..., float]]:
    """The work of a side, and the function that measures it."""
    sizes = suite.GPU.cases[case]
    use_precision(side, getattr(sizes, "tf32", False))
    work, wait, unit = suite.prepare(side, sizes, "gpu"), waiter(side), getattr(suite, "PER_MILLISECOND", 1.0)
    return work, lambda work: unit * milliseconds(work, wait)


def as_graph(work: Callable[[], Any]) -> Callable[[], Any]:
    """The work of rnnlab as one launch of a CUDA graph; it returns the same arrays each time."""
    from rnnlab.ops import gpu_training

    training, rng, made = gpu_training(), np.random.default_rng(0), []
    work()  # compiles what it needs
    graph = training.Graph(lambda: made.append(work()), training.GraphMemory())

    def launch(reads: Any = work) -> Any:  # keeps the arrays that the graph reads alive
        graph.launch(rng, lambda: None)
        return made[0]

    return launch


def milliseconds(work: Callable[[], object], wait: Callable[[], object]) -> float:
    """The median time of the work, over as many runs as fill a turn; ``wait`` waits for the GPU."""
    began, times = time.perf_counter(), []
    while len(times) < _LEAST or time.perf_counter() - began < _TURN:
        wait()
        started = time.perf_counter()
        work()
        wait()
        times.append(time.perf_counter() - started)
    return 1000 * median(times)


def our_milliseconds(work: Callable[[], object]) -> float:
    """The median time of rnnlab's work."""
    return milliseconds(work, waiter(OURS))


def waiter(side: str) -> Callable[[], object]:
    """The function that waits for the GPU in a side's process."""
    if _is_ours(side):
        import cupy

        return lambda: cupy.cuda.get_current_stream().synchronize()
    import torch

    return torch.cuda.synchronize


def _is_ours(side: str) -> bool:
    return side.split()[0] == OURS
