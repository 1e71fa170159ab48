import re

import numpy as np
import pytest

from rnnlab.gradcheck.model import ParameterCheck, check_model, format_checks
from rnnlab.models import CaptioningRNN
from rnnlab.parameters import Parameters


class Exponential:
    """loss = sum(exp(a x)) + b, with noise on x where rng is given; the gradient of ``wrong`` is off."""

    def __init__(self, dtype=np.float64, wrong="", factor=1.01):
        self.params = Parameters({"a": (2, 3), "b": (1,), "unused": (2,)}, dtype)
        self.params["a"] = np.arange(1.0, 7).reshape(2, 3) / 4
        self.wrong, self.factor = wrong, factor

    def loss(self, x, rng=None):
        x = x if rng is None else x * rng.uniform(0.5, 1.5, x.shape)
        grads = self.params.zeros_like()
        exp = np.exp(self.params["a"] * x)
        grads["a"] = exp * x
        grads["b"] = [1.0]
        if self.wrong:
            grads[self.wrong][...] *= self.factor
        return float(np.sum(exp) + self.params["b"][0]), grads


@pytest.mark.parametrize("seed", [None, 3])
def test_model_with_right_gradients(seed, rng):
    model = Exponential()
    kept = model.params.flat.copy()
    x = rng.standard_normal((2, 3))
    rows = check_model(model, (x,), seed=seed, verbose=False)
    _, grads = model.loss(x, rng=None if seed is None else np.random.default_rng(seed))
    assert [row.name for row in rows] == ["a", "b", "unused"]
    assert all(row.passed and row.error < 1e-7 for row in rows)
    assert rows[0].shape == (2, 3)
    assert [row.grad_norm for row in rows] == pytest.approx([np.linalg.norm(grads["a"]), 1, 0])
    np.testing.assert_array_equal(model.params.flat, kept)


@pytest.mark.parametrize("wrong", ["a", "b"])
@pytest.mark.parametrize("factor", [1.01, -1, 0, np.nan])
def test_model_with_a_wrong_gradient(factor, wrong, rng):
    model = Exponential(wrong=wrong, factor=factor)
    rows = check_model(model, (rng.standard_normal((2, 3)),), verbose=False)
    assert [row.passed for row in rows] == [wrong != "a", wrong != "b", True]


def test_differences_have_the_step(rng):
    rows = check_model(Exponential(), (rng.standard_normal((2, 3)),), h=0.1, verbose=False)
    assert [row.passed for row in rows] == [False, True, True]  # the loss is linear in b


def test_tolerance_decides(rng):
    batch = (rng.standard_normal((2, 3)),)
    rows = check_model(Exponential(wrong="a"), batch, tolerance=0.01, verbose=False)
    assert rows[0].error == pytest.approx(0.01 / 2.01, rel=1e-3)
    assert rows[0].passed


def test_model_prints_a_table(capsys, rng):
    batch = (rng.standard_normal((2, 3)),)
    check_model(Exponential(), batch, verbose=False)
    assert capsys.readouterr().out == ""
    rows = check_model(Exponential(wrong="b"), batch)
    table = capsys.readouterr().out
    assert table == format_checks(rows) + "\n"
    header, a, b, _ = table.splitlines()
    assert header.split() == ["parameter", "shape", "|gradient|", "error"]
    assert a.split()[:3] == ["a", "(2,", "3)"]
    assert a.endswith("  ok")
    assert b.endswith("  WRONG")


def test_the_table_is_as_wide_as_its_names():
    rows = [ParameterCheck("a_parameter_with_a_long_name", (3,), 1e-9, 2.0, True)]
    header, line = format_checks(rows).splitlines()
    assert line == "a_parameter_with_a_long_name            (3,)   2.000e+00   1.0e-09  ok"
    assert header.index("|gradient|") + len("|gradient|") == line.index("2.000e+00") + len("2.000e+00")


def test_model_in_float32(rng):
    with pytest.raises(TypeError, match="check_model: the model's parameters are float32, expected float64"):
        check_model(Exponential(np.float32), (rng.standard_normal((2, 3)),))


def test_model_prints_each_row_when_it_is_checked(capsys, rng):
    model, printed = Exponential(), []
    loss = model.loss

    def watched(*batch, rng=None):
        printed.append(capsys.readouterr().out)
        return loss(*batch, rng=rng)

    model.loss = watched
    check_model(model, (rng.standard_normal((2, 3)),))
    rows = [text.split()[0] for text in "".join(printed).splitlines()]
    assert rows == ["parameter", "a", "b"]  # and "unused" after the last evaluation
    assert capsys.readouterr().out.startswith("unused")


def test_model_shows_its_progress_if_asked(capsys, rng):
    batch = (rng.standard_normal((2, 3)),)
    check_model(Exponential(), batch)
    assert capsys.readouterr().err == ""
    check_model(Exponential(), batch, verbose=False, progress=True)
    assert "9/9" in re.sub(r"\.0\b", "", capsys.readouterr().err)


