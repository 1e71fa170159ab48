"""Calls of students' functions: results are checked in the name of the function, arguments are protected."""

import functools
import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from rnnlab import layers
from rnnlab.course.student_functions import CELLS, SIGNATURES, StudentFunction, place_of

from .plain_functions import PLAIN

N, T, D, H, V = 2, 3, 4, 5, 6


def wrapped(name, function=None, **kwargs):
    return StudentFunction(name, function or PLAIN[name], {}, **kwargs)


def arguments(rng, cell="lstm", dtype=np.float64):
    """x, h0, Wx, Wh, b of a sequence function."""
    gates = {"rnn": 1, "lstm": 4, "gru": 3, "simplified_gru": 2}[cell] * H
    return [
        rng.standard_normal(shape).astype(dtype)
        for shape in ((N, T, D), (N, H), (D, gates), (H, gates), (gates,))
    ]


def returning(*results):
    """The function lstm_forward that returns these results."""
    return wrapped("lstm_forward", lambda *_: results[0] if len(results) == 1 else results)


def called(function, rng, dtype=np.float64):
    return function(*arguments(rng, dtype=dtype))


# ---------------------------------------------------------------- the functions


def test_the_names_are_those_of_the_layers():
    assert len(SIGNATURES) == 4 * 4 + 5
    for name in SIGNATURES:
        assert callable(getattr(layers, name))
        assert callable(PLAIN[name])


@pytest.mark.parametrize("cell", CELLS)
def test_forward_and_backward_of_every_cell(cell, rng):
    """The signatures fit the plain functions, of which the cache comes back as it was."""
    x, h0, *weights = arguments(rng, cell)
    h, cache = wrapped(f"{cell}_forward")(x, h0, *weights)
    expected, plain_cache = PLAIN[f"{cell}_forward"](x, h0, *weights)
    np.testing.assert_array_equal(h, expected)
    gradients = wrapped(f"{cell}_backward")(h, cache)
    for found, right in zip(gradients, PLAIN[f"{cell}_backward"](h, plain_cache), strict=True):
        np.testing.assert_array_equal(found, right)
    *state, cache = wrapped(f"{cell}_step_forward")(x[:, 0], *[h0] * (1 + (cell == "lstm")), *weights)
    *expected, plain_cache = PLAIN[f"{cell}_step_forward"](x[:, 0], *[h0] * len(state), *weights)
    gradients = wrapped(f"{cell}_step_backward")(*state, cache)
    for found, right in zip(gradients, PLAIN[f"{cell}_step_backward"](*expected, plain_cache), strict=True):
        np.testing.assert_array_equal(found, right)


def test_calls_are_counted_also_where_they_fail(rng):
    calls = {}
    function = StudentFunction("lstm_forward", lambda *_: 1 / 0, calls)
    assert calls == {"lstm_forward": 0}
    for count in (1, 2):
        with pytest.raises(ZeroDivisionError):
            called(function, rng)
        assert calls == {"lstm_forward": count}


# ---------------------------------------------------------------- arguments


def test_inputs_cannot_be_written(rng):
    def careless(x, h0, Wx, Wh, b):
        Wh *= 0.9
        return x, None

    given = arguments(rng)
    before = [array.copy() for array in given]
    with pytest.raises(ValueError, match="read-only") as raised:
        wrapped("lstm_forward", careless)(*given)
    (note,) = raised.value.__notes__
    assert re.fullmatch(
        r"lstm_forward \(yours, .*\): inputs and parameters cannot be written: make a new array", note
    )
    for array, kept in zip(given, before, strict=True):
        np.testing.assert_array_equal(array, kept)
        assert array.flags.writeable


def test_gradients_can_be_written(rng):
    """As a backward through time in the course often does with dh."""

    def overwriting(dh, cache):
        found = PLAIN["lstm_backward"](dh, cache)
        dh[:] = 0
        return found

    x, h0, *weights = arguments(rng)
    h, cache = wrapped("lstm_forward")(x, h0, *weights)
    dh, kept = h.copy(), h.copy()
    wrapped("lstm_backward", overwriting)(dh, cache)
    np.testing.assert_array_equal(dh, kept)


