"""The primitives on NumPy without checks of their arguments."""

import numpy as np
import pytest

from rnnlab.ops import StepMasks, unchecked
from rnnlab.ops import numpy as numpy_ops
from rnnlab.ops.arguments import Declaration

from ..test_api import NAMES


def test_primitives_without_checks():
    """All that the checked ones have; the same numbers, and no error where a shape does not fit."""
    plain = unchecked(numpy_ops)
    assert plain is unchecked(numpy_ops)
    assert [name for name in NAMES if not hasattr(plain, name)] == []
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((3, 4)), rng.standard_normal((4, 2))
    outs = [np.ones((3, 2)) for _ in range(2)]
    for ops, out in zip((numpy_ops, plain), outs, strict=True):
        ops.matmul_add(x, w, out)
    np.testing.assert_array_equal(*outs)
    plain.matmul_add(x[0], w, outs[0])  # NumPy broadcasts the row
    with pytest.raises(ValueError, match="matmul_add: x has shape"):
        numpy_ops.matmul_add(x[0], w, outs[0])


def test_steps_without_checks_have_none_inside(monkeypatch):
    def unexpected(self, *arguments):
        raise AssertionError("checked")

    rng = np.random.default_rng(0)
    gates, (prev_c, c, tanh_c, h) = rng.standard_normal((3, 8)), rng.standard_normal((4, 3, 2))
    masks = StepMasks(dropout=0.5, zoneout=(0.1, 0.1), seeds=[1, 2, 3], start=0)
    plain = unchecked(numpy_ops)
    monkeypatch.setattr(Declaration, "fits", unexpected)
    plain.lstm_regularised_forward(gates, h.copy(), prev_c, c, tanh_c, h, masks)
    with pytest.raises(AssertionError, match="checked"):
        numpy_ops.lstm_regularised_forward(gates, h.copy(), prev_c, c, tanh_c, h, masks)
