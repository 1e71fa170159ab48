"""``python -m benchmarks [NAME ...]``: rnnlab and PyTorch side by side.

Each side runs in a process of its own with the same number of threads; the sides take turns, round by round,
so that a slow period of the machine affects both. The ratio is PyTorch's minimum over the rounds divided by
rnnlab's: above 1, rnnlab needs less. Where the PyTorch side can be written in several ways, the fastest
counts.

With ``--device gpu`` both sides use the same GPU, also in turns, and the ratio is that of the medians.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import sys
from collections.abc import Callable
from importlib.metadata import version
from types import ModuleType
from typing import Any

from benchmarks import compare, gpu, table
from benchmarks.commands import add_outputs, parse, parser_of, write_json
from benchmarks.gpu import Plan
from benchmarks.table import Row
from benchmarks.turns import Result, measure, measure_on_gpu, processor, use_threads
from rnnlab.cli.arguments import positive_integer

SUITES = (
    "products",
    "lstm",
    "cells",
    "small",
    "captioning",
    "stacked",
    "language",
    "plain_numpy",
    "decoding",
    "attention",
    "lstm_bfloat16",
    "cells_bfloat16",
    "captioning_bfloat16",
    "attention_bfloat16",
    "translation",
    "attentive_decoding",
    "target_attention",
    "regularisation",
    "arnet",
    "review",
    "pmnist",
    "latency",
    "memory",
    "scaling",
    "distributed",
)
# Commands with options of their own; most have no sides.
ALONE = ("beyond_memory", "breakdown", "grading", "kernels", "lazy", "persistent", "precision")
GPU_SUITES = ("lstm", "captioning", "attention", "arnet", "decoding", "review", "pmnist")


def main(arguments: list[str] | None = None) -> int:
    """Run the suites that are named, or all."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments and arguments[0] in ALONE:
        return importlib.import_module(f"benchmarks.{arguments[0]}").main(arguments[1:])
    parser = parser_of("", __doc__)
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"some of {', '.join(SUITES)}; all if left out; or one of {', '.join(ALONE)} with its options",
    )
    parser.add_argument(
        "--device", choices=("cpu", "gpu"), default="cpu", help=f"gpu: {', '.join(GPU_SUITES)} alone"
    )
    parser.add_argument(
        "--rounds", type=positive_integer, default=10, help="turns of each side (10; fewer in slow suites)"
    )
    parser.add_argument(
        "--threads",
        type=positive_integer,
        default=os.cpu_count(),
        help="threads of each side (default: one for each processor)",
    )
    add_outputs(parser, "the table and all measurements")
    parser.add_argument(
        "--compare", metavar="OLD.json", help="print the changes since --json wrote this file"
    )
    options = parse(parser, arguments)
    for name in options.names:
        if name in ALONE:
            parser.error(f"{name} is a command of its own: python -m benchmarks {name} --help")
        if name not in SUITES:
            parser.error(f"NAME is {name!r}, expected some of {', '.join(SUITES)}")
        if options.device == "gpu" and name not in GPU_SUITES:
            parser.error(f"{name} is not for a GPU: with --device gpu, some of {', '.join(GPU_SUITES)}")
    try:
        before = None if options.compare is None else compare.read(options.compare)
    except ValueError as error:
        parser.error(f"--compare: {error}")
    use_threads(options.threads)
    if options.device == "gpu" and (lacking := gpu.lacking()):
        print(f"python -m benchmarks: {lacking}", file=sys.stderr)
        return 2
    if importlib.util.find_spec("torch") is None:
        print('python -m benchmarks: PyTorch is not installed: pip install -e ".[bench]"', file=sys.stderr)
        return 2
    about = _about(options)
    print(about, flush=True)
    rows: list[Row] = []
    results: list[Result] = []
    for name in options.names or (GPU_SUITES if options.device == "gpu" else SUITES):
        suite = importlib.import_module(f"benchmarks.{name}")
        if lacking := getattr(suite, "lacking", lambda: None)():
            print(f"\n{name} {lacking}", flush=True)
            continue
        print(table.head(name, markdown=options.markdown), flush=True)
        _run(name, suite, options, rows, results, lambda: write_json(options, _report(about, rows, results)))
    report = _report(about, rows, results)
    write_json(options, report)
    print(table.summary(rows, markdown=options.markdown))
    if before is not None:
        print(compare.changes(before, report, markdown=options.markdown))
    return 0


def _report(about: str, rows: list[Row], results: list[Result]) -> dict[str, Any]:
    return {
        "about": about,
        "rows": [row.as_dict() for row in rows],
        "results": [result._asdict() for result in results],
    }


def _run(
    name: str,
    suite: ModuleType,
    options: argparse.Namespace,
    rows: list[Row],
    results: list[Result],
    write: Callable[[], None],
) -> None:
    """Measure a suite, and append its rows and results; print and write each as soon as it is measured."""

    def add(new: list[Row]) -> None:
        for row in new:
            print(table.line(row.cells(), markdown=options.markdown), flush=True)
        rows.extend(new)

    on_gpu = options.device == "gpu"
    plan = suite.GPU if on_gpu else Plan(suite.CASES, suite.SIDES, suite.TARGETS)
    cases = [(case, plan.sides_of(case)) for case in plan.targets]
    first_result, first = len(results), len(rows)
    measured = (
        measure_on_gpu(name, cases, rounds=options.rounds)
        if on_gpu
        else (measure(name, case, sides, rounds=options.rounds) for case, sides in cases)
    )
    for result in measured:
        results.append(result)
        add(table.rows(result, plan.targets[result.case]))
        write()  # each time, because the command may be ended
    if on_gpu:
        return
    if hasattr(suite, "MEAN_TARGETS"):
        add(table.means(rows[first:], suite.MEAN_TARGETS))
    if hasattr(suite, "conclude"):
        add(suite.conclude(results[first_result:]))


def _about(options: argparse.Namespace) -> str:
    from rnnlab import ops

    threads = f"{options.threads} thread{'s' * (options.threads > 1)}"
    machine = f"{processor()}, {threads}, {options.rounds} rounds"
    if options.device == "gpu":
        return f"{machine}; {gpu.about()}"
    return f"{machine}; PyTorch {version('torch')}; rnnlab on {ops.describe()}"


if __name__ == "__main__":
    sys.exit(main())