def test_only_some_parameters_of_a_model(rng):
    batch = (rng.standard_normal((2, 3)),)
    assert [row.name for row in check_model(Exponential(), batch, only="U", verbose=False)] == ["unused"]
    with pytest.raises(ValueError, match=r"check_model: only is 'unsed', .* such as unused"):
        check_model(Exponential(), batch, only="unsed")


class Partial:
    """w . x + b, whose loss returns the gradients that it is given."""

    def __init__(self, grads):
        self.params = Parameters({"w": (3,), "b": (1,)}, np.float64)
        self.grads = grads

    def loss(self, x, *, rng=None):
        return float(self.params["w"] @ x + self.params["b"][0]), self.grads


@pytest.mark.parametrize(
    ("grads", "message"),
    [
        ({"w": np.ones(3)}, "loss returned no gradient of b"),
        ({"w": np.ones(3), "b": np.ones(1), "c": np.ones(1)}, "a gradient of c, which is not a parameter"),
        ({"w": np.ones((1, 3)), "b": np.ones(1)}, r"gradient of w has shape \(1, 3\), expected \(3,\)"),
    ],
)
def test_every_parameter_of_a_model_has_a_gradient_of_its_shape(grads, message):
    with pytest.raises(ValueError, match=f"check_model: .*{message}"):
        check_model(Partial(grads), (np.ones(3),), verbose=False)


class Flat:
    """A model whose gradient of ``b`` is wrong by 1e-9, which is lost in the rounding of a loss near 1000."""

    def __init__(self, of_b=1e-9):
        self.params, self._of_b = Parameters({"W": (3,), "b": (4,)}, dtype=np.float64), of_b
        self.params.flat[...] = 1.0

    def loss(self, rng=None):
        grads = self.params.zeros_like()
        grads["W"] = 2 * self.params["W"]
        grads["b"][...] = self._of_b
        return 1000 + float((self.params["W"] ** 2).sum()) + 1e-12 * float(self.params["b"].sum()), grads


def test_what_rounding_hides_is_not_called_right(capsys):
    W, b = check_model(Flat(), ())
    assert (W.passed, b.passed, b.too_small) == (True, True, True)
    assert not W.too_small
    assert capsys.readouterr().out.splitlines()[-1].endswith("too small to tell")
    _, b = check_model(Flat(), (), floor=0.0)
    assert not b.passed
    _, b = check_model(Flat(of_b=1e-6), ())
    assert not b.passed


class Weights:
    """The loss w . w / 2 of one row, which is correct in all that the solver needs."""

    def __init__(self):
        self.params = Parameters({"w": (3,)}, np.float64)
        self.params["w"] = [1.0, -2.0, 3.0]

    def loss(self, *, rng=None, grads=None, part_of=None):
        share = 1.0 if part_of is None else 1 / part_of[0]
        if grads is None:
            grads = self.params.zeros_like()
        if part_of is None:
            grads.flat[...] = 0
        grads["w"] += share * self.params["w"]
        return share * float((self.params["w"] ** 2).sum()) / 2, grads


class OwnGradients(Weights):
    def loss(self, *, rng=None, grads=None):
        return super().loss(rng=rng)


class Adding(Weights):
    def loss(self, *, rng=None, grads=None):
        grads = self.params.zeros_like() if grads is None else grads
        return super().loss(rng=rng, grads=grads, part_of=(1, 1))


class WithoutShare(Weights):
    def loss(self, *, rng=None, grads=None, part_of=None):
        return super().loss(rng=rng, grads=grads)


def test_a_loss_that_does_with_grads_what_the_solver_needs():
    assert all(row.passed for row in check_model(Weights(), (), verbose=False))


@pytest.mark.parametrize(
    ("model", "match"),
    [
        (OwnGradients, "loss returned other gradients than the grads it was given"),
        (Adding, "grads held ones, and loss left another gradient of w there than without"),
        (WithoutShare, "twice the numbers in part_of did not add half the gradient"),
    ],
)
def test_a_loss_that_does_something_else_with_grads(model, match):
    with pytest.raises(ValueError, match=f"check_model: {match}"):
        check_model(model(), (), verbose=False)


def test_a_batch_is_a_tuple():
    with pytest.raises(TypeError, match="check_model: batch is a ndarray, expected a tuple"):
        check_model(Weights(), np.zeros(3))


def test_a_loss_that_takes_all_options_is_checked_too(rng):
    """It passes part_of on, and its own term ignores it."""

    class Penalised(CaptioningRNN):
        def loss(self, features, captions, **options):
            loss, grads = super().loss(features, captions, **options)
            W = self.params["W_vocab"]
            grads["W_vocab"] += W
            return loss + 0.5 * float((W**2).sum()), grads

    words = {word: token for token, word in enumerate(["<NULL>", "<START>", "<END>", "a"])}
    model = Penalised(words, 3, 2, 3, dtype=np.float64)
    with pytest.raises(ValueError, match="twice the numbers in part_of did not add half the gradient"):
        check_model(model, (rng.standard_normal((2, 3)), np.array([[1, 3, 2], [1, 2, 0]])), verbose=False)
