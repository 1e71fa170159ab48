"""The simplified GRU at the limits of its gate, which shows the order z, g."""

import numpy as np
import pytest

from rnnlab.layers import simplified_gru_step_forward

N, D, H = 3, 4, 5


@pytest.mark.parametrize(("bias", "carried"), [(100.0, True), (-100.0, False)])
def test_the_update_gate_at_its_limits(bias, carried, rng):
    """Open, it carries the state through; closed, the cell is a vanilla RNN."""
    x, prev_h = rng.standard_normal((N, D)), rng.standard_normal((N, H))
    Wx, Wh = rng.standard_normal((D, 2 * H)), rng.standard_normal((H, 2 * H))
    b = np.concatenate([np.full(H, bias), np.zeros(H)])
    next_h, _ = simplified_gru_step_forward(x, prev_h, Wx, Wh, b)
    candidate = np.tanh(x @ Wx[:, H:] + prev_h @ Wh[:, H:])
    np.testing.assert_allclose(next_h, prev_h if carried else candidate, rtol=1e-9)
