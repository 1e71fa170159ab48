import re

import numpy as np
import pytest

from rnnlab.gradcheck.numeric import eval_numerical_gradient, relative_distance
from rnnlab.layers import softmax_loss, temporal_softmax_loss
from rnnlab.layers.softmax import loss_divisor
from rnnlab.plain import softmax as plain

from .reference import assert_same, every_dtype

N, T, V = 3, 4, 5
MASK = np.array([[1, 1, 0, 1], [1, 0, 0, 0], [0, 0, 0, 0]], dtype=bool)
every_average = pytest.mark.parametrize("average", ["batch", "token"])
every_smoothing = pytest.mark.parametrize("smoothing", [0.0, 0.1])


def scores(rng, *shape):
    return rng.standard_normal(shape) * 3, rng.integers(shape[-1], size=shape[:-1])


@pytest.mark.parametrize("M", [1, 6])
def test_the_divisor_of_rows(M, rng):
    x, y = scores(rng, M, V)
    (loss, dx), (half_loss, half_dx) = softmax_loss(x, y), softmax_loss(x, y, divisor=2 * M)
    assert half_loss == pytest.approx(loss / 2)
    np.testing.assert_allclose(half_dx, dx / 2, rtol=1e-12)


@every_average
def test_sequences_are_averaged_over_the_batch_or_over_tokens(average, rng):
    x, y = scores(rng, N, T, V)
    loss, _ = temporal_softmax_loss(x, y, MASK, average=average)
    expected, _ = plain.temporal_softmax_loss(x, y, MASK)
    assert loss == pytest.approx(expected * {"batch": 1, "token": 3 / 4}[average])


@pytest.mark.parametrize(("rows", "fraction", "expected"), [(1, 1.0, 2.3), (10, 1.0, 23), (10, 0.1, 2.3)])
def test_small_scores_of_the_course(rows, fraction, expected, rng):
    """The loss of a step with 10 equally likely words is log 10, and losses are summed over the steps."""
    x = 0.001 * rng.standard_normal((5000, rows, 10))
    mask = rng.random((5000, rows)) < fraction
    loss, _ = temporal_softmax_loss(x, rng.integers(10, size=(5000, rows)), mask)
    assert loss == pytest.approx(expected, rel=0.05)


@every_smoothing
def test_gradient_of_rows(smoothing, rng):
    x, y = scores(rng, N, V)

    def loss(x):
        return softmax_loss(x, y, label_smoothing=smoothing)

    numerical = eval_numerical_gradient(lambda x: loss(x)[0], x, verbose=False)
    assert relative_distance(loss(x)[1], numerical) < 1e-8


@every_average
@every_smoothing
@pytest.mark.parametrize("dtype", [bool, np.int32, np.float64])
def test_gradient_of_sequences(average, smoothing, dtype, rng):
    x, y = scores(rng, N, T, V)
    before = x.copy()

    def loss(x):
        return temporal_softmax_loss(x, y, MASK.astype(dtype), average=average, label_smoothing=smoothing)

    _, dx = loss(x)
    numerical = eval_numerical_gradient(lambda x: loss(x)[0], x, verbose=False)
    assert relative_distance(dx, numerical) < 1e-8
    assert not dx[~MASK].any()
    assert_same(x, before)


def test_what_is_masked_is_not_read(rng):
    x, y = scores(rng, N, T, V)
    loss, dx = temporal_softmax_loss(x, y, MASK)
    x[~MASK], y[~MASK] = np.nan, -7
    spoiled_loss, spoiled_dx = temporal_softmax_loss(x, y, MASK)
    assert spoiled_loss == loss
    assert_same(spoiled_dx, dx)


@every_average
@pytest.mark.parametrize("shape", [(2, 3, V), (0, 3, V), (2, 0, V)])
def test_nothing_to_score(average, shape):
    loss, dx = temporal_softmax_loss(
        np.ones(shape), np.zeros(shape[:2], int), np.zeros(shape[:2], bool), average=average
    )
    assert loss == 0
    assert dx.shape == shape
    assert not dx.any()


