import re

import numpy as np
import pytest

from rnnlab.gradcheck.numeric import (
    ParameterCheck,
    check_model,
    eval_numerical_gradient,
    eval_numerical_gradient_array,
    format_checks,
    grad_check_sparse,
    matching,
    projected_check,
    rel_error,
    relative_distance,
)
from rnnlab.parameters import Parameters


def cubes(x):
    return float(np.sum(x**3))


def exponentials(x):
    return float(np.sum(np.exp(x)))


class Boom(Exception):
    pass


def failing_after(calls):
    """A function that raises at its last call."""
    count = iter(range(calls))

    def f(*_):
        if next(count, None) is None:
            raise Boom
        return 0.0

    return f


# ---------------------------------------------------------------- distances


def test_rel_error():
    assert rel_error(np.array([1.0, 2.0]), np.array([1.0, 3.0])) == pytest.approx(0.2)
    assert rel_error([1.0, -1.0], [1.0, 1.0]) == 1
    assert rel_error(0.0, 1e-9) == pytest.approx(0.1)  # the floor of 1e-8
    assert rel_error(np.ones((0, 3)), np.ones((0, 3))) == 0
    assert np.isnan(rel_error([1.0, np.nan], [1.0, 1.0]))


def test_rel_error_of_arrays_that_would_broadcast():
    with pytest.raises(
        ValueError, match=re.escape("rel_error: x has shape (3,) and y (1, 3), expected the same")
    ):
        rel_error(np.ones(3), np.ones((1, 3)))


def test_relative_distance():
    assert relative_distance(np.array([3.0, 0.0]), np.array([0.0, 4.0])) == pytest.approx(5 / 7)
    assert relative_distance(np.ones((2, 3)), np.ones((2, 3))) == 0
    assert relative_distance(np.ones(3), np.zeros(3)) == 1
    assert relative_distance(np.array([1e-6]), np.array([3e-6])) == pytest.approx(0.5)
    assert relative_distance(np.zeros(3), np.zeros(3)) == 0
    assert relative_distance(np.array([1e-12]), np.array([-1e-12])) == 0  # both vanish


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_relative_distance_of_what_is_not_finite_never_passes(wrong):
    assert not relative_distance(np.array([1.0, wrong]), np.ones(2)) <= 1e-7


# ---------------------------------------------------------------- numeric gradients

NUMERIC = {
    "eval_numerical_gradient": lambda f, x: eval_numerical_gradient(f, x, verbose=False),
    "eval_numerical_gradient_array": lambda f, x: eval_numerical_gradient_array(f, x, 1.0),
    "grad_check_sparse": lambda f, x: grad_check_sparse(f, x, x, verbose=False),
    "projected_check": lambda f, x: projected_check(f, x, x),
}


def test_numerical_gradient(rng):
    x = rng.standard_normal((2, 3))
    kept = x.copy()
    grad = eval_numerical_gradient(cubes, x, verbose=False)
    np.testing.assert_allclose(grad, 3 * x**2, rtol=1e-7)
    np.testing.assert_array_equal(x, kept)


def test_numerical_gradient_of_a_function_that_reads_x_elsewhere(rng):
    x = rng.standard_normal(3)
    grad = eval_numerical_gradient(lambda _: cubes(x), x, verbose=False)
    np.testing.assert_allclose(grad, 3 * x**2, rtol=1e-7)


def test_numerical_gradient_prints_each_index(capsys):
    eval_numerical_gradient(lambda x: float(x.sum()), np.zeros((1, 2)))
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(") ")[0] for line in lines] == ["(0, 0", "(0, 1"]
    assert [float(line.split(") ")[1]) for line in lines] == pytest.approx([1, 1])


def test_numerical_gradient_array(rng):
    x, A, df = rng.standard_normal((2, 3)), rng.standard_normal((3, 4)), rng.standard_normal((2, 4))
    kept = x.copy()
    grad = eval_numerical_gradient_array(lambda x: np.exp(x) @ A, x, df)
    np.testing.assert_allclose(grad, np.exp(x) * (df @ A.T), rtol=1e-7)
    np.testing.assert_array_equal(x, kept)


def test_numerical_gradient_array_of_a_function_that_returns_the_same_memory():
    x, df = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    np.testing.assert_allclose(eval_numerical_gradient_array(lambda x: x, x, df), df, rtol=1e-8)


@pytest.mark.parametrize("calls", [1, 2])
@pytest.mark.parametrize("name", NUMERIC)
def test_x_is_as_it_was_when_f_raises(name, calls, rng):
    """At the evaluation above (the first call) and at the one below."""
    x = rng.standard_normal((2, 3))
    kept = x.copy()
    with pytest.raises(Boom):
        NUMERIC[name](failing_after(calls - 1), x)
    np.testing.assert_array_equal(x, kept)


# ---------------------------------------------------------------- checks of a gradient


