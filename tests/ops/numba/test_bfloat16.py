"""Products of factors that are rounded to bfloat16, by whatever instructions this processor has for them."""

import contextlib
import os
import pickle
import subprocess
import sys
import threading
import warnings
from itertools import product
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("threadpoolctl")

from rnnlab.ops.numba import bfloat16, products
from rnnlab.ops.numba.kernel import always_parallel
from rnnlab.ops.numba.products import affine, affine_into, matmul, matmul_add, matmul_into, prepacked
from rnnlab.ops.numpy.bfloat16 import rounded_to_bfloat16
from rnnlab.ops.precision import products_in

from .test_products import LAYOUTS, SIZES

ROOT = Path(__file__).parents[3]
MORE_SIZES = [
    (4, 4, 32),
    (16, 32, 64),
    (17, 33, 65),
    (32, 64, 128),
    (50, 31, 70),
    (5, 2100, 64),
    (97, 1030, 40),
]
bfloat16.PAYS = True  # in this process: tested also where float32 is faster
usable = pytest.mark.skipif(bool(bfloat16.missing()), reason=bfloat16.missing())


@pytest.fixture(autouse=True)
def in_bfloat16():
    with products_in("bfloat16"):
        yield


def assert_sums(actual, x, w, start=0.0):
    """The sums of the products of rounded factors, to what the order of a sum of float32 may change."""
    x, w = (rounded_to_bfloat16(np.ascontiguousarray(a)).astype(np.float64) for a in (x, w))
    most = abs(x) @ abs(w) + abs(start)
    assert actual.dtype == np.float32
    assert np.all(abs(actual - (start + x @ w)) <= 2.0**-22 * (4 + x.shape[1] ** 0.5) * most)


@usable
@pytest.mark.parametrize("parallel", [False, True], ids=["serial", "parallel"])
@pytest.mark.parametrize("sizes", SIZES + MORE_SIZES, ids=str)
def test_products_of_all_layouts(sizes, parallel, rng):
    n, K, G = sizes
    x, w, b = (rng.standard_normal(shape, np.float32) for shape in ((n, K), (K, G), (G,)))
    with always_parallel() if parallel else products_in("bfloat16"):
        for x_layout, w_layout in product(LAYOUTS.values(), repeat=2):
            x_, w_ = x_layout(x), w_layout(w)
            assert_sums(matmul(x_, w_), x, w)
            assert_sums(affine(x_, w_, b), x, w, b)
            for weights in (w_, prepacked(w_)):
                out = np.full((n, G), np.nan, np.float32)
                matmul_into(x_, weights, out)
                assert_sums(out, x, w)
                start = out.copy()
                matmul_add(x_, weights, out)
                assert_sums(out, x, w, start)
                affine_into(x_, weights, b, out)
                assert_sums(out, x, w, b)


@usable
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("sizes", [(4, 6, 5), (20, 40, 70), (40, 40, 64)], ids=str)
def test_results_of_all_layouts(sizes, layout, rng):
    n, K, G = sizes
    x, w, start = (rng.standard_normal(shape, np.float32) for shape in ((n, K), (K, G), (n, G)))
    for weights in (w, prepacked(w)):
        out = layout(start.copy())
        out[...] = 0
        beside = None if out.base is None else out.base.copy()
        out[...] = start
        matmul_add(x, weights, out)
        assert_sums(out, x, w, start)
        matmul_into(x, weights, out)
        assert_sums(out, x, w)
        if beside is not None:
            out[...] = 0
            np.testing.assert_array_equal(out.base, beside)


@usable
def test_numbers_that_are_not_finite(rng):
    x, w = rng.standard_normal((5, 40), np.float32), rng.standard_normal((40, 70), np.float32)
    x[1, 3], x[2, 4], x[3, 5] = np.nan, np.inf, np.finfo(np.float32).max  # rounded to infinity
    for weights in (w, prepacked(w)):
        out = np.full((5, 70), np.nan, np.float32)
        matmul_into(x, weights, out)
        assert np.isnan(out[1]).all()
        np.testing.assert_array_equal(out[2:4], np.sign(rounded_to_bfloat16(w)[4:6]) * np.inf)
        assert np.isfinite(out[[0, 4]]).all()