def test_no_rows():
    loss, dx = softmax_loss(np.ones((0, V)), np.ones(0, int))
    assert loss == 0
    assert dx.shape == (0, V)


@every_dtype
def test_large_scores(dtype):
    x = np.array([[1e4, 0, -1e4], [-1e4, 1e4, 1e4]], dtype)
    loss, dx = softmax_loss(x, np.array([1, 2]))
    assert loss == pytest.approx((1e4 + np.log(2)) / 2)
    np.testing.assert_allclose(dx, [[0.5, -0.5, 0], [0, 0.25, -0.25]])


@every_dtype
def test_dtype(dtype, rng):
    x, y = scores(rng, N, T, V)
    loss, dx = temporal_softmax_loss(x.astype(dtype), y, MASK)
    assert isinstance(loss, float)
    assert dx.dtype == dtype
    assert loss == pytest.approx(temporal_softmax_loss(x, y, MASK)[0], rel=1e-6)


def test_verbose_prints_the_shapes(capsys):
    arguments = np.ones((N, T, V)), np.ones((N, T), int), MASK
    temporal_softmax_loss(*arguments)
    assert capsys.readouterr().out == ""
    temporal_softmax_loss(*arguments, verbose=True)
    assert capsys.readouterr().out == "x: (3, 4, 5) dx: (3, 4, 5)\n"


def test_tokens_out_of_range(rng):
    x, y = scores(rng, N, V)
    with pytest.raises(IndexError, match="^softmax_loss: y holds 5, expected classes from 0 to 4"):
        softmax_loss(x, y * 0 + 5)
    message = "^temporal_softmax_loss: y holds the token -1, the vocabulary has 5 words"
    with pytest.raises(IndexError, match=message):
        temporal_softmax_loss(x[:, None], y[:, None] * 0 - 1, np.ones((N, 1)))


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ({"x": np.ones((N, T))}, ValueError, "x has shape (3, 4), expected (N, T, V)"),
        ({"y": np.ones((N, 3), int)}, ValueError, "y has shape (3, 3), expected (N, T) = (3, 4)"),
        ({"mask": MASK[:, :1]}, ValueError, "mask has shape (3, 1), expected (N, T) = (3, 4)"),
        ({"x": np.ones((N, T, V), int)}, TypeError, "x has dtype int64, expected float32 or float64"),
        ({"average": "mean"}, ValueError, "average is 'mean', expected one of batch, token"),
        ({"y": np.ones((N, T))}, TypeError, "y has dtype float64, expected integers"),
        ({"label_smoothing": 1}, ValueError, "label_smoothing is 1, expected a probability in [0, 1)"),
    ],
)
def test_what_does_not_fit(wrong, error, message):
    arguments = {"x": np.ones((N, T, V)), "y": np.ones((N, T), int), "mask": MASK}
    with pytest.raises(error, match=re.escape(f"temporal_softmax_loss: {message}")):
        temporal_softmax_loss(**arguments | wrong)


def test_classes_that_do_not_fit():
    x = np.ones((N, V))
    with pytest.raises(ValueError, match=re.escape("softmax_loss: y has shape (2,), expected (M,) = (3,)")):
        softmax_loss(x, np.ones(2, int))
    with pytest.raises(TypeError, match="softmax_loss: y has dtype float64, expected integers"):
        softmax_loss(x, np.ones(N))
    with pytest.raises(TypeError, match="softmax_loss: y is a list, expected a NumPy or CuPy array"):
        softmax_loss(x, [0, 1, 2])


@pytest.mark.parametrize("smoothing", [-0.1, 1.0, np.nan])
def test_smoothing_out_of_range(smoothing):
    with pytest.raises(
        ValueError, match=re.escape(f"label_smoothing is {smoothing}, expected a probability")
    ):
        softmax_loss(np.ones((N, V)), np.ones(N, int), label_smoothing=smoothing)


def test_divisor_is_never_zero():
    assert loss_divisor("f", "batch", 4, 9) == 4
    assert loss_divisor("f", "token", 4, 9) == 9
    assert loss_divisor("f", "batch", 0, 0) == loss_divisor("f", "token", 4, 0) == 1