def sparse(f, x, grad):
    return grad_check_sparse(f, x, grad, num_checks=60, verbose=False)


def projected(f, x, grad):
    return projected_check(lambda: f(x), x, grad)


@pytest.mark.parametrize("check", [sparse, projected])
def test_right_and_wrong_gradients(check, rng):
    x = rng.uniform(0.5, 1.5, (3, 4))
    kept, right = x.copy(), np.exp(x)
    assert check(exponentials, x, right) < 1e-8
    assert check(exponentials, x, right + 0.1) > 1e-3
    for wrong in (right[1, 2] * 1.1, np.nan):
        one_wrong = right.copy()
        one_wrong[1, 2] = wrong
        assert not check(exponentials, x, one_wrong) <= 1e-4
    np.testing.assert_array_equal(x, kept)


@pytest.mark.parametrize("scale", [1e-3, 1, 1e3])
def test_errors_are_relative(scale):
    """The derivative of x^3 at 2 is 12; 10 was given."""
    x, grad = np.array([2.0]), np.array([10 * scale])
    assert sparse(lambda x: scale * cubes(x), x, grad) == pytest.approx(2 / 22)
    along = abs(np.random.default_rng(0).standard_normal())  # the direction
    assert projected(lambda x: scale * cubes(x), x, grad) == pytest.approx(along * 2 / 10)


def test_sparse_check_prints_each_number(capsys, rng):
    x = rng.uniform(0.5, 1.5, (3, 4))
    grad_check_sparse(cubes, x, 3 * x**2)
    first, second, *others = capsys.readouterr().out.splitlines()
    assert len(others) == 8
    assert re.fullmatch(r"numerical: (\S+) analytic: \1, relative error: \S+e-\d+", first)
    assert first != second


def test_sparse_check_draws_from_the_seed(capsys, rng):
    x = rng.standard_normal((30, 40))
    for seed in (1, 1, 2, np.random.default_rng(2)):
        grad_check_sparse(cubes, x, x, num_checks=3, rng=seed)
    one, again, other, same_as_other = np.array_split(capsys.readouterr().out.splitlines(), 4)
    assert list(one) == list(again)
    assert list(other) == list(same_as_other)
    assert list(one) != list(other)


def test_projected_check_evaluates_twice(rng):
    x, calls = rng.standard_normal(50), []

    def f():
        calls.append(x.copy())
        return cubes(x)

    projected_check(f, x, 3 * x**2, h=1e-3, rng=5)
    above, below = calls
    np.testing.assert_allclose(above + below, 2 * x)
    assert (above - x).std() == pytest.approx(1e-3, rel=0.3)
    assert len(np.unique(above - x)) == 50


# ---------------------------------------------------------------- check_model


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


@pytest.mark.parametrize("factor", [1.01, -1, 0, np.nan])
def test_model_with_a_wrong_gradient(factor, rng):
    rows = check_model(Exponential(wrong="a", factor=factor), (rng.standard_normal((2, 3)),), verbose=False)
    assert [row.passed for row in rows] == [False, True, True]


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


def test_matching():
    names = ["lstm_step", "lstm", "gru_step", "gru, lengths"]
    assert matching(names, None, "only") == names
    assert matching(names, "STEP", "only") == ["lstm_step", "gru_step"]
    assert matching(names, "gru*step", "only") == ["gru_step"]
    assert matching(names, "[lg]*ru,", "only") == ["gru, lengths"]


def test_gradients_of_other_shapes_do_not_pass():
    for other in (np.ones((1, 3)), 1.0):  # which would broadcast
        with pytest.raises(ValueError, match=r"relative_distance: x has shape \(3,\) and y \("):
            relative_distance(np.ones(3), other)


@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.complex128])
@pytest.mark.parametrize("name", NUMERIC)
def test_numeric_gradients_need_float64(name, dtype):
    """In float32 the derivative of x^2 at 1,000 was 0."""
    with pytest.raises(TypeError, match=f"{name}: x has dtype {np.dtype(dtype)}, expected float64"):
        NUMERIC[name](lambda *_: 0.0, np.ones((2, 3), dtype))


def test_integers_do_not_wrap_in_errors():
    for dtype, x, y in ((np.uint8, [1, 2, 3], [2, 3, 4]), (np.int8, [100], [-100])):
        for error in (rel_error, relative_distance):
            expected = error(np.array(x, float), np.array(y, float))
            assert error(np.array(x, dtype), np.array(y, dtype)) == expected
    large = np.full(4, 3e20, np.float32)
    assert relative_distance(large, 2 * large) == pytest.approx(1 / 3)


def test_an_upstream_gradient_of_another_shape():
    with pytest.raises(ValueError, match=r"df has shape \(4, 3\), expected that of f\(x\), \(3,\)"):
        eval_numerical_gradient_array(lambda x: x**2, np.arange(3.0), np.ones((4, 3)))


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
