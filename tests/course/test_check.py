"""Checks of students' functions: whose they are, exceptions, shapes, writes, numbers."""

import inspect
import re

import numpy as np
import pytest

from rnnlab.course import EXERCISES, WrongFunction, check, examine
from rnnlab.course.check import whose

STEP = EXERCISES["lstm_step"]


def step_with(change):
    """The right backward of an LSTM step, whose results are changed."""

    def lstm_step_backward(dnext_h, dnext_c, cache):
        return change(*STEP.backward(dnext_h, dnext_c, cache))

    return lstm_step_backward


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", EXERCISES)
@pytest.mark.parametrize("seed", range(5))
def test_the_right_functions_pass(name, seed):
    exercise = EXERCISES[name]
    report = examine(name, exercise.forward, exercise.backward, seed=seed)
    assert report.passed, str(report)
    assert {*report.errors} == {*exercise.results("forward"), *exercise.gradients}


def test_what_is_printed(capsys):
    def rnn_step_forward(x, prev_h, Wx, Wh, b):
        h = np.tanh(x @ Wx + prev_h @ Wh)
        return h, (x, prev_h, Wx, Wh, h)

    with pytest.raises(WrongFunction, match="b does not reach next_h") as raised:
        check("rnn_step", rnn_step_forward, seed=0)
    assert capsys.readouterr().out == ""  # the exception says it all
    line = inspect.getsourcelines(rnn_step_forward)[1]
    printed = str(raised.value)
    assert f"test_check.py:{line}" in printed
    assert "next_h error" in printed
    assert "   wrong" in printed


def test_a_notebook_shows_a_report_once(capsys):
    report = check("rnn_step", EXERCISES["rnn_step"].forward, seed=0)
    printed = capsys.readouterr().out
    report._ipython_display_()
    assert capsys.readouterr().out == ""
    examine("rnn_step", EXERCISES["rnn_step"].forward, seed=0)._ipython_display_()
    assert capsys.readouterr().out == printed


def test_whose_function():
    assert whose(STEP.forward) == "lstm_step_forward of rnnlab.plain.lstm, the library's own"
    assert whose(np.tanh).startswith("tanh")


def test_the_backward_of_a_wrong_forward_is_compared_with_its_own_numeric_gradient():
    """Marks for the backward do not depend on the forward."""

    def forward(x, prev_h, Wx, Wh, b):
        h = np.tanh(x @ Wx + prev_h @ Wh + 2 * b)
        return h, (x, prev_h, Wx, Wh, h)

    def backward(dh, cache):
        dx, dprev_h, dWx, dWh, db = EXERCISES["rnn_step"].backward(dh, cache)
        return dx, dprev_h, dWx, dWh, 2 * db

    report = examine("rnn_step", forward, backward, seed=0)
    assert report.wrong == ["next_h"]


@pytest.mark.parametrize("scale", [0, 1])
def test_the_gradient_of_an_input_that_a_wrong_forward_ignores_is_wrong(scale):
    """It is zero whatever the student knows."""

    def forward(x, prev_h, Wx, Wh, b):
        h = np.tanh(x @ Wx + prev_h @ Wh)
        return h, (x, prev_h, Wx, Wh, h)

    def backward(dh, cache):
        dx, dprev_h, dWx, dWh, db = EXERCISES["rnn_step"].backward(dh, cache)
        return dx, dprev_h, dWx, dWh, scale * db

    report = examine("rnn_step", forward, backward, seed=0)
    assert report.wrong == ["next_h", "db"]
    assert "db cannot be checked: rnn_step_forward does not depend on b" in str(report)


@pytest.mark.parametrize("name", [name for name, each in EXERCISES.items() if each.backward is not None])
def test_the_right_backward_of_a_wrong_forward_has_all_gradients_right(name):
    """Also those that are zero for the correct forward."""
    exercise = EXERCISES[name]

    def forward(*arguments, **options):
        *results, cache = exercise.forward(*arguments, **options)
        return *(1.5 * each for each in results), cache

    def backward(*arguments, **options):
        *douts, cache = arguments
        scaled = [None if each is None else 1.5 * each for each in douts]
        return exercise.backward(*scaled, cache, **options)

    report = examine(name, forward, backward, seed=0)
    assert report.wrong
    assert not {*report.wrong} & {*exercise.gradients}


