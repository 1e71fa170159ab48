"""Compiled update rules, sums and clipping against the reference."""

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("threadpoolctl")

from rnnlab.ops import numba as numba_ops

from ..cases import EXPLODED, RULES, assert_scaled_first
from .compare import assert_same, assert_same_arguments, every_dtype, strided


@pytest.mark.parametrize("name", [*RULES, "clip_values", "decay_weights", "flush_subnormals", "move_towards"])
def test_a_kernel_has_the_arguments_of_the_reference(name):
    assert_same_arguments(name)


@pytest.mark.usefixtures("lenient")
@every_dtype
@pytest.mark.parametrize("size", [1, 1000, 100_003])
@pytest.mark.parametrize("scale", [1.0, 0.01])
@pytest.mark.parametrize("name", RULES)
def test_update_rules(name, size, scale, dtype, normal):
    slots, options = RULES[name]
    arrays = [normal(size), normal(size), *(abs(normal(size)) for _ in range(slots))]
    assert_same(name, arrays, {"learning_rate": 0.1, "scale": scale, **options})
    if size == 1000:
        assert_same(name, arrays, {"learning_rate": 0.1, "scale": scale, **options}, view=strided)


@pytest.mark.parametrize("largest", EXPLODED)
@pytest.mark.parametrize("name", RULES)
def test_an_exploded_gradient_is_scaled_first(name, largest):
    assert_scaled_first(numba_ops, name, largest)


@every_dtype
@pytest.mark.parametrize("size", [0, 1, 70_001])
def test_clipping_flushing_and_sums(size, dtype, normal):
    x = normal(size)
    assert_same("clip_values", [x, 0.5])
    assert_same("flush_subnormals", [x * np.finfo(dtype).tiny])
    assert_same("decay_weights", [x], {"rate": 0.01})
    assert_same("move_towards", [x, normal(size)], {"rate": 0.01})
    assert numba_ops.sum_of_squares(x) == pytest.approx(float((x.astype(float) ** 2).sum()), rel=1e-6)
    assert numba_ops.sum_of_squares(x) == numba_ops.sum_of_squares(x.copy())


@every_dtype
@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_squares_are_summed_in_double_precision(size, dtype):
    x = np.full(10, size, dtype)
    assert numba_ops.sum_of_squares(x) == pytest.approx(10 * float(x[0]) ** 2, rel=1e-12)


@every_dtype
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_and_infinity_propagate(bad, dtype, normal):
    x = normal(50_000)
    x[33_333] = bad
    assert not np.isfinite(numba_ops.sum_of_squares(x))
    assert_same("clip_values", [x, 0.5])