# ---------------------------------------------------------------- results


def test_float64_results_of_a_float32_model_are_converted(rng):
    h, _ = called(returning(np.ones((N, T, H)), None), rng, np.float32)
    assert h.dtype == np.float32
    loss, dx = wrapped("temporal_softmax_loss", lambda x, y, mask: (np.array(2.5), x))(
        rng.standard_normal((N, T, V)), np.zeros((N, T), int), np.ones((N, T), bool)
    )
    assert type(loss) is float
    assert loss == 2.5
    assert dx.shape == (N, T, V)


@pytest.mark.parametrize("layout", [np.asfortranarray, lambda h: h[..., ::-1], np.ma.asarray])
def test_results_are_in_the_usual_layout(layout, rng):
    given = layout(rng.standard_normal((N, H)))
    step = wrapped("rnn_step_forward", lambda *_: (given, None))
    x, h0, *weights = arguments(rng, "rnn")
    h, _ = step(x[:, 0], h0, *weights)
    assert type(h) is np.ndarray
    assert h.flags.c_contiguous
    np.testing.assert_array_equal(h, np.asarray(given))


RIGHT = np.ones((N, T, H))


@pytest.mark.parametrize(
    ("results", "error", "message"),
    [
        ([None], ValueError, "returned None, expected 2: h, cache; is its return missing?"),
        (
            [RIGHT],
            ValueError,
            "returned one result, an array of shape (2, 3, 5) and dtype float64, expected 2: h, cache",
        ),
        ([RIGHT, 1, 2], ValueError, "returned 3 results, expected 2: h, cache"),
        ([None, 1], TypeError, "h is None, expected an array"),
        ([RIGHT.tolist(), 1], TypeError, "h is a list, expected an array"),
        ([2.0, 1], TypeError, "h is a float, expected an array"),
        ([RIGHT[0], 1], ValueError, "h has shape (3, 5), expected (N, T, H) = (2, 3, 5)"),
        ([np.ones((T, N, H)), 1], ValueError, "h has shape (3, 2, 5), expected (N, T, H) = (2, 3, 5)"),
        ([RIGHT.astype(int), 1], TypeError, "h has dtype int64, expected float64"),
        ([RIGHT > 0, 1], TypeError, "h has dtype bool, expected float64"),
        ([RIGHT.astype(np.float32), 1], TypeError, "h has dtype float32, expected float64"),
        ([RIGHT * 1j, 1], TypeError, "h has dtype complex128, expected float64"),
        ([RIGHT * np.nan, 1], ValueError, "h[0, 0, 0] is nan, expected finite numbers"),
        (
            [np.where(np.arange(H) == 2, -np.inf, RIGHT), 1],
            ValueError,
            "h[0, 0, 2] is -inf, expected finite numbers",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_wrong_results(results, error, message, rng):
    with pytest.raises(error) as raised:
        called(returning(*results), rng)
    assert re.fullmatch(
        rf"lstm_forward \(yours, .*test_student_functions\.py:\d+\): {re.escape(message)}", str(raised.value)
    )


def test_wrong_dtypes_of_a_float32_model(rng):
    with pytest.raises(TypeError, match="h has dtype float16, expected float32 or float64"):
        called(returning(RIGHT.astype(np.float16), 1), rng, np.float32)
    with pytest.raises(ValueError, match=re.escape("h[0, 0, 0] is inf, expected finite numbers")):
        called(returning(RIGHT * 1e200, 1), rng, np.float32)


def test_the_shapes_of_gradients_are_those_of_the_forward(rng):
    x, h0, *weights = arguments(rng)
    h, cache = wrapped("lstm_forward")(x, h0, *weights)
    right = PLAIN["lstm_backward"](h, cache.value)
    expected = {
        "dx": "(N, T, D) = (2, 3, 4)",
        "dh0": "(N, H) = (2, 5)",
        "dWx": "(D, 4H) = (4, 20)",
        "dWh": "(H, 4H) = (5, 20)",
        "db": "(4H,) = (20,)",
    }
    for place, (name, shape) in enumerate(expected.items()):
        wrong = [*right[:place], right[place][..., 1:], *right[place + 1 :]]
        message = f"{name} has shape {wrong[place].shape}, expected {shape}"
        with pytest.raises(ValueError, match=re.escape(message)):
            wrapped("lstm_backward", lambda dh, cache, wrong=wrong: wrong)(h, cache)


def test_a_function_with_one_result(rng):
    W, tokens = rng.standard_normal((V, D)), np.array([[1, 2], [3, 4]])
    out, cache = wrapped("word_embedding_forward")(tokens, W)
    (dW,) = wrapped("word_embedding_backward")(out, cache)
    np.testing.assert_array_equal(dW[1:5], W[1:5])
    for result, error, message in (
        (None, ValueError, "returned None, expected an array dW; is its return missing?"),
        ((W,), TypeError, "dW is a tuple of ndarray, expected an array"),
        (W.T, ValueError, "dW has shape (4, 6), expected (V, D) = (6, 4)"),
    ):
        with pytest.raises(error, match=re.escape(message)):
            wrapped("word_embedding_backward", lambda *_, result=result: result)(out, cache)


@pytest.mark.parametrize("loss", [None, "3", True, np.ones(1), 1j, np.array(3)])
def test_a_loss_that_is_no_number(loss, rng):
    function = wrapped("temporal_softmax_loss", lambda x, y, mask: (loss, x))
    with pytest.raises(
        TypeError, match=r"temporal_softmax_loss \(yours, .*\): loss is .*, expected a number"
    ):
        function(rng.standard_normal((N, T, V)), np.zeros((N, T), int), np.ones((N, T), bool))


def test_a_loss_that_is_not_finite(rng):
    function = wrapped("temporal_softmax_loss", lambda x, y, mask: (np.float64(np.inf), x))
    with pytest.raises(ValueError, match="loss is inf, expected finite numbers$"):
        function(rng.standard_normal((N, T, V)), np.zeros((N, T), int), np.ones((N, T), bool))


def test_numbers_that_were_not_finite_before(rng):
    """Parameters that have diverged are not the function's fault."""
    given = arguments(rng)
    given[3][0, 0] = np.nan
    message = re.escape("h[0, 0, 0] is nan, expected finite numbers; not finite before the call: Wh")
    with pytest.raises(ValueError, match=message + "$"):
        wrapped("lstm_forward")(*given)


# ---------------------------------------------------------------- the place of a function


class Callable:
    def __call__(self, *_):
        return None

    def method(self, *_):
        return None


def a_function():
    pass


def test_places_of_functions():
    here = r".*test_student_functions\.py"
    line = a_function.__code__.co_firstlineno
    for function in (a_function, functools.partial(a_function), functools.wraps(a_function)(lambda: None)):
        assert re.fullmatch(rf"{here}:{line}", place_of(function))
    for function in (Callable(), Callable().method):
        assert re.fullmatch(rf"{here}:\d+", place_of(function))
    assert place_of(len) == ""
    assert wrapped("rnn_forward", len).title == "rnn_forward (yours)"


def test_places_below_the_working_directory_are_relative(tmp_path, monkeypatch):
    names = {}
    exec(compile("\ndef f():\n    pass", str(tmp_path / "solution.py"), "exec"), names)
    assert place_of(names["f"]) == f"{tmp_path / 'solution.py'}:2"
    monkeypatch.chdir(tmp_path)
    assert place_of(names["f"]) == "solution.py:2"


def compiled(path):
    names = {}
    exec(compile("\ndef f():\n    pass", path, "exec"), names)
    return names["f"]


def test_places_in_a_notebook(monkeypatch):
    """IPython compiles cells under paths of its own, and knows their numbers."""
    compilerop = pytest.importorskip("IPython.core.compilerop")
    compiler = compilerop.CachingCompiler()
    path = compiler.cache("\ndef f():\n    pass", number=12)
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: SimpleNamespace(compile=compiler))
    assert place_of(compiled(path)) == "notebook cell In [12], line 2"
    assert place_of(compiled("other.py")) == "other.py:2"
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: None)
    assert place_of(compiled("<ipython-input-7-0123456789ab>")) == "notebook cell In [7], line 2"
