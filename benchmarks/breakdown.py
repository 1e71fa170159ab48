"""``python -m benchmarks breakdown``: how a training step of ``captioning`` spends its time.

Each primitive of ``rnnlab.ops`` is timed while steps run, and "outside primitives" is the rest: Python, and
NumPy called directly. ``steps_forward`` and ``steps_backward`` are the products with the recurrent weight and
the gates of all steps. "one product" is the time of a large product with as many operations as all
products of the step (``gemm.py``), by the same primitives.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from time import perf_counter
from typing import Any

from benchmarks import captioning, gemm
from benchmarks.commands import parser_of
from benchmarks.turns import processor, use_threads
from rnnlab.cli.arguments import positive_integer

_LEAST = 0.01  # the share of a step below which primitives are "other primitives"


def main(arguments: list[str] | None = None) -> int:
    """Print a table for each case."""
    parser = parser_of("breakdown", __doc__)
    parser.add_argument(
        "cases",
        nargs="*",
        metavar="CASE",
        help=f"some of: {', '.join(map(repr, captioning.CASES))}; by default all",
    )
    parser.add_argument("--threads", type=positive_integer, default=2, help="number of threads (default: 2)")
    parser.add_argument(
        "--steps", type=positive_integer, default=30, help="number of steps; the median counts (default: 30)"
    )
    parser.add_argument("--ops", choices=("fused", "numpy"), help="compiled kernels or plain NumPy")
    options = parser.parse_args(arguments)
    for case in options.cases:
        if case not in captioning.CASES:
            parser.error(f"CASE is {case!r}, expected one of {list(captioning.CASES)}")
    use_threads(options.threads)
    if options.ops:
        os.environ["RNNLAB_OPS"] = options.ops
    from rnnlab import ops
    from rnnlab.ops.threads import limit_libraries

    limit_libraries()
    try:
        print(f"{processor()}; {ops.describe()}\n", flush=True)
    except ValueError as error:
        parser.error(str(error))
    for case in options.cases or captioning.CASES:
        print("\n".join(_lines(case, options.steps)), end="\n\n", flush=True)
    return 0


def _lines(case: str, steps: int) -> Iterator[str]:
    """The table of a case."""
    sizes = captioning.CASES[case]
    step = captioning.prepare("rnnlab", sizes)
    whole, primitives = breakdown(step, steps)
    product = gemm.prepare("sgemm rnnlab", captioning.flops(sizes, captioning.batch(sizes)[1]))
    small = {name: seconds for name, seconds in primitives.items() if seconds < _LEAST * whole}
    rows = {name: seconds for name, seconds in primitives.items() if name not in small}
    rows = dict(sorted(rows.items(), key=lambda row: -row[1]))
    rows |= {"other primitives": sum(small.values()), "outside primitives": whole - sum(primitives.values())}
    rows |= {"the step": whole, "one product": median(_seconds(product, steps))}
    yield f"| {case} | ms | share |"
    yield "|---|---|---|"
    for name, seconds in rows.items():
        yield f"| {name} | {1000 * seconds:.2f} | {100 * seconds / whole:.0f} % |"


def breakdown(step: Callable[[], object], steps: int) -> tuple[float, dict[str, float]]:
    """The seconds of the median step, and of each primitive in that step."""
    measured: list[tuple[float, dict[str, float]]] = []
    for _ in range(3):
        step()  # compiles, and leases workspaces
    with timed_primitives() as seconds:
        for _ in range(steps):
            seconds.clear()
            start = perf_counter()
            step()
            measured.append((perf_counter() - start, dict(seconds)))
    return sorted(measured, key=lambda each: each[0])[len(measured) // 2]


def _seconds(work: Callable[[], object], times: int) -> Iterator[float]:
    work()
    for _ in range(times):
        start = perf_counter()
        work()
        yield perf_counter() - start


@contextmanager
def timed_primitives() -> Iterator[dict[str, float]]:
    """The seconds of each primitive on NumPy arrays, while it is open."""
    from rnnlab.ops import Primitives, ops_on, unchecked

    ops = ops_on("cpu")
    seconds: dict[str, float] = {}
    names = [name for name in vars(Primitives) if not name.startswith("_")]
    modules: list[Any] = [ops] if unchecked(ops) is ops else [ops, unchecked(ops)]
    originals = [(module, name, getattr(module, name)) for module in modules for name in names]
    inside = False

    def timed(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal inside
            if inside:  # the primitive that calls this one is timed
                return function(*args, **kwargs)
            inside, start = True, perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                inside = False
                seconds[name] = seconds.get(name, 0.0) + perf_counter() - start

        return call

    for module, name, original in originals:
        if callable(original):
            setattr(module, name, timed(name, original))
    try:
        yield seconds
    finally:
        for module, name, original in originals:
            setattr(module, name, original)