def test_functions_that_return_zeros_have_nothing_right():
    def forward(x, prev_h, Wx, Wh, b):
        return np.zeros_like(prev_h), (x, prev_h, Wx, Wh, b)

    report = examine("rnn_step", forward, lambda dh, cache: tuple(map(np.zeros_like, cache)), seed=0)
    assert report.wrong == ["next_h", "dx", "dprev_h", "dWx", "dWh", "db"]


def test_a_report_without_an_earlier_one():
    """It has the findings on the backward alone."""
    exercise = EXERCISES["rnn_step"]

    def forward(x, prev_h, Wx, Wh, b):
        h = np.tanh(x @ Wx + prev_h @ Wh + 2 * b)
        b += 1
        return h, (x, prev_h, Wx, Wh, h)

    def backward(dh, cache):
        dx, dprev_h, dWx, dWh, db = exercise.backward(dh, cache)
        return dx.T, dprev_h, dWx, 2 * dWh, 2 * db

    earlier = examine("rnn_step", forward, seed=0)
    both = examine("rnn_step", forward, backward, seed=0)
    report = both.without(earlier, exercise.gradients)
    assert {*report.errors} == {"dprev_h", "dWx", "dWh", "db"}
    assert report.wrong == ["dWh"]
    assert ["dx" in each for each in report.problems] == [True]
    assert [*earlier.problems, *report.problems] == both.problems
    assert [*earlier.diagnoses, *report.diagnoses] == both.diagnoses
    assert earlier.problems
    assert earlier.diagnoses


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda *results: results[:5], "lstm_step_backward returns 5 results, expected 6: dx, dprev_h"),
        (
            lambda dx, *rest: (dx.T, *rest),
            r"dx has shape \(D, N\) = .*, expected \(N, D\) = .*: it is transposed",
        ),
        (lambda *r: (*r[:5], np.ones(3)), r"db has shape .*, expected \(4H,\)"),
        (lambda dx, *rest: (dx * np.nan, *rest), "dx has NaN or infinite elements"),
        (lambda dx, *rest: (dx.ravel(), *rest), "it has the correct number of elements, reshape it"),
        (
            lambda *results: 1 / 0,
            "lstm_step_backward raises ZeroDivisionError: division by zero, in line .*1 / 0",
        ),
    ],
)
def test_problems(change, problem):
    report = examine("lstm_step", None, step_with(change), seed=0)
    assert not report.passed
    assert any(re.search(problem, each) for each in report.problems), report.problems


def test_the_other_gradients_are_compared_where_one_has_a_wrong_shape():
    report = examine("lstm_step", None, step_with(lambda *r: (*r[:5], np.ones((2, 2)))), seed=0)
    assert {*report.errors} == {"dx", "dprev_h", "dprev_c", "dWx", "dWh"}
    assert not report.wrong


def test_a_wrong_forward_that_fails_on_other_inputs():
    """It has no numeric gradient, with which its backward could be compared."""
    calls = []

    def forward(x, prev_h, Wx, Wh, b):
        calls.append(1)
        if len(calls) > 8:
            raise ValueError("late")
        next_h, cache = EXERCISES["rnn_step"].forward(x, prev_h, Wx, Wh, b)
        return 1.01 * next_h, cache

    report = examine("rnn_step", forward, EXERCISES["rnn_step"].backward, seed=0)
    assert report.unchecked
    assert report.wrong == ["next_h"]
    assert "rnn_step_backward cannot be checked: rnn_step_forward raises ValueError: late" in str(report)


def test_not_implemented():
    def rnn_forward(x, h0, Wx, Wh, b):
        raise NotImplementedError

    report = examine("rnn", rnn_forward, EXERCISES["rnn"].backward)
    assert report.problems == ["rnn_forward is not implemented yet"]


