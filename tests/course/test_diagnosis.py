"""A diagnosis: one mistake, two at once, several in different gates, and what has no name."""

import numpy as np
import pytest

from rnnlab.course.check import examine
from rnnlab.course.diagnosis import Diagnosis
from rnnlab.course.exercises import EXERCISES


def lstm_step(
    dnext_h, dnext_c, cache, *, f_factor=1.0, dc_path=1.0, g_square=2, mean=False, c_sign=1.0, odd=0.0
):
    """A backward with mistakes that the options plant."""
    x, prev_h, prev_c, Wx, Wh, i, f, o, g, next_c = cache
    tanh_c = np.tanh(next_c)
    dc = dc_path * dnext_c + dnext_h * o * (1 - tanh_c**2)
    da = np.hstack(
        [
            dc * g * i * (1 - i),
            dc * (prev_c if f_factor else 1) * f * (1 - f),
            dnext_h * tanh_c * o * (1 - o),
            dc * i * (1 - g**g_square) + odd * np.sin(x.sum() + g),
        ]
    )
    db = da.mean(axis=0) if mean else da.sum(axis=0)
    return da @ Wx.T, da @ Wh.T, c_sign * dc * f, x.T @ da, prev_h.T @ da, db


def diagnosed(**options):
    report = examine("lstm_step", None, lambda *given: lstm_step(*given, **options), seed=0)
    assert not report.passed
    return report.diagnoses[0]


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"f_factor": 0.0}, ["da_f lacks the factor prev_c"]),
        ({"dc_path": 0.0}, ["dnext_c does not reach dc: it is left out"]),
        ({"dc_path": 2.0}, ["the term dnext_c of dc is counted twice"]),
        ({"g_square": 1}, ["da_g has g where its square belongs"]),
        ({"mean": True}, ["db is divided by N: it is averaged where a sum belongs"]),
        ({"c_sign": -1.0}, ["dprev_c has the wrong sign"]),
        (
            {"f_factor": 0.0, "g_square": 1},
            ["da_f lacks the factor prev_c", "da_g has g where its square belongs"],
        ),
        ({"f_factor": 0.0, "c_sign": -1.0}, ["da_f lacks the factor prev_c", "dprev_c has the wrong sign"]),
    ],
)
def test_mistakes_are_named(options, names):
    found = diagnosed(**options)
    assert sorted(mistake[0] for mistake in found.mistakes) == sorted(names)
    assert not found.notes


def test_a_mistake_is_named_once():
    """Not again for its place within the function."""
    found = Diagnosis((("db is halved", "db is halved, in the backward of the affine map", "db is a mean"),))
    assert str(found) == "db is halved.\n    The same numbers come from: db is a mean."


def test_three_mistakes_at_once():
    found = diagnosed(f_factor=0.0, g_square=1, mean=True)
    assert {mistake[0] for mistake in found.mistakes} >= {
        "da_f lacks the factor prev_c",
        "da_g has g where its square belongs",
    }


def test_what_has_no_name_is_not_named():
    found = diagnosed(odd=1.0)
    assert not found.mistakes
    assert "dWx is wrong in the block of g: look at da_g" in found.notes


def test_ties_are_said_to_be_ties():
    text = str(Diagnosis((("one", "two", "three"),), ("dx is wrong",)))
    assert text == "one.\n    The same numbers come from: two; or three.\ndx is wrong."
    assert "and 2 more" in str(Diagnosis((tuple("abcdef"),)))


def test_results_in_another_order():
    def swapped(dnext_h, dnext_c, cache):
        dx, dprev_h, dprev_c, *rest = EXERCISES["lstm_step"].backward(dnext_h, dnext_c, cache)
        return dx, dprev_c, dprev_h, *rest

    found = examine("lstm_step", None, swapped, seed=0).diagnoses[0]
    assert "order" in str(found)