@usable
def test_rounding_is_to_nearest_even():
    """A product with the identity shows what the factors are rounded to."""
    bits = np.arange(0x3F800000, 0x3F800000 + 70 * 0x2000, 0x2000, dtype=np.uint32)[:, None] + np.array(
        [0, 0x7FFF, 0x8000, 0x8001], np.uint32
    )
    numbers = np.concatenate([bits.view(np.float32), -bits.view(np.float32)], axis=1)
    rows, unit = numbers.T.copy(), np.eye(70, dtype=np.float32)
    np.testing.assert_array_equal(matmul(rows, unit), rounded_to_bfloat16(rows))
    np.testing.assert_array_equal(
        matmul(unit, numbers @ np.eye(8, 40, dtype=np.float32))[:, :8], matmul(rows, unit).T
    )


@usable
def test_a_prepacked_weight_is_a_copy_and_stays_rounded(rng):
    x, w = rng.standard_normal((5, 40), np.float32), rng.standard_normal((40, 70), np.float32)
    weights, saved = prepacked(w), w.copy()
    w[...] = np.nan
    out = np.empty((5, 70), np.float32)
    with products_in("float32"):
        matmul_into(x, weights, out)
    assert_sums(out, x, saved)


def test_other_dtypes_are_not_rounded(rng):
    x, w = rng.standard_normal((5, 40)), rng.standard_normal((40, 70))
    np.testing.assert_allclose(matmul(x, w), x @ w, rtol=1e-12)
    assert not isinstance(prepacked(w), bfloat16.RoundedPanels)
    np.testing.assert_allclose(matmul(x[None], w[None]), (x @ w)[None], rtol=1e-12)


@usable
def test_products_of_several_matrices(rng):
    x, w = (rng.standard_normal(shape, np.float32) for shape in ((3, 5, 40), (3, 40, 7)))
    for actual, left, right in zip(matmul(x, w), x, w, strict=True):
        assert_sums(actual, left, right)


@usable
def test_arguments_that_do_not_fit():
    x, w, out = (np.ones(shape, np.float32) for shape in ((3, 4), (4, 60), (3, 60)))
    for weights in (w, prepacked(w)):
        with pytest.raises(ValueError, match=r"matmul_into: .*x"):
            matmul_into(np.ones((3, 5), np.float32), weights, out)
        with pytest.raises(TypeError, match="float64"):
            matmul_into(x, weights, out.astype(np.float64))
    square = np.ones((40, 40), np.float32)
    with pytest.raises(ValueError, match="overlaps"):
        matmul_into(square, np.ones((40, 40), np.float32), square)


@usable
def test_several_threads_at_once(rng):
    """Threads have tile registers and a precision of their own."""
    x, w = rng.standard_normal((70, 90), np.float32), rng.standard_normal((90, 130), np.float32)
    exact, failures = x @ w, []

    def work(matmul_of_thread):
        for _ in range(200):
            with products_in(matmul_of_thread):
                found = matmul(x, w)
            error = abs(found - exact).max()
            if not (1e-4 < error < 1 if matmul_of_thread == "bfloat16" else error < 1e-4):
                failures.append((matmul_of_thread, error))

    threads = [threading.Thread(target=work, args=(kind,)) for kind in ("bfloat16", "float32") * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


WITHOUT = """
from llvmlite import binding
features = dict(binding.get_host_cpu_features())
kept = {name: value and not name.startswith(%r) for name, value in features.items()}
binding.get_host_cpu_features = lambda kind=type(binding.get_host_cpu_features()): kind(kept)
"""


def run(script, *without, **environment):
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT % (without,) + script],
        env=os.environ | {"RNNLAB_MATMUL": "bfloat16"} | environment,
        capture_output=True,
        text=True,
        timeout=600,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_process_that_asks_for_bfloat16_uses_the_kernels():
    run(
        "import numpy as np\n"
        "from rnnlab import ops\n"
        "from rnnlab.ops.numba import bfloat16\n"
        "from rnnlab.ops.numpy.bfloat16 import rounded_to_bfloat16\n"
        "chosen = ops.ops_for(np.zeros(1))\n"
        "assert chosen.__name__ == 'rnnlab.ops.numba', ops.describe()\n"
        "x, w = np.random.default_rng(0).standard_normal((2, 40, 40), np.float32)\n"
        "as_read = (lambda x: x) if bfloat16.missing() else rounded_to_bfloat16\n"
        "np.testing.assert_allclose(chosen.matmul(x, w), as_read(x) @ as_read(w), rtol=0, atol=1e-5)"
    )


