"""``python -m benchmarks kernels SUITE ...``: the time of each GPU kernel in the work of both libraries.

Each side of each case works in a process of its own, one at a time, under PyTorch's profiler. The profiler
sees the kernels of both libraries, also those within CUDA graphs. A table has the kernels of one call of the
work. "all kernels" is the sum of their times. "one call" is the time of a call without the profiler: the
difference is the time in which the GPU waits for the host, or one kernel for another.
"""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from typing import Any, NamedTuple

from benchmarks import commands, gpu, table
from rnnlab.cli.arguments import positive_integer

_CALLS = 10  # of the work, under the profiler
_AT_ONCE = 14  # processes; while one works, the others start or wait
_PROFILED = "CUDA", "self_device_time_total"
_COLUMNS, _WIDTHS = ("us", "share", "launches", "kernel"), (10, 8, 10, 70)
_lock: Any = None  # of the process that works


class Kernel(NamedTuple):
    """The launches of one kernel in a call of the work."""

    name: str
    launches: float
    microseconds: float


class Profile(NamedTuple):
    """The kernels of a side, the longest first, and the milliseconds of a call."""

    suite: str
    case: str
    side: str
    milliseconds: float
    kernels: list[Kernel]


def main(arguments: Sequence[str]) -> int:
    """Print a table for each side."""
    parser = commands.parser_of("kernels", __doc__)
    parser.add_argument("suites", nargs="+", metavar="SUITE", help="suites with cases for a GPU")
    parser.add_argument("--case", default="", metavar="TEXT", help="only cases whose names contain this")
    parser.add_argument("--side", default="", metavar="TEXT", help="only sides whose names contain this")
    parser.add_argument("--most", type=positive_integer, default=12, help="rows of a table (12)")
    commands.add_outputs(parser, "all kernels")
    options = commands.parse(parser, arguments)
    sides = []
    for name in options.suites:
        try:
            plan = import_module(f"benchmarks.{name}").GPU
        except (ModuleNotFoundError, AttributeError):
            parser.error(f"SUITE is {name!r}, which has no cases for a GPU")
        sides += [(name, case, side) for case in plan.targets for side in plan.sides_of(case)]
    sides = [each for each in sides if options.case in each[1] and options.side in each[2]]
    if not sides:
        parser.error("no case and side of these suites has these names")
    if lacking := gpu.lacking():
        print(f"python -m benchmarks kernels: {lacking}", file=sys.stderr)
        return 2
    print(gpu.about(), flush=True)
    profiles = []
    for profile in measure(sides):
        print("\n".join(_lines(profile, options.most, options.markdown)), flush=True)
        profiles.append(profile._asdict() | {"kernels": [kernel._asdict() for kernel in profile.kernels]})
        commands.write_json(options, profiles)  # each time, because the command may be ended
    return 0


def measure(
    sides: Sequence[tuple[str, str, str]], profile: Callable[[str, str, str], Any] | None = None
) -> Iterator[Any]:
    """What ``profile`` returns for each (suite, case, side), in a process of its own."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
        min(len(sides), _AT_ONCE), context, _use_lock, (context.Lock(),), max_tasks_per_child=1
    ) as processes:
        yield from processes.map(profile or profile_side, *zip(*sides, strict=True))


def profile_side(name: str, case: str, side: str) -> Profile:
    """The profile of a side, in this process."""
    suite = import_module(f"benchmarks.{name}")
    work, _ = gpu.begin(suite, side, case)
    wait = gpu.waiter(side)
    for _ in range(getattr(suite, "WARM_UP", 3)):
        work()
    with _lock:
        return Profile(name, case, side, gpu.milliseconds(work, wait), kernels_of(work, wait))


def kernels_of(work: Callable[[], object], wait: Callable[[], object]) -> list[Kernel]:
    """The kernels of one call, the longest first."""
    from torch.profiler import ProfilerActivity, profile

    activity, time = _PROFILED
    for calls in (1, _CALLS):  # the first profile takes longer, and may lack kernels
        wait()
        with profile(activities=[getattr(ProfilerActivity, activity)]) as profiler:
            for _ in range(calls):
                work()
            wait()
    found = [
        Kernel(each.key, each.count / _CALLS, getattr(each, time) / _CALLS)
        for each in profiler.key_averages()
        if getattr(each, time)
    ]
    return sorted(found, key=lambda kernel: -kernel.microseconds)


def _use_lock(lock: Any) -> None:
    global _lock
    _lock = lock


def _lines(profile: Profile, most: int, markdown: bool) -> list[str]:
    total = sum(kernel.microseconds for kernel in profile.kernels)
    title = f"{profile.suite}: {profile.case}, {profile.side}"
    if markdown:
        head = table.head(title, markdown=True, columns=_COLUMNS)
    else:
        head = f"\n{title}\n{table.line(_COLUMNS, markdown=False, widths=_WIDTHS)}"
    rows = [
        (f"{time:.1f}", f"{time / total:.0%}", f"{launches:g}", name[: _WIDTHS[-1]])
        for name, launches, time in profile.kernels[:most]
    ]
    launches = sum(kernel.launches for kernel in profile.kernels)
    rows.append((f"{total:.1f}", "", f"{launches:g}", "all kernels"))
    rows.append((f"{1000 * profile.milliseconds:.1f}", "", "", "one call"))
    return [head, *(table.line(row, markdown=markdown, widths=_WIDTHS) for row in rows)]
