"""exp, tanh, the logistic function and the maximum of two numbers, written so that loops over them vectorise.

The compiler has vector instructions for sums, products, quotients, comparisons and shifts, but calls the
math library element by element. The functions are therefore written out here, without branches, as in Cephes
(Moshier 1989) and Eigen. Errors are at most

    ===========  ================  ================
    function     float32           float64
    ===========  ================  ================
    exp          relative 1.2e-7   relative 3e-16
    tanh         relative 4e-7     relative 5e-16
    sigmoid      relative 2e-7     relative 4e-16
    ===========  ================  ================

except that results of exp and sigmoid below twice the smallest normal number may be 0. In float32, tanh is
exactly +-1 beyond +-8, and sigmoid exactly 1 beyond 17, so that the gradients of such units are zero. NaN
gives NaN.
The functions are called inside kernels only.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

__all__ = ["exp", "maximum", "sigmoid", "tanh"]

_OPTIONS = {"fastmath": {"contract"}, "error_model": "numpy"}  # a b + c in one instruction; x / 0 is inf


def exp(x: Any) -> Any:
    """e^x."""
    raise NotImplementedError("for kernels only")


def tanh(x: Any) -> Any:
    """The hyperbolic tangent."""
    raise NotImplementedError("for kernels only")


def sigmoid(x: Any) -> Any:
    """1 / (1 + e^-x)."""
    raise NotImplementedError("for kernels only")


@intrinsic
def maximum(context: Any, a: Any, b: Any) -> Any:
    """The larger of two floating-point numbers, NaN if one is NaN; reductions by it vectorise."""

    def generate(_: Any, builder: ir.IRBuilder, signature: Any, arguments: list[Any]) -> Any:
        number = arguments[0].type
        of_two = ir.FunctionType(number, [number, number])
        return builder.call(builder.module.declare_intrinsic("llvm.maximum", [number], of_two), arguments)

    return a(a, b), generate


# 2 e^r for |r| <= ln(2) / 2, the highest power first: mpmath.chebyfit's polynomials, with relative errors of
# 2e-9 (float32) and 3e-18 (float64).
_TWICE_EXP_32 = 0.0027882217, 0.016750252, 0.0833327, 0.3333283, 1.0, 2.0, 2.0
_TWICE_EXP_64 = (
    *(5.0220075211927554e-08, 5.526527927808206e-07, 5.511448183715794e-06, 4.960297096465699e-05),
    *(0.00039682539780094226, 0.002777777790462955, 0.016666666666639202, 0.0833333333329762),
    *(0.3333333333333336, 1.0000000000000038, 2.0, 2.0),
)


def _exp(
    real: Any,
    integer: Any,
    mantissa: int,
    bias: int,
    ln2: tuple[float, float],
    limits: tuple[float, float],
    twice_exp: tuple[float, ...],
) -> Callable[[Any], Any]:
    """e^x = 2^(n - 1) 2 e^r with n the integer nearest to x / ln 2, so that |r| <= ln(2) / 2.

    Adding 1.5 2^mantissa to a number rounds it to an integer and leaves the integer in the lowest bits; a
    shift moves it to the exponent. ln 2 is split into two numbers, such that n times the first is exact.
    """
    first, *rest = map(real, twice_exp)
    further = tuple(rest)
    per_ln2, shift = real(1 / math.log(2)), real(1.5 * 2**mantissa)
    ln2_high, ln2_low = map(real, ln2)
    lowest, highest = map(real, limits)
    bits, offset = integer(mantissa), integer(bias - 1)  # for 2^(n - 1): 2^n is infinite where n is bias + 1

    def exp(x):
        x = lowest if x < lowest else x
        x = highest if x > highest else x
        shifted = x * per_ln2 + shift
        n = shifted - shift
        r = x - n * ln2_high - n * ln2_low
        polynomial = first
        for coefficient in further:
            polynomial = polynomial * r + coefficient
        power = real(integer((real(shifted).view(integer) + offset) << bits).view(real))
        return polynomial * power

    return exp


# Eigen's quotient is exactly 1 here, whether or not products and sums are contracted. Inputs are bounded
# rather than results, because selecting a result by the input would be a branch, which prevents
# vectorisation.
_BOUND = np.float32(7.963572025299072)


def _tanh32(x):
    """Eigen's quotient of polynomials; it is exactly +-1 at the bounds and therefore beyond them."""
    x = -_BOUND if x < -_BOUND else x
    x = _BOUND if x > _BOUND else x
    s = x * x
    p = s * np.float32(-2.76076847742355e-16) + np.float32(2.00018790482477e-13)
    p = s * p + np.float32(-8.60467152213735e-11)
    p = s * p + np.float32(5.12229709037114e-08)
    p = s * p + np.float32(1.48572235717979e-05)
    p = s * p + np.float32(6.37261928875436e-04)
    p = s * p + np.float32(4.89352455891786e-03)
    q = s * np.float32(1.19825839466702e-06) + np.float32(1.18534705686654e-04)
    q = s * q + np.float32(2.26843463243900e-03)
    q = s * q + np.float32(4.89352518554385e-03)
    return x * (p / q)


def _tanh64(x):
    """Cephes: x + x^3 P(x^2) / Q(x^2) for |x| < 0.625, else +-(1 - 2 / (e^2|x| + 1)), with one division."""
    s = x * x
    p = (-9.64399179425052238628e-1 * s - 9.92877231001918586564e1) * s - 1.61468768441708447952e3
    q = ((s + 1.12811678491632931402e2) * s + 2.23548839060100448583e3) * s + 4.84406305325125486048e3
    near = s < 0.625 * 0.625
    sign = 1.0 if x > 0.0 else -1.0
    numerator = x * s * p if near else -2.0 * sign
    denominator = q if near else exp(2.0 * abs(x)) + 1.0
    return (x if near else sign) + numerator / denominator


def _sigmoid(real: Any) -> Callable[[Any], Any]:
    one = real(1)

    def sigmoid(x):
        return one / (one + exp(-x))

    return sigmoid


_EXP = {
    types.float32: _exp(
        np.float32, np.int32, 23, 127, (0.693359375, -2.12194440e-4), (-87.5, 89.0), _TWICE_EXP_32
    ),
    types.float64: _exp(
        *(np.float64, np.int64, 52, 1023, (0.693145751953125, 1.42860682030941723212e-6), (-708.5, 710.0)),
        _TWICE_EXP_64,
    ),
}
_TANH = {types.float32: _tanh32, types.float64: _tanh64}
_SIGMOID = {types.float32: _sigmoid(np.float32), types.float64: _sigmoid(np.float64)}


@overload(exp, jit_options=_OPTIONS)  # type: ignore[arg-type]
def _choose_exp(x):
    return _EXP.get(x)


@overload(tanh, jit_options=_OPTIONS)  # type: ignore[arg-type]
def _choose_tanh(x):
    return _TANH.get(x)


@overload(sigmoid, jit_options=_OPTIONS)  # type: ignore[arg-type]
def _choose_sigmoid(x):
    return _SIGMOID.get(x)