@usable
@pytest.mark.skipif(not bfloat16.AMX, reason="the other tests are without AMX")
def test_products_without_amx():
    run(
        "from tests.ops.numba import every_kernel, test_bfloat16\n"
        "assert not test_bfloat16.bfloat16.AMX and not test_bfloat16.bfloat16.missing()\n"
        "every_kernel.check_rounded_products()\n"
        "with every_kernel.kernel.always_parallel():\n"
        "    every_kernel.check_rounded_products()",
        "amx",
    )


@pytest.mark.slow
def test_a_processor_that_cannot_multiply_bfloat16():
    """It says so once, and products are those of float32."""
    run(
        "import warnings\n"
        "import numpy as np\n"
        "from rnnlab.ops.numba import products\n"
        "x, w = np.random.default_rng(0).standard_normal((2, 40, 40), np.float32)\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always')\n"
        "    found = [products.matmul(x, w) for _ in range(3)]\n"
        "(message,) = (str(each.message) for each in caught)\n"
        "reason = 'this processor has neither AMX nor AVX512-BF16'\n"
        "assert message == 'products are computed in float32, not bfloat16: ' + reason\n"
        "np.testing.assert_allclose(found[0], x @ w, rtol=0, atol=1e-5)",
        "amx",
        "avx512bf16",
    )


@pytest.mark.slow
def test_machine_code_for_another_processor():
    run(
        "from rnnlab.ops.numba import bfloat16\n"
        "assert bfloat16.missing() == 'NUMBA_CPU_NAME or NUMBA_CPU_FEATURES is set'\n"
        "assert not bfloat16.VERSIONS",
        NUMBA_CPU_NAME="generic",
    )


@usable
def test_a_prepacked_weight_is_not_pickled(rng):
    weights = prepacked(rng.standard_normal((40, 70), np.float32))
    with pytest.raises(TypeError, match="cannot be saved"):
        pickle.dumps(weights)


@usable
def test_machine_code_that_multiplies_wrongly(monkeypatch):
    monkeypatch.setattr(bfloat16, "rounded_to_bfloat16", lambda a: 2 * a)
    with pytest.raises(ImportError, match="delete the cache of compiled kernels"):
        bfloat16._usable.__wrapped__()


def uncached(monkeypatch):
    """Nothing is remembered of whether bfloat16 can be used."""
    for cached in (bfloat16.missing, bfloat16._usable):
        monkeypatch.setattr(bfloat16, cached.__name__, cached.__wrapped__)


@usable
@pytest.mark.parametrize("pays", [True, False])
def test_a_processor_that_multiplies_float32_faster(pays, monkeypatch, rng):
    uncached(monkeypatch)
    monkeypatch.setattr(bfloat16, "PAYS", pays)
    x, w = rng.standard_normal((2, 40, 40), np.float32)
    with contextlib.nullcontext() if pays else pytest.warns(RuntimeWarning, match="float32 is faster"):
        found = matmul(x, w)
    assert (abs(found - x @ w).max() < 1e-4) != pays
    assert (bfloat16.declined() == "") == pays


@pytest.mark.slow
def test_a_processor_of_intel_with_pairs_alone():
    """No AMX is shown, as in some virtual machines."""
    script = (
        "binding.get_host_cpu_name = lambda: %r\n"
        "from rnnlab.ops.numba import bfloat16\n"
        "assert not bfloat16.AMX and bfloat16.PAYS == %r, bfloat16.PAYS\n"
    )
    for name, pays in (("sapphirerapids", False), ("znver4", True)):
        run(script % (name, pays), "amx")


def test_a_system_that_does_not_permit_amx(monkeypatch):
    monkeypatch.setattr(bfloat16, "AMX", True)
    monkeypatch.setattr(bfloat16, "VERSIONS", "f")
    monkeypatch.setattr(bfloat16.amx, "permitted", lambda: False)
    uncached(monkeypatch)
    with pytest.warns(RuntimeWarning, match="the system does not let this process use AMX"):
        assert not bfloat16.rounds(np.dtype(np.float32))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not bfloat16.rounds(np.dtype(np.float64))


def test_the_choice_of_kernels():
    assert (products.bfloat16.VERSIONS == "") == ("processor" in bfloat16.missing())