def softmax_with(shifted):
    """A temporal softmax loss of scores that are changed before np.exp."""

    def temporal_softmax_loss(x, y, mask):
        p = np.exp(shifted(x))
        p /= p.sum(axis=2, keepdims=True)
        truth = np.arange(x.shape[2]) == y[:, :, None]
        loss = -(np.log((p * truth).sum(axis=2)) * mask).sum() / len(x)
        return loss, (p - truth) * mask[:, :, None] / len(x)

    return temporal_softmax_loss


@pytest.mark.parametrize(
    ("shifted", "finite"),
    [(lambda x: x, False), (lambda x: np.clip(x, -5, 5), True), (lambda x: x - x.max(), False)],
    ids=["overflow", "clipped", "largest of all"],
)
def test_large_scores(shifted, finite):
    report = examine("temporal_softmax_loss", softmax_with(shifted), seed=0)
    assert not report.passed
    assert "where a large number is added to all scores of a step" in str(report)
    assert ("subtract the largest score of each row first" in str(report)) == (not finite)
    right = softmax_with(lambda x: x - x.max(axis=2, keepdims=True))
    assert examine("temporal_softmax_loss", right, seed=0).passed


def test_a_sigmoid_that_overflows():
    """Its results are compared with the correct ones, and its gradient on the other inputs."""

    def selector_forward(context, h, w, b):
        a = np.exp(h @ w + b)
        beta = (a / (1 + a))[:, None]
        return beta * context, selector.forward(context, h, w, b)[1]

    selector = EXERCISES["selector"]
    report = examine("selector", selector_forward, selector.backward, seed=0)
    (problem,) = report.problems
    assert problem.startswith("selector_forward: scaled has NaN or infinite elements; np.exp of a large num")
    assert "scipy.special.expit and np.tanh do not overflow" in problem
    assert problem.endswith("(where some biases are large)")
    assert not report.wrong


def test_a_sigmoid_that_is_clipped():
    """At a large number it is nearly 1."""

    def selector_forward(context, h, w, b):
        a = np.clip(h @ w + b, -15, 15)
        beta = (1 / (1 + np.exp(-a)))[:, None]
        return beta * context, None

    with np.errstate(all="raise"):
        assert examine("selector", selector_forward, seed=0).passed


def test_a_name_that_is_no_string():
    with pytest.raises(TypeError, match="exercise is an int, expected the name of an exercise"):
        examine(3, np.tanh)


def test_a_mask_with_gaps():
    def temporal_softmax_loss(x, y, mask):
        prefix = np.arange(x.shape[1]) < mask.sum(axis=1)[:, None]
        return EXERCISES["temporal_softmax_loss"].forward(x, y, prefix)

    report = examine("temporal_softmax_loss", temporal_softmax_loss, seed=0)
    assert "loss, dx are wrong where the mask has gaps" in str(report)


def test_a_batch_of_one():
    """The gradients are compared on the other inputs, on which the forward has results."""

    def rnn_step_forward(x, prev_h, Wx, Wh, b):
        next_h, cache = EXERCISES["rnn_step"].forward(x, prev_h, Wx, Wh, b)
        return np.squeeze(next_h), cache

    report = examine("rnn_step", rnn_step_forward, EXERCISES["rnn_step"].backward, seed=0)
    (problem,) = report.problems
    assert problem.startswith("rnn_step_forward: next_h has shape ")
    assert problem.endswith("(where N = 1)")
    assert (report.wrong, {*report.errors}) == ([], {*EXERCISES["rnn_step"].gradients})


def test_a_mistake_is_named_though_other_inputs_raise_an_exception():
    def rnn_step_forward(x, prev_h, Wx, Wh, b):
        if len(x) == 1:
            raise ValueError("one")
        h = np.tanh(x @ Wx + prev_h @ Wh)
        return h, None

    report = examine("rnn_step", rnn_step_forward, seed=0)
    (problem,) = report.problems
    assert "raises ValueError: one" in problem
    assert problem.endswith("(where N = 1)")
    assert "b does not reach next_h" in str(report)