def test_a_factor_that_has_no_name():
    def scaled(dout, cache):
        return 0.37 * EXERCISES["word_embedding"].backward(dout, cache)

    found = examine("word_embedding", None, scaled, seed=0).diagnoses[0]
    assert str(found) == "dW is 0.37 times what it should be."


@pytest.mark.slow
@pytest.mark.parametrize("overwritten", [("dWx", "dWh", "db"), ("dWx",)])
@pytest.mark.parametrize("lost", ["dprev_h", "dprev_c", "dnext_h"])
def test_blocks_of_zeros_accuse_no_variable(overwritten, lost):
    """The block of f of the first step is zero, as c is: so it is in versions with quite other mistakes."""
    step_backward = EXERCISES["lstm_step"].backward

    def backward(dh, cache):
        x, h0, _, Wx, Wh, _, caches = cache
        dx, dprev_h, dprev_c = np.zeros(x.shape), np.zeros(h0.shape), np.zeros(h0.shape)
        sums = {"dWx": np.zeros(Wx.shape), "dWh": np.zeros(Wh.shape), "db": np.zeros(Wx.shape[1])}
        for t in reversed(range(len(caches))):
            dnext_h = dh[:, t] if lost == "dprev_h" else dprev_h if lost == "dnext_h" else dh[:, t] + dprev_h
            dnext_c = 0 * dprev_c if lost == "dprev_c" else dprev_c
            dx[:, t], dprev_h, dprev_c, *weights = step_backward(dnext_h, dnext_c, caches[t])
            for name, each in zip(sums, weights, strict=True):
                sums[name] = each if name in overwritten else sums[name] + each
        return dx, dprev_h, *sums.values()

    text = str(examine("lstm", None, backward, seed=3).diagnoses[0])
    assert "does not reach dWx" not in text
    assert "dWx is zero" not in text
    assert ("dh[:, t] does not reach dh_t" in text) == (lost == "dnext_h")


@pytest.mark.parametrize(
    ("scales", "expected"),
    [
        (lambda n, t, real: (n, n), "loss and dx are not divided by N"),
        (lambda n, t, real: (1, n), "dx is not divided by N"),
        (lambda n, t, real: (-1, -1), "loss and dx have the wrong sign"),
        (lambda n, t, real: (n / real, 1), "loss is divided by the number of real tokens, expected N"),
        (lambda n, t, real: (1 / t, 1 / t), "loss and dx are divided by N T, expected N"),
    ],
)
def test_scales_of_a_loss(scales, expected):
    def loss(x, y, mask):
        value, dx = EXERCISES["temporal_softmax_loss"].forward(x, y, mask)
        of_loss, of_dx = scales(*mask.shape, mask.sum())
        return of_loss * value, of_dx * dx

    (found,) = examine("temporal_softmax_loss", loss, seed=3).diagnoses
    assert [mistake[0] for mistake in found.mistakes] == [expected]
    assert not any("per sequence" in name for mistake in found.mistakes for name in mistake)


def test_steps_that_are_read_as_samples():
    def forward(x, h0, Wx, Wh, b):
        h, caches = np.zeros((len(x), x.shape[1], h0.shape[1])), []
        for t in range(x.shape[1]):
            h0, cache = EXERCISES["rnn_step"].forward(x[t], h0, Wx, Wh, b)
            h[:, t] = h0
            caches.append(cache)
        return h, caches

    text = str(examine("rnn", forward, seed=3))
    assert "x is in the order (T, N, D), expected (N, T, D): [t] selects a sample" in text


def test_numbers_that_are_no_constant_factor_are_no_remark():
    def loss(x, y, mask):
        value, dx = EXERCISES["temporal_softmax_loss"].forward(x, y, mask)
        return value + 0.1 * np.sin(value), dx

    (found,) = examine("temporal_softmax_loss", loss, seed=3).diagnoses
    assert found.notes == ("loss is wrong",)
