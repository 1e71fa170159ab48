"""``python -m benchmarks precision``: the speed and the error of products on a GPU, in each precision.

For each product (M, K) (K, N) of normally distributed numbers it prints the microseconds of one product
within a CUDA graph, the operations per second, and the root mean square of the error relative to that of the
exact product, which is computed in float64. The weight is not prepacked: with "tf32x3" each product splits
both factors.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any, NamedTuple, get_args
from unittest import mock

import numpy as np

from benchmarks import commands, gpu, table
from rnnlab.cli.arguments import positive_integer
from rnnlab.options import MatmulName

Array = Any
SIZES = (
    (2048, 10516, 512),
    (1344, 2541, 512),
    (512, 10516, 2048),
    (1344, 2048, 768),
    (5000, 2048, 512),
    (16384, 4096, 2048),
)
PRECISIONS: tuple[MatmulName, ...] = get_args(MatmulName)
_IN_A_GRAPH = 10  # products, so that the launch of the graph does not count


class Measured(NamedTuple):
    """A row of the table."""

    M: int
    N: int
    K: int
    precision: str
    microseconds: float
    error: float

    def cells(self) -> list[str]:
        """The texts of the columns."""
        rate = 2e-6 * self.M * self.N * self.K / self.microseconds
        sizes = f"M={self.M} N={self.N} K={self.K}"
        return [sizes, self.precision, f"{self.microseconds:.1f}", f"{rate:.1f}", f"{self.error:.2e}"]


def main(arguments: Sequence[str]) -> int:
    """Measure and print the table."""
    parser = commands.parser_of("precision", __doc__)
    parser.add_argument(
        "--sizes",
        type=positive_integer,
        nargs=3,
        action="append",
        metavar=("M", "N", "K"),
        help="sizes of a product; repeat the option for several products",
    )
    parser.add_argument(
        "--terms",
        type=positive_integer,
        nargs="+",
        default=(),
        metavar="K",
        help="also measure tf32x3 with sums in parts of K terms",
    )
    parser.add_argument("--rounds", type=positive_integer, default=3, help="turns of each precision (3)")
    commands.add_outputs(parser, "the table")
    options = commands.parse(parser, arguments)
    if lacking := gpu.no_device():
        print(f"python -m benchmarks precision: {lacking}", file=sys.stderr)
        return 2
    from rnnlab import ops

    print(f"rnnlab on {ops.describe_gpu()}", flush=True)
    columns, widths = ("product", "factors", "us", "TFLOP/s", "error"), (32, 14, 12, 10, 10)
    print(table.head("product", markdown=options.markdown, columns=columns, widths=widths), flush=True)
    measured = []
    for M, N, K in options.sizes or SIZES:
        for row in measure(M, N, K, options.rounds, options.terms):
            print(table.line(row.cells(), markdown=options.markdown, widths=widths), flush=True)
            measured.append(row._asdict())
        commands.write_json(options, measured)  # each time, because the command may be ended
    return 0


def measure(M: int, N: int, K: int, rounds: int, terms: Sequence[int] = ()) -> list[Measured]:
    """The product in each precision, in turns, and in tf32x3 with sums in parts of each of ``terms``."""
    from rnnlab.ops import ops_on
    from rnnlab.ops.cuda import factors

    ops, rng = ops_on("gpu"), np.random.default_rng(0)
    x, w = (ops.asarray(rng.standard_normal(shape, np.float32)) for shape in ((M, K), (K, N)))
    exact = ops.asnumpy(ops.matmul(x.astype(np.float64), w.astype(np.float64)))
    works, errors = {}, {}
    ways = {name: (name, factors.TERMS) for name in PRECISIONS}
    ways |= {f"tf32x3, {most}": ("tf32x3", most) for most in terms}
    for name, (precision, most) in ways.items():
        with mock.patch.object(factors, "TERMS", most):
            works[name], out = _products(ops, x, w, precision)
        works[name]()
        errors[name] = float(np.sqrt(np.mean((ops.asnumpy(out) - exact) ** 2) / np.mean(exact * exact)))
    times = [{name: gpu.our_milliseconds(work) for name, work in works.items()} for _ in range(rounds)]
    return [
        Measured(M, N, K, name, 1000 / _IN_A_GRAPH * median(each[name] for each in times), errors[name])
        for name in ways
    ]


def _products(ops: Any, x: Array, w: Array, precision: MatmulName) -> tuple[Callable[[], object], Array]:
    """Several products as one launch, and their output array."""
    from rnnlab.ops.precision import products_in

    out = ops.empty((x.shape[0], w.shape[1]), np.float32)

    def work() -> None:
        for _ in range(_IN_A_GRAPH):
            ops.matmul_into(x, w, out)

    with products_in(precision):  # a graph keeps the precision of its capture
        return gpu.as_graph(work), out