@pytest.mark.slow
def test_options():
    """They are passed to functions that take them."""
    step, arnet = EXERCISES["attention_step"], EXERCISES["arnet"]

    def attention_step_forward(query, keys, memory, params, *, mask=None):
        return step.forward(query, keys, memory, params)

    def attention_step_backward(dcontext, cache, *, dweights=None):
        return step.backward(dcontext, cache)

    def arnet_backward(dloss, cache, *, detach_target=False):
        return arnet.backward(dloss, cache, detach_target=True)

    def without_options(query, keys, memory, params):
        return step.forward(query, keys, memory, params)

    report = examine(step.name, attention_step_forward, attention_step_backward, seed=0)
    assert "context, weights are wrong where mask is used" in str(report)
    assert "dWq" not in report.wrong  # dweights is not tried until the forward is right
    report = examine(step.name, None, attention_step_backward, seed=0)
    assert "dquery, dkeys, dWq, dv are wrong where dweights is used" in str(report)
    assert examine(step.name, without_options, step.backward, seed=0, own=True).errors["context"] <= 1e-7
    report = examine(arnet.name, None, arnet_backward, seed=0)
    assert report.wrong == ["dh", "dh0"]


def test_repeated_words():
    def discriminative_forward(thoughts, words, params):
        loss, cache = EXERCISES["discriminative"].forward(thoughts, words, params)
        return loss * (1 + (words[0, 0] == words[0, 1])), cache

    report = examine("discriminative", discriminative_forward, seed=0)
    assert "loss is wrong where a word comes twice or a caption has none" in str(report)


@pytest.mark.slow
def test_writes_into_the_callers_arrays():
    def backward(dnext_h, dnext_c, cache):
        dnext_c += 0 * dnext_h + 1
        cache[5][...] = 0
        return STEP.backward(dnext_h, dnext_c - 1, cache)

    report = examine("lstm_step", None, backward, seed=0)
    assert any(
        "writes into its argument dnext_c, which is the caller's array" in each for each in report.problems
    )
    assert any("writes into cache[5]: a cache may be used twice" in each for each in report.problems)


def test_wrong_calls():
    with pytest.raises(
        ValueError, match="no function is given, expected lstm_step_forward and lstm_step_backward"
    ):
        check("lstm_step")
    with pytest.raises(ValueError, match="softmax_loss returns its gradient as well"):
        check("softmax_loss", EXERCISES["softmax_loss"].forward, STEP.backward)
    with pytest.raises(ValueError, match="exercise is 'gates', expected one of"):
        check("gates", STEP.forward)


@pytest.mark.parametrize("seed", range(8))
def test_float32_is_wrong_whatever_the_inputs(seed):
    """Its error is around the limit, so that chance decided."""

    def single(arrays):
        return [each.astype(np.float32) for each in arrays]

    def forward(*inputs):
        return EXERCISES["rnn_step"].forward(*single(inputs))

    def backward(dnext_h, cache):
        return EXERCISES["rnn_step"].backward(*single([dnext_h]), cache)

    report = examine("rnn_step", forward, backward, seed=seed)
    assert report.wrong == ["next_h", "dx", "dprev_h", "dWx", "dWh", "db"]
    assert max(report.errors.values()) < 1e-6
    assert "next_h is computed in float32, expected float64, the type of the inputs." in str(report)
    assert "dx, dprev_h, dWx, dWh and db are computed in float32" in str(report)
    report = examine("rnn_step", forward, EXERCISES["rnn_step"].backward, seed=seed)
    assert report.wrong == ["next_h"]  # the gradients are in float64


def test_a_small_number_that_is_added():
    def loss(x, y, mask):
        right, dx = EXERCISES["temporal_softmax_loss"].forward(x, y, mask)
        return right * (1 + 3e-6), dx

    report = examine("temporal_softmax_loss", loss, seed=0)
    assert report.wrong == ["loss"]
    assert "loss is right to about 5 digits, expected more: is something computed in float32" in str(report)
