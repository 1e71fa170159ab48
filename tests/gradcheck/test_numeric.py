import re

import numpy as np
import pytest

from rnnlab.gradcheck.numeric import (
    compared,
    eval_numerical_gradient,
    eval_numerical_gradient_array,
    grad_check_sparse,
    projected_check,
    rel_error,
    relative_distance,
)


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
    eval_numerical_gradient(lambda x: float(x.sum()), np.zeros((1, 2)), verbose=False)
    assert not capsys.readouterr().out


def test_numerical_gradient_array(rng):
    x, A, df = rng.standard_normal((2, 3)), rng.standard_normal((3, 4)), rng.standard_normal((2, 4))
    kept = x.copy()
    grad = eval_numerical_gradient_array(lambda x: np.exp(x) @ A, x, df)
    np.testing.assert_allclose(grad, np.exp(x) * (df @ A.T), rtol=1e-7)
    np.testing.assert_allclose(eval_numerical_gradient_array(np.exp, x, 2.0), 2 * np.exp(x), rtol=1e-7)
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
    grad_check_sparse(cubes, x, 3 * x**2, verbose=False)
    assert not capsys.readouterr().out


def test_sparse_check_draws_from_the_seed(capsys, rng):
    x = rng.standard_normal((30, 40))
    for seed in (1, 1, 2, np.random.default_rng(2)):
        grad_check_sparse(cubes, x, x, num_checks=3, rng=seed)
    one, again, other, same_as_other = np.array_split(capsys.readouterr().out.splitlines(), 4)
    assert list(one) == list(again)
    assert list(other) == list(same_as_other)
    assert list(one) != list(other)


@pytest.mark.parametrize("check", [grad_check_sparse, projected_check])
def test_no_seed(check, rng):
    x = rng.standard_normal(3)
    with pytest.raises(TypeError, match=f"^{check.__name__}: rng is None, expected a numpy Generator"):
        check(cubes, x, x, rng=None)


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


# ---------------------------------------------------------------- arrays that do not fit


def test_gradients_of_other_shapes_do_not_pass():
    for other in (np.ones((1, 3)), 1.0):  # which would broadcast
        with pytest.raises(ValueError, match=r"relative_distance: x has shape \(3,\) and y \("):
            relative_distance(np.ones(3), other)


@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.complex128])
@pytest.mark.parametrize("name", NUMERIC)
def test_numeric_gradients_need_float64(name, dtype):
    """In float32 the derivative of x^2 at 1,000 was 0."""
    with pytest.raises(
        TypeError, match=f"{name}: x has dtype {np.dtype(dtype)}, expected an array of float64"
    ):
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


def test_truncation_is_not_taken_for_a_mistake():
    """Large third derivatives: differences with one step are off by more than the tolerance."""
    x = np.array([0.3, -0.7, 1.1])

    def numeric(h):
        return eval_numerical_gradient(lambda x: float(np.sin(40 * x).sum()), x, verbose=False, h=h)

    grad = 40 * np.cos(40 * x)
    assert relative_distance(grad, numeric(1e-5)) > 1e-9
    error, found = compared(grad, numeric, 1e-5, 1e-9)
    assert error < 1e-10
    np.testing.assert_allclose(found, grad, rtol=1e-9)
    error, _ = compared(1.00001 * grad, numeric, 1e-5, 1e-9)
    assert error == pytest.approx(5e-6, rel=1e-3)  # a wrong gradient stays wrong
    error, _ = compared(2 * grad, numeric, 1e-5, 1e-9)
    assert error == pytest.approx(1 / 3, rel=1e-3)
    assert np.isnan(compared(np.nan * grad, numeric, 1e-5, 1e-9)[0])


def test_elements_are_drawn_from_at_least_one():
    with pytest.raises(ValueError, match=r"x has shape \(0, 3\), expected at least one element"):
        grad_check_sparse(lambda x: 0.0, np.ones((0, 3)), np.ones((0, 3)))


def test_checks_need_a_gradient_of_the_shape_of_x():
    x = np.ones((1, 5))
    for check in (
        lambda x, grad: projected_check(lambda: float((x**2).sum()), x, grad),
        lambda x, grad: grad_check_sparse(lambda x: float((x**2).sum()), x, grad, verbose=False),
    ):
        assert check(x, 2 * x) < 1e-8
        with pytest.raises(ValueError, match=r"the gradient has shape \(5,\), expected \(1, 5\) as x"):
            check(x, 2 * np.ones(5))
        with pytest.raises(TypeError, match="x is a list, expected an array of float64"):
            check([1.0], np.ones(1))
