"""exp, tanh and the logistic function of the kernels: their errors, and that loops over them vectorise."""

import platform

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("threadpoolctl")

import numba

from rnnlab.ops.numba import cells, masks, math, optim, scores

from .compare import compiled

OPTIONS = {"fastmath": {"contract"}, "error_model": "numpy"}


def exp_of_all(x, out):
    for j in range(x.size):
        out[j] = math.exp(x[j])


def tanh_of_all(x, out):
    for j in range(x.size):
        out[j] = math.tanh(x[j])


def sigmoid_of_all(x, out):
    for j in range(x.size):
        out[j] = math.sigmoid(x[j])


def over(loop):
    """A function of an array, as a kernel applies it."""
    dispatcher = compiled(loop, **OPTIONS)

    def apply(x):
        out = np.empty_like(x)
        dispatcher(x, out)
        return out

    return apply


exp, tanh, sigmoid = map(over, (exp_of_all, tanh_of_all, sigmoid_of_all))


def logistic(x):
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-x.astype(np.longdouble)))


def every_float32():
    """Float32 numbers of every exponent and sign, NaN and infinity among them: one in 4093."""
    bits = np.arange(0, 2**32, 4093, dtype=np.uint64).astype(np.uint32)
    return np.concatenate([bits.view(np.float32), np.array([np.nan, np.inf, -np.inf, 0, -0.0], np.float32)])


def float64s(rng):
    sizes = 10.0 ** rng.uniform(-300, 3, 50_000) * rng.choice([-1, 1], 50_000)
    special = [np.nan, np.inf, -np.inf, 0.0, -0.0, 0.625, -0.625, 709.7, -708.3, 5e-324, 1e308, -1e308]
    return np.concatenate([rng.uniform(-20, 20, 50_000), rng.uniform(-700, 709, 50_000), sizes, special])


@pytest.mark.parametrize("sign", [1, -1])
def test_saturated_functions_are_exact(sign, rng):
    """A unit that is saturated has no gradient: 1 - tanh^2 and s (1 - s) are zero, as in float64."""
    for dtype, start in ((np.float32, 9.02), (np.float64, 20)):
        x = np.concatenate([[start], start * 10 ** rng.uniform(0, 30, 10_000), [np.inf]]).astype(dtype)
        np.testing.assert_array_equal(tanh(sign * x), dtype(sign))
        np.testing.assert_array_equal(sigmoid(2 * x), dtype(1))
        np.testing.assert_array_equal(sigmoid(-50 * x), dtype(0))
    x = rng.uniform(0, 12, 200_000).astype(np.float32)
    assert abs(tanh(sign * x)).max() <= 1


@pytest.mark.parametrize(
    ("function", "exact", "dtype", "error"),
    [
        (tanh, np.tanh, np.float32, 4e-7),
        (tanh, np.tanh, np.float64, 5e-16),
        (sigmoid, logistic, np.float32, 2e-7),
        (sigmoid, logistic, np.float64, 4e-16),
    ],
    ids=["tanh-float32", "tanh-float64", "sigmoid-float32", "sigmoid-float64"],
)
def test_relative_errors(function, exact, dtype, error, rng):
    """Of small results too: the gradient of a gate that is almost shut is as small as the gate."""
    if dtype == np.float64 and np.finfo(np.longdouble).eps > 1e-17:
        error *= 2  # the reference has errors of its own
    x = every_float32() if dtype == np.float32 else float64s(rng)
    with np.errstate(invalid="ignore"):
        y, expected = function(x), exact(x.astype(np.longdouble))
    np.testing.assert_array_equal(np.isnan(y), np.isnan(x))
    smallest = 1e-30 if function is tanh else 2 * np.finfo(dtype).tiny
    normal = abs(expected) > smallest
    assert (abs(y - expected)[normal] <= error * abs(expected)[normal]).all()
    assert (abs(y[abs(expected) <= smallest]) <= smallest).all()


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "error"), [(np.float32, 1.2e-7), (np.float64, 3e-16)])
def test_exp(dtype, error, rng):
    x = every_float32() if dtype == np.float32 else float64s(rng)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        y, expected = exp(x), np.exp(x.astype(np.longdouble))
        rounded = expected.astype(dtype)
    np.testing.assert_array_equal(np.isnan(y), np.isnan(x))
    np.testing.assert_array_equal(y == np.inf, rounded == np.inf)
    normal = np.isfinite(rounded) & (rounded > 2 * np.finfo(dtype).tiny)
    assert (abs(y[normal] - expected[normal]) <= error * expected[normal]).all()
    assert (y[rounded <= 2 * np.finfo(dtype).tiny] <= 2 * np.finfo(dtype).tiny).all()


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() != "x86_64", reason="looks for x86-64's instructions")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("kernel", "instructions"),
    [
        (cells.lstm_forward.fused, ("vdivp", "vmulp", "vfmadd")),
        (cells.lstm_backward.fused, ("vmulp", "vsubp")),
        (scores._softmax_cross_entropy, ("vmaxp", "vfmadd", "vaddp")),
        (masks.zoneout_forward.fused, ("vpsrld", "vpmulld")),
        (optim._adamw, ("vsqrtp", "vdivp", "vfmadd")),
    ],
    ids=["lstm_forward", "lstm_backward", "softmax_cross_entropy", "zoneout_forward", "adamw"],
)
def test_kernels_are_made_of_vector_instructions(kernel, instructions, dtype):
    from llvmlite import binding

    if not {"avx2", "fma"} <= {name for name, there in binding.get_host_cpu_features().items() if there}:
        pytest.skip("this processor has no AVX2")
    if "vpmulld" in instructions and dtype == "float64":
        pytest.skip("whether 32-bit masks of float64 are vectorised depends on LLVM's costs of a processor")
    # Not kernel.version: machine code that comes from the cache on disk has no assembly to look at.
    signature = f"(int64, int64, {kernel.signature.replace('T', dtype)})"
    compiled = numba.njit(signature, **OPTIONS)(kernel.function)
    assembly = compiled.inspect_asm(compiled.signatures[0])
    wide = [line for line in assembly.splitlines() if "%ymm" in line or "%zmm" in line]
    for instruction in instructions:
        assert any(instruction in line for line in wide), f"{instruction} of {dtype} is not vectorised"
