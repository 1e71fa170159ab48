"""Update rules, and sums and checks of a gradient, on CuPy against the reference."""

import numpy as np
import pytest

from ..cases import EXPLODED, RULES, assert_scaled_first
from .compare import assert_same, every_dtype


@every_dtype
@pytest.mark.parametrize("size", [1, 1000, 70_003])
@pytest.mark.parametrize("scale", [1.0, 0.01])
@pytest.mark.parametrize("name", RULES)
def test_update_rules(name, size, scale, ops, dtype, normal):
    slots, options = RULES[name]
    arrays = [normal(size), normal(size), *(abs(normal(size)) for _ in range(slots))]
    assert_same(ops, name, arrays, learning_rate=0.1, scale=scale, **options)


@pytest.mark.parametrize("largest", EXPLODED)
@pytest.mark.parametrize("name", RULES)
def test_an_exploded_gradient_is_scaled_first(name, largest, ops):
    assert_scaled_first(ops, name, largest)


@every_dtype
@pytest.mark.parametrize("size", [0, 1, 70_001])
def test_sums_and_checks(size, ops, dtype, normal):
    x = normal(size)
    assert_same(ops, "clip_values", [x, 0.5])
    assert_same(ops, "decay_weights", [x], rate=0.01, scale=0.5)
    assert_same(ops, "move_towards", [x, normal(size)], rate=0.01)
    squares = float(ops.sum_of_squares(ops.asarray(x)))
    assert squares == pytest.approx(float((x.astype(float) ** 2).sum()), rel=1e-12)
    assert squares == float(ops.sum_of_squares(ops.asarray(x)))
    assert ops.first_non_finite(ops.asarray(x)) is None
    if size:
        x[size // 2] = np.nan
        assert not np.isfinite(float(ops.sum_of_squares(ops.asarray(x))))
        assert ops.first_non_finite(ops.asarray(x)) == size // 2
        assert_same(ops, "clip_values", [x, 0.5])
