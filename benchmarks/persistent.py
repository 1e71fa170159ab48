"""``python -m benchmarks persistent``: where an LSTM is faster in one launch than step by step, on a GPU.

For each number of rows N and of hidden units H it prints the time of forward and backward step by step over
that in one launch: above 1, one launch is faster. Both are CUDA graphs, so that the host's time does not
count; without graphs, one launch gains more. Sequences have 50 steps, and inputs of as many numbers as there
are hidden units. ``rnnlab.ops.cuda.persistent.FASTER`` has what was measured.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from benchmarks import gpu, table
from benchmarks.lstm import Sizes, prepare
from rnnlab.cli.arguments import check_outputs, positive_integer

STEPS = 50
ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
UNITS = (128, 256, 384, 512, 640, 768, 896, 1024, 1280)
_SIDES = ("rnnlab graphs", "rnnlab graphs persistent")


def main(arguments: Sequence[str]) -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks persistent",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rows", type=positive_integer, nargs="+", default=ROWS, help="values of N")
    parser.add_argument("--units", type=positive_integer, nargs="+", default=UNITS, help="values of H")
    parser.add_argument("--rounds", type=positive_integer, default=3, help="turns of each way (3)")
    parser.add_argument("--markdown", action="store_true", help="print the table in Markdown")
    parser.add_argument("--json", metavar="FILE", help="write the milliseconds")
    options = parser.parse_args(arguments)
    try:
        check_outputs(options, "json")
    except OSError as error:
        parser.error(str(error))
    if lacking := gpu.no_device():
        print(f"python -m benchmarks persistent: {lacking}", file=sys.stderr)
        return 2
    from rnnlab import ops

    print(f"rnnlab on {ops.describe_gpu()}", flush=True)
    columns = "H", *(f"N={N}" for N in options.rows)
    widths = (8, *(8 for _ in options.rows))
    print(table.head("H", markdown=options.markdown, columns=columns, widths=widths), flush=True)
    measured = []
    for H in options.units:
        found = [measure(N, H, options.rounds) for N in options.rows]
        cells = [str(H), *("" if fused is None else f"{apart / fused:.2f}" for apart, fused in found)]
        print(table.line(cells, markdown=options.markdown, widths=widths), flush=True)
        measured += [
            {"N": N, "H": H, "step by step": apart, "one launch": fused}
            for N, (apart, fused) in zip(options.rows, found, strict=True)
        ]
    if options.json:
        Path(options.json).write_text(json.dumps(measured, indent=1) + "\n")
    return 0


def measure(N: int, H: int, rounds: int) -> tuple[float, float | None]:
    """The milliseconds step by step, and in one launch, if the weight fits."""
    works = [prepare(side, Sizes(N, STEPS, H, H), "gpu") for side in _SIDES[: 1 + _fits(N, H)]]
    times = [[gpu.our_milliseconds(work) for work in works] for _ in range(rounds)]
    typical = [median(each) for each in zip(*times, strict=True)]
    return typical[0], typical[1] if len(typical) > 1 else None


def _fits(N: int, H: int) -> bool:
    """Whether both directions fit into one launch."""
    from rnnlab.ops.cuda.persistent import layout_on

    return all(layout_on(0, N, H, 4, backward) is not None for backward in (False, True))
