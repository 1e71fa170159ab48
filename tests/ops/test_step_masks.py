"""Steps with noise on NumPy: by hand, and their gradients by numeric ones."""

import numpy as np
import pytest

from rnnlab.gradcheck.numeric import eval_numerical_gradient_array
from rnnlab.ops import numpy as ops

from .cases import NOISY, noises

N, H, KEYS, START = 3, 4, [5, 6, 7], 12
EVERY = [(cell, noise) for cell in NOISY for noise in noises(cell)]
every_noise = pytest.mark.parametrize(("cell", "noise"), EVERY)
every_keys = pytest.mark.parametrize("keys", [KEYS, None], ids=["keys", "inference"])


def share(p, key):
    """What of a number stays as it was: all or nothing by the draws, or the expectation."""
    if not p or key is None:
        return p
    mask = np.empty((N, H))
    ops.dropout_mask(p, key, START, mask)
    return mask == 0


def forward(cell, noise, a, prev_h, prev_c):
    """gates, what is kept, c and h."""
    gates, kept, c, h = a.copy(), *np.zeros((3, N, H))
    if cell == "gru_candidate":
        gates[:, :H] = ops.sigmoid(gates[:, :H])
    if cell == "rnn":
        ops.rnn_regularised_forward(gates, prev_h, kept, h, noise)
    elif cell == "lstm":
        ops.lstm_regularised_forward(gates, prev_h, prev_c, c, kept, h, noise)
    else:
        getattr(ops, f"{cell}_regularised_forward")(gates, prev_h, h, noise)
    return gates, kept, c, h


@every_noise
@every_keys
def test_forward(cell, noise, keys, rng):
    noise = noise._replace(keys=keys, start=START)
    a, prev_h, prev_c = (rng.standard_normal((N, width * H)) for width in (NOISY[cell], 1, 1))
    *_, found_c, found_h = forward(cell, noise, a, prev_h, prev_c)
    stays_h, stays_c = (share(p, keys and key) for p, key in zip(noise.zoneout, KEYS, strict=False))
    keep = (1 - share(noise.dropout, KEYS[2])) / (1 - noise.dropout) if keys else 1
    parts = [ops.sigmoid(part) for part in np.split(a, NOISY[cell], axis=1)]
    g = np.tanh(a[:, -H:])
    if cell == "rnn":
        h = g
    elif cell == "lstm":
        c = parts[1] * prev_c + parts[0] * keep * g
        h = parts[2] * np.tanh(c)
        np.testing.assert_allclose(found_c, stays_c * prev_c + (1 - stays_c) * c, rtol=1e-12)
    else:
        h = (1 - parts[0]) * keep * g + parts[0] * prev_h
    np.testing.assert_allclose(found_h, stays_h * prev_h + (1 - stays_h) * h, rtol=1e-12)


@every_noise
@every_keys
def test_backward(cell, noise, keys, rng):
    noise = noise._replace(keys=keys, start=START)
    a, prev_h, prev_c, dh, dc = (rng.standard_normal((N, width * H)) for width in (NOISY[cell], 1, 1, 1, 1))
    gates, kept, _, _ = forward(cell, noise, a, prev_h, prev_c)
    da, dprev_h, dprev_c = np.zeros_like(a), dh.copy(), dc.copy()
    if cell == "rnn":
        past = ops.rnn_regularised_backward(dprev_h, kept, da, noise)
    elif cell == "lstm":
        past = ops.lstm_regularised_backward(dprev_h, dprev_c, gates, prev_c, kept, da, noise)
    else:
        past = getattr(ops, f"{cell}_regularised_backward")(dprev_h, gates, prev_h, da, noise)
    if past is not None:
        dprev_h += past
    expected = [(a, da), (prev_h, dprev_h)] + ([(prev_c, dprev_c)] if cell == "lstm" else [])
    for x, dx in expected:
        numeric = eval_numerical_gradient_array(lambda _: forward(cell, noise, a, prev_h, prev_c)[3], x, dh)
        if cell == "lstm":
            numeric += eval_numerical_gradient_array(
                lambda _: forward(cell, noise, a, prev_h, prev_c)[2], x, dc
            )
        np.testing.assert_allclose(dx, numeric, atol=1e-8)
