"""Dropout and zoneout on NumPy: rates, independence of seed and position, values."""

import numpy as np
import pytest

from rnnlab.ops.numpy import masks

every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


@every_dtype
@pytest.mark.parametrize("seed", [0, 1, 2**63 - 1])
def test_dropout(seed, dtype):
    x, out = np.ones((1000, 200), dtype), np.empty((1000, 200), dtype)
    masks.dropout(x, 0.25, seed, out)
    np.testing.assert_allclose(np.unique(out), [0, 4 / 3], rtol=1e-6)
    assert (out == 0).mean() == pytest.approx(0.25, abs=0.005)  # five standard deviations
    masks.dropout(x, 0.25, seed, x)
    np.testing.assert_array_equal(x, out)


def test_dropout_of_neighbouring_keys_and_places_is_independent():
    """Correlations of 40,000 elements with their neighbours, and with those of the next seed."""
    signs = []
    for seed in (7, 8, 9):
        out = np.empty((200, 200))
        masks.dropout(np.ones((200, 200)), 0.5, seed, out)
        signs.append(out - 1)
    first = signs[0]
    for other in (*signs[1:], np.roll(first, 1, axis=0), np.roll(first, 1, axis=1)):
        assert abs((first * other).mean()) < 5 / 200


def test_dropout_by_hand():
    """splitmix64 from the state 1234567: its published first outputs."""
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    out = np.empty(4)
    masks.dropout(np.ones(4), 0.4, 1234567, out)
    np.testing.assert_array_equal(out > 0, np.array(published) / 2**64 >= 0.4)


# ---------------------------------------------------------------- masks and zoneout


def drawn(p, seed, shape):
    out = np.empty(shape)
    masks.dropout_mask(p, seed, 0, out)
    return out == 0


@every_dtype
@pytest.mark.parametrize("per_block", [7, 1 << 16])
def test_a_part_of_a_mask_is_that_of_the_whole(per_block, dtype, monkeypatch):
    monkeypatch.setattr(masks, "_BLOCK", per_block)
    mask, later = np.empty(120, dtype), np.empty((5, 20), dtype)
    masks.dropout_mask(0.3, 99, 0, mask)
    np.testing.assert_array_equal(np.unique(mask), np.array([0, 1 / 0.7], dtype))
    masks.dropout_mask(0.3, 99, 20, later)
    np.testing.assert_array_equal(later.reshape(-1), mask[20:])


def test_a_mask_by_hand():
    seed, p, expected = (5 << 32) + 2**31 + 11, 0.4, []
    for i in range(50):
        z = ((i + 1) * 0x9E3779B9 + (2**31 + 11)) % 2**32
        z = ((z ^ z >> 17) * 0xED5AD4BB + 5) % 2**32
        z = (z ^ z >> 11) * 0xAC4C1B51 % 2**32
        z = (z ^ z >> 15) * 0x31848BAB % 2**32
        expected.append((z ^ z >> 14) < p * 2**32)
    np.testing.assert_array_equal(drawn(p, seed, 50), expected)


@pytest.mark.parametrize("p", [0.05, 0.5, 0.9])
def test_masks_of_neighbouring_keys_and_places_are_independent(p):
    """Correlations of 40,000 elements with their neighbours, and with those of other seeds."""
    first = drawn(p, 7, (200, 200)) - p
    assert abs(first.mean()) < 5 * (p * (1 - p)) ** 0.5 / 200
    others = [drawn(p, 7 + step, (200, 200)) - p for step in (1, 2, 2**31, 2**32, 2**40, 2**62)]
    for other in (*others, np.roll(first, 1, axis=0), np.roll(first, 1, axis=1)):
        assert abs((first * other).mean()) / (p * (1 - p)) < 5 / 200


@every_dtype
@pytest.mark.parametrize("start", [0, 5, 15])
def test_zoneout(start, dtype, rng):
    """Rows from ``start`` on have the mask that they have in the full array."""
    whole = drawn(0.4, 1234567, (12, 5))
    here = whole[start // 5 : start // 5 + 4]
    prev, new, dh = (rng.standard_normal((4, 5)).astype(dtype) for _ in range(3))
    h, dnew, dprev = new.copy(), dh.copy(), np.full((4, 5), np.nan, dtype)
    masks.zoneout_forward(prev, 0.4, 1234567, start, h)
    np.testing.assert_array_equal(h, np.where(here, prev, new))
    masks.zoneout_backward(dnew, 0.4, 1234567, start, dprev)
    np.testing.assert_array_equal(dprev, np.where(here, dh, 0))
    np.testing.assert_array_equal(dnew, np.where(here, 0, dh))


def test_zoneout_of_nothing_and_of_everything(rng):
    prev, new = rng.standard_normal((2, 40, 50))
    h = new.copy()
    masks.zoneout_forward(prev, 0.0, 7, 3, h)
    np.testing.assert_array_equal(h, new)
    masks.zoneout_forward(prev, 1.0, 7, 3, h)
    np.testing.assert_array_equal(h, prev)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_zoneout_leaves_what_is_not_finite_where_it_is(bad):
    dh, dprev, here = np.full((9, 9), bad), np.empty((9, 9)), drawn(0.5, 3, (9, 9))
    masks.zoneout_backward(dh, 0.5, 3, 0, dprev)
    np.testing.assert_array_equal(dprev, np.where(here, bad, 0))
    np.testing.assert_array_equal(dh, np.where(here, 0, bad))


@every_dtype
@pytest.mark.parametrize(
    "view", [lambda x: x[:, ::2], lambda x: x.T, np.asfortranarray], ids=["strided", "T", "F"]
)
def test_masks_of_an_out_that_is_not_contiguous(view, dtype, rng):
    x = view(rng.standard_normal((6, 8)).astype(dtype))
    expected, out = np.empty(x.shape, dtype), view(np.zeros((6, 8), dtype))
    masks.dropout(x, 0.3, 5, expected)
    masks.dropout(x, 0.3, 5, out)
    np.testing.assert_array_equal(out, expected)
    masks.dropout(x, 0.3, 5, x)
    np.testing.assert_array_equal(x, expected)
    masks.dropout_mask(0.3, 5, 7, expected)
    masks.dropout_mask(0.3, 5, 7, out)
    np.testing.assert_array_equal(out, expected)
