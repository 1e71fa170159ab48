"""Steps with masks on NumPy: by hand, and their gradients by numeric ones."""

import numpy as np
import pytest

from rnnlab.gradcheck.numeric import eval_numerical_gradient_array
from rnnlab.ops import numpy as ops

from .cases import GATES, step_masks

N, H, SEEDS, START = 3, 4, [5, 6, 7], 12
EVERY = [(cell, masks) for cell in GATES for masks in step_masks(cell)]
every_masks = pytest.mark.parametrize(("cell", "masks"), EVERY)
every_seeds = pytest.mark.parametrize("seeds", [SEEDS, None], ids=["seeds", "inference"])


def share(p, seed):
    """What of a number stays as it was: all or nothing by the draws, or the expectation."""
    if not p or seed is None:
        return p
    mask = np.empty((N, H))
    ops.dropout_mask(p, seed, START, mask)
    return mask == 0


def forward(cell, masks, a, prev_h, prev_c):
    """gates, what is saved, c and h."""
    gates, saved, c, h = a.copy(), *np.zeros((3, N, H))
    if cell == "gru_candidate":
        gates[:, :H] = ops.sigmoid(gates[:, :H])
    if cell == "lstm":
        ops.lstm_regularised_forward(gates, prev_h, prev_c, c, saved, h, masks)
    else:
        getattr(ops, f"{cell}_regularised_forward")(gates, prev_h, h, masks)
    return gates, saved, c, h


@every_masks
@every_seeds
def test_forward(cell, masks, seeds, rng):
    masks = masks._replace(seeds=seeds, start=START)
    a, prev_h, prev_c = (rng.standard_normal((N, width * H)) for width in (GATES[cell], 1, 1))
    *_, found_c, found_h = forward(cell, masks, a, prev_h, prev_c)
    stays_h, stays_c = (share(p, seeds and seed) for p, seed in zip(masks.zoneout, SEEDS, strict=False))
    keep = (1 - share(masks.dropout, SEEDS[2])) / (1 - masks.dropout) if seeds else 1
    parts = [ops.sigmoid(part) for part in np.split(a, GATES[cell], axis=1)]
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


@every_masks
@every_seeds
def test_backward(cell, masks, seeds, rng):
    masks = masks._replace(seeds=seeds, start=START)
    a, prev_h, prev_c, dh, dc = (rng.standard_normal((N, width * H)) for width in (GATES[cell], 1, 1, 1, 1))
    gates, saved, _, _ = forward(cell, masks, a, prev_h, prev_c)
    da, dprev_h, dprev_c = np.zeros_like(a), dh.copy(), dc.copy()
    if cell == "rnn":
        past = ops.rnn_regularised_backward(dprev_h, gates, da, masks)
    elif cell == "lstm":
        past = ops.lstm_regularised_backward(dprev_h, dprev_c, gates, prev_c, saved, da, masks)
    else:
        past = getattr(ops, f"{cell}_regularised_backward")(dprev_h, gates, prev_h, da, masks)
    if past is not None:
        dprev_h += past
    expected = [(a, da), (prev_h, dprev_h)] + ([(prev_c, dprev_c)] if cell == "lstm" else [])
    for x, dx in expected:
        numeric = eval_numerical_gradient_array(lambda _: forward(cell, masks, a, prev_h, prev_c)[3], x, dh)
        if cell == "lstm":
            numeric += eval_numerical_gradient_array(
                lambda _: forward(cell, masks, a, prev_h, prev_c)[2], x, dc
            )
        np.testing.assert_allclose(dx, numeric, atol=1e-8)
