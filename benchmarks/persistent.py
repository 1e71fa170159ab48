"""``python -m benchmarks persistent``: the sizes at which an LSTM is faster in one launch than step by step.

It measures a forward and a backward on a GPU for each number of rows N and of hidden units H. A cell of the
table has two ratios: the time step by step divided by the time of one launch, first with barriers
(RNNLAB_PERSISTENT=grid), then with whole sequences in a block (RNNLAB_PERSISTENT=block). Above 1, one launch
is faster; "-" means that the weight does not fit. All are CUDA graphs, so that the host's time does not
count; without graphs, one launch gains more. Sequences have 50 steps, or those of ``--steps``, and inputs of
H numbers. ``FASTER`` and ``FASTER_IN_BLOCKS`` of ``rnnlab.ops.cuda.persistent`` hold the sizes at which one
launch was faster.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from statistics import median

from benchmarks import commands, gpu, table
from benchmarks.lstm import Sizes, prepare
from rnnlab.cli.arguments import positive_integer

STEPS = 50
ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
UNITS = (128, 256, 384, 512, 640, 768, 896, 1024, 1280)
WAYS = {"step by step": "", "barriers": "grid", "blocks": "block"}  # and the values of RNNLAB_PERSISTENT


def main(arguments: Sequence[str]) -> int:
    """Measure and print the table."""
    parser = commands.parser_of("persistent", __doc__)
    parser.add_argument("--rows", type=positive_integer, nargs="+", default=ROWS, help="values of N")
    parser.add_argument("--units", type=positive_integer, nargs="+", default=UNITS, help="values of H")
    parser.add_argument(
        "--steps", type=positive_integer, default=STEPS, help=f"steps of a sequence ({STEPS})"
    )
    parser.add_argument(
        "--held",
        type=positive_integer,
        nargs="+",
        default=(None,),
        metavar="K",
        help="rows of the weight that a thread of a block with one sequence has in registers (float32); with "
        "several values, the other ways are measured once; with at most 64 units, 16 rows are all",
    )
    parser.add_argument("--rounds", type=positive_integer, default=3, help="turns of each way (3)")
    commands.add_outputs(parser, "the milliseconds")
    options = commands.parse(parser, arguments)
    if lacking := gpu.no_device():
        print(f"python -m benchmarks persistent: {lacking}", file=sys.stderr)
        return 2
    from rnnlab import ops
    from rnnlab.ops.cuda import whole_sequences

    print(f"rnnlab on {ops.describe_gpu()}", flush=True)
    columns = "H", *(f"N={N}" for N in options.rows)
    widths = (8, *(11 for _ in options.rows))
    print(table.head("H", markdown=options.markdown, columns=columns, widths=widths), flush=True)
    measured = []
    for H in options.units:
        found: list[dict[str, float | None]] = [{} for _ in options.rows]
        for held in options.held:
            if held is not None:
                whole_sequences.HELD[4][1] = held
                whole_sequences.whole_layout_on.cache_clear()
            for N, times in zip(options.rows, found, strict=True):
                times |= measure(N, options.steps, H, options.rounds, ["blocks"] if times else WAYS)
                measured.append({"N": N, "H": H, **({"held": held} if held else {}), **times})
                commands.write_json(options, measured)  # each time, because the command may be ended
            cells = [f"{H}, {held}" if held else str(H), *map(_cell, found)]
            print(table.line(cells, markdown=options.markdown, widths=widths), flush=True)
    return 0


def measure(N: int, T: int, H: int, rounds: int, names: Iterable[str] = WAYS) -> dict[str, float | None]:
    """The milliseconds of some ways, None where the weight does not fit."""
    ways = {name: WAYS[name] for name in names if _fits(N, H, WAYS[name])}
    works = [prepare(f"rnnlab graphs {way}", Sizes(N, T, H, H), "gpu") for way in ways.values()]
    times = [[gpu.our_milliseconds(work) for work in works] for _ in range(rounds)]
    typical = dict(zip(ways, map(median, zip(*times, strict=True)), strict=True))
    return {name: typical.get(name) for name in names}


def _cell(times: dict[str, float | None]) -> str:
    apart, *others = times.values()
    assert apart is not None
    return " ".join("-" if other is None else f"{apart / other:.2f}" for other in others)


def _fits(N: int, H: int, way: str) -> bool:
    """Whether both directions fit into one launch."""
    from rnnlab.ops.cuda.persistent import layout_on
    from rnnlab.ops.cuda.whole_sequences import whole_layout_on

    layouts = {"grid": layout_on, "block": whole_layout_on}
    return not way or all(layouts[way](0, N, H, 4, backward) is not None for backward in (False, True))
