"""Initial hidden states and their gradients."""

import numpy as np

from rnnlab.models.parts.values import Decoded, Source


def test_a_state_of_zeros_is_not_a_first_hidden_state(rng):
    h, c = rng.standard_normal((2, 3, 4))
    assert Source((h, c)).first_hidden() is h
    assert Source((np.zeros_like(h),), zero_state=True).first_hidden() is None


def test_the_gradient_of_the_first_hidden_state_is_added(rng):
    dh, dc, dfirst = rng.standard_normal((3, 3, 4))
    dstate = dh.copy(), dc.copy()
    Decoded(dh).add_first(dstate)
    np.testing.assert_array_equal(dstate, (dh, dc))
    Decoded(dh, first=dfirst).add_first(dstate)
    np.testing.assert_array_equal(dstate, (dh + dfirst, dc))
