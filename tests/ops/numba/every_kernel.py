"""A script: all kernels against NumPy's primitives, and a checksum of each result.

    RNNLAB_NUM_THREADS=3 python -m tests.ops.numba.every_kernel [products | serial]

All kernels run on all threads, however small the arrays are, or with "serial" on one. The script fails if a
number differs, or if a kernel has not run in several parts. Processes print the same, whatever their number
of threads.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable
from contextlib import nullcontext
from itertools import product

import numpy as np

from rnnlab.ops import numba as numba_ops
from rnnlab.ops import numpy as numpy_ops
from rnnlab.ops.arguments import PRIMITIVES
from rnnlab.ops.numba import bfloat16, kernel, products, steps
from rnnlab.ops.numpy.bfloat16 import rounded_to_bfloat16
from rnnlab.ops.precision import products_in

from ..cases import GATES, SCRATCH, named, run_regularised, step_masks
from ..chunk_cases import CELLS, Chunk
from ..declared import call, made

SMALL = steps.SMALL
PRODUCTS = [
    (600, 700, 900), (601, 5, 33), (3, 700, 40), (40, 700, 3), (1, 999, 990), (257, 1100, 97), (4, 600, 9),
]  # fmt: skip
SIZES = [
    {},
    {
        "n": 67,
        "H": 37,
        "P": 70_001,
        "M": 301,
        "V": 53,
        "W": 130,
        "L": 11,
        "A": 40,
        "C": 33,
        "R": 800,
        "K": 60,
    },
    {"K": 3},
]


def check_products(dtype: type, as_factor: Callable[[np.ndarray], np.ndarray] = np.asarray) -> None:
    """x w, x w + b and out + x w: single, prepacked and of transposed arrays."""
    rng = np.random.default_rng(0)
    for n, K, G in PRODUCTS:
        x, b = rng.standard_normal((n, K)).astype(dtype), rng.standard_normal(G).astype(dtype)
        wide = rng.standard_normal((K, G)).astype(dtype)
        for x_, w in ((x, wide), (x.T.copy().T, wide), (x, wide.T.copy().T)):
            product, out = np.matmul(as_factor(x), as_factor(wide)), np.empty((n, G), dtype)
            for weight in (w, products.prepacked(w)):
                products.matmul_into(x_, weight, out)
                print_checksum("matmul_into", out)
                np.testing.assert_allclose(out, product, rtol=0, atol=1e-3, err_msg=f"{n, K, G}")
                products.matmul_add(x_, weight, out)
                np.testing.assert_allclose(out, 2 * product, rtol=0, atol=1e-3, err_msg=f"{n, K, G}")
                products.affine_into(x_, weight, b, out)
                np.testing.assert_allclose(out, product + b, rtol=0, atol=1e-3, err_msg=f"{n, K, G}")


def check_rounded_products() -> None:
    """The same with factors in bfloat16, if they can be multiplied here."""
    if not bfloat16.missing():
        with products_in("bfloat16"):
            check_products(np.float32, rounded_to_bfloat16)


def check_steps(cell: str) -> None:
    """All steps of a cell by one kernel beside steps one by one, in each precision."""
    regularisation = {"zoneout_h": 0.2, "recurrent_dropout": 0.4}
    for options, matmul, small in product(({}, regularisation), ("float32", "bfloat16"), (SMALL, 0)):
        if matmul == "bfloat16" and bfloat16.missing():
            continue
        if cell != "lstm" and not small:  # several threads run these one by one
            continue
        rng = np.random.default_rng(0)
        chunk = Chunk(cell, (45, 45, 33, 17, 3), 40, np.float32, rng, earlier=1, regularisation=options)
        steps.SMALL = small
        for narrow in (False, True):
            with products_in(matmul):
                found, expected = (chunk.run(numba_ops, at_once=way, narrow=narrow) for way in (True, False))
            for name, array in found.items():
                what = f"{cell}, {options}, {matmul} steps, narrow: {narrow}: {name}"
                print_checksum(what, array)
                error = abs(array - expected[name]).max()
                assert error < (1e-5 if matmul == "float32" else 0.02), f"{what}: {error}"


def print_checksum(what: str, array) -> None:
    """Print what tells apart results that differ in one bit."""
    print(what, zlib.crc32(np.ascontiguousarray(array)))


def assert_close(actual, expected, what: str) -> None:
    """The largest difference is small beside the largest number."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    print_checksum(what, actual)
    assert actual.shape == expected.shape, what
    assert actual.dtype == expected.dtype, what
    if actual.size:
        error = abs(actual - expected).max() / max(1, abs(expected).max())
        assert error < 1e-4, f"{what}: {error}"


def check_primitives(dtype: type) -> None:
    """Every declared primitive, and the regularised steps of every cell."""
    for name, declaration in PRIMITIVES.items():
        if named(numba_ops, name) is named(numpy_ops, name):
            continue
        for sizes in SIZES:
            results = []
            for ops in (numba_ops, numpy_ops):
                arrays = made(name, np.random.default_rng(1), dtype, sizes)
                out = call(ops, name, arrays)
                names = [each.name for each in declaration.arguments]
                if name in SCRATCH:
                    del arrays[names[SCRATCH[name]]]
                results.append([*arrays.values(), *(out if isinstance(out, tuple) else (out,))])
            for actual, expected in zip(*results, strict=True):
                if expected is not None:
                    assert_close(actual, expected, name)
    for cell in GATES:
        for masks in step_masks(cell):
            masks = masks._replace(seeds=[5, 2**63 - 1, 7], start=12345)
            actual, expected = (
                run_regularised(ops, cell, 33, 17, masks, np.random.default_rng(5), dtype)
                for ops in (numba_ops, numpy_ops)
            )
            for name, array in actual.items():
                assert_close(array, expected[name], f"{cell}: {name}")


def recorded(run: Callable[..., None]) -> Callable[..., None]:
    """``Kernel.run``, which notes the kernels that run in several parts."""

    def run_and_note(self: kernel.Kernel, parts: int, *arguments) -> None:
        run(self, parts, *arguments)
        if parts > 1:
            SHARED.add(self)

    return run_and_note


SHARED: set[kernel.Kernel] = set()


if __name__ == "__main__":
    products._library = lambda: None
    kernel.Kernel.run = recorded(kernel.Kernel.run)  # type: ignore[method-assign]
    serial = sys.argv[1:] == ["serial"]
    with nullcontext() if serial else kernel.always_parallel():
        check_products(np.float32)
        check_rounded_products()
        if sys.argv[1:] != ["products"]:
            check_primitives(np.float32)
            for cell in CELLS:
                check_steps(cell)
            left = [each.function.__name__ for each in kernel._KERNELS if each.dtypes and each not in SHARED]
            assert serial or kernel.threads() == 1 or not left, left
