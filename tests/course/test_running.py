"""Runs of a function note everything that goes wrong."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rnnlab.course.exercises import EXERCISES
from rnnlab.course.running import FunctionStopped, Runs, costs_a_result, raised
from rnnlab.plain.rnn import rnn_step_backward, rnn_step_forward

STEP = EXERCISES["rnn_step"]
DRAWS = [STEP.draw(np.random.default_rng(seed)) for seed in range(3)]


def test_forward_and_backward() -> None:
    forward = Runs(STEP, "forward", rnn_step_forward, DRAWS)
    backward = Runs(STEP, "backward", rnn_step_backward, DRAWS, forward.caches)
    assert forward.fitting
    assert backward.fitting
    assert [set(found) for found in backward.values] == 3 * [{"dx", "dprev_h", "dWx", "dWh", "db"}]
    assert not forward.problems + backward.problems


def test_nothing_is_run_after_an_exception() -> None:
    calls = []

    def forward(*arguments: Any) -> Any:
        calls.append(1)
        if len(calls) == 4:
            raise ValueError("no")
        return rnn_step_forward(*arguments)

    runs = Runs(STEP, "forward", forward, DRAWS)  # three calls for the first inputs
    assert (len(calls), len(runs.values), runs.complete) == (4, 1, False)
    assert runs.problems[0].startswith("rnn_step_forward raises ValueError: no")


def test_wrong_shapes_are_left_out() -> None:
    runs = Runs(STEP, "forward", lambda *inputs: (rnn_step_forward(*inputs)[0].T, None), DRAWS)
    assert runs.complete
    assert not runs.fitting
    assert runs.values == [{}, {}, {}]
    assert len(runs.problems) == 1  # it is the same of all sizes
    assert runs.problems[0].endswith("it is transposed")


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_numbers_that_are_not_finite(number: float) -> None:
    runs = Runs(STEP, "forward", lambda x, h, *_: (number * np.ones(h.shape), None), DRAWS)
    assert runs.problems == ["rnn_step_forward: next_h has NaN or infinite elements"]


def test_writes_into_arguments_and_caches() -> None:
    def careless(dnext_h: Any, cache: Any) -> Any:
        gradients = rnn_step_backward(dnext_h, cache)
        dnext_h += 1
        cache[0][...] = 0
        return gradients

    caches = Runs(STEP, "forward", rnn_step_forward, DRAWS).caches
    problems = Runs(STEP, "backward", careless, DRAWS, caches).problems
    assert ["its argument dnext_h" in each or "cache[0]" in each for each in problems] == [True, True]


def test_exceptions_in_words() -> None:
    assert raised("f", NotImplementedError("TODO")) == "f is not implemented yet"

    def backward():
        raise NotImplementedError

    for function, said in (("Model.loss", "Model.loss calls backward, which"), ("a.backward", "a.backward")):
        with pytest.raises(NotImplementedError) as caught:
            backward()
        assert raised(function, caught.value) == f"{said} is not implemented yet"
    assert raised("f", FunctionStopped("has no result after 5 s")) == "f has no result after 5 s"
    assert raised("f", ValueError("bad")) == "f raises ValueError: bad"


@pytest.mark.parametrize(
    ("exercise", "change", "hint"),
    [
        ("rnn_step", lambda found: {"dWx": found["dWx"].T}, "it is transposed"),
        ("rnn_step", lambda found: {"db": found["db"][None]}, "as from keepdims=True"),
        ("rnn", lambda found: {"dx": found["dx"].transpose(1, 0, 2)}, "its axes are in another order"),
        ("temporal_affine", lambda found: {"dw": found["dw"].ravel()}, "reshape it"),
        (
            "temporal_affine",
            lambda found: {"db": np.zeros(found["dx"].shape[0] * found["dx"].shape[1])},
            "db has shape (NT,) = ",
        ),
        ("temporal_affine", lambda found: {"db": found["dx"][0, :, 0]}, "summed over the wrong axis?"),
    ],
)
def test_hints_of_wrong_shapes(exercise: str, change: Any, hint: str) -> None:
    task = EXERCISES[exercise]
    draws = [task.draw(np.random.default_rng(seed)) for seed in range(2)]

    def backward(*arguments: Any) -> Any:
        assert task.backward is not None
        found = task.named("backward", task.backward(*arguments))
        return tuple((found | change(found)).values())

    caches = Runs(task, "forward", task.forward, draws).caches
    (problem,) = Runs(task, "backward", backward, draws, caches).problems
    assert hint in problem


@pytest.mark.parametrize(("letter", "name"), [("N", "the batch"), ("T", "time")])
def test_the_axis_that_is_not_summed_over(letter: str, name: str) -> None:
    task = EXERCISES["temporal_affine"]
    draw = task.draw(np.random.default_rng(0))
    size = draw.sizes[letter]

    def backward(*arguments: Any) -> Any:
        assert task.backward is not None
        *others, db = task.backward(*arguments)
        return (*others, np.ones((size, 1)) * db)

    caches = Runs(task, "forward", task.forward, [draw]).caches
    (problem,) = Runs(task, "backward", backward, [draw], caches).problems
    assert problem.endswith(f"it is not summed over {name}")


def test_results_in_a_list() -> None:
    runs = Runs(STEP, "forward", lambda *inputs: list(rnn_step_forward(*inputs)), DRAWS)
    assert runs.fitting
    assert Runs(STEP, "backward", lambda *given: list(rnn_step_backward(*given)), DRAWS, runs.caches).fitting


def test_a_backward_that_empties_its_cache() -> None:
    def emptying(dnext_h: Any, cache: Any) -> Any:
        return rnn_step_backward(dnext_h, [cache.pop(0) for _ in range(len(cache))])

    caches = [list(cache) for cache in Runs(STEP, "forward", rnn_step_forward, DRAWS).caches]
    problems = Runs(STEP, "backward", emptying, DRAWS, caches).problems
    expected = "rnn_step_backward removes arrays from its cache, such as cache[0]: a cache may be used twice"
    assert problems == [expected]


def test_a_forward_that_keeps_values_between_calls() -> None:
    kept: dict[Any, Any] = {}

    def forward(x: Any, prev_h: Any, *weights: Any) -> Any:
        prev_h = kept.get(x.shape, prev_h)
        kept[x.shape] = rnn_step_forward(x, prev_h, *weights)[0]
        return kept[x.shape], None

    (problem,) = Runs(STEP, "forward", forward, DRAWS).problems
    assert problem.startswith(
        "rnn_step_forward returns other numbers in a second call with the same arguments"
    )
    assert costs_a_result(problem)

    def rounded(*arguments: Any) -> Any:
        kept["factor"] = 2.0 - kept.get("factor", 1.0 + 1e-15)
        h, cache = rnn_step_forward(*arguments)
        return h * kept["factor"], cache

    assert not Runs(STEP, "forward", rounded, DRAWS).problems

    def once(*arguments: Any) -> Any:
        if kept.pop("again", False):
            raise ValueError("no")
        kept["again"] = True
        return rnn_step_forward(*arguments)

    (problem,) = Runs(STEP, "forward", once, DRAWS[:1]).problems
    assert "raises ValueError: no" in problem
    assert problem.endswith(", in a second call with the same arguments")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda db: None, "db is None, expected an array"),
        (lambda db: list(db), "db is a list, expected an array"),
        (lambda db: db.astype(int), "db has dtype int64, expected float64: an array of integers loses fract"),
        (lambda db: db.astype(np.float16), "db has dtype float16, expected float64"),
        pytest.param(
            np.asmatrix,
            "db is an np.matrix, expected an array",
            marks=pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),
        ),
    ],
)
def test_one_result_that_is_no_array_of_floats(wrong: Any, message: str) -> None:
    caches = Runs(STEP, "forward", rnn_step_forward, DRAWS).caches

    def backward(*given: Any) -> Any:
        *others, db = rnn_step_backward(*given)
        return *others, wrong(db)

    runs = Runs(STEP, "backward", backward, DRAWS, caches)
    (problem,) = runs.problems
    assert problem.startswith(f"rnn_step_backward: {message}")
    assert [set(found) for found in runs.values] == 3 * [{"dx", "dprev_h", "dWx", "dWh"}]


def test_what_a_function_has_returned_stays() -> None:
    """It must not be in memory that the next call uses again."""
    buffers: dict[Any, Any] = {}

    def forward(*arguments: Any) -> Any:
        next_h, cache = rnn_step_forward(*arguments)
        out = buffers.setdefault(next_h.shape, np.empty(next_h.shape))
        out[...] = next_h
        return out, (*cache[:-1], out)

    (problem,) = Runs(STEP, "forward", forward, DRAWS).problems
    assert "writes into arrays that an earlier call has returned" in problem
    assert costs_a_result(problem)


def test_a_cache_is_used_twice() -> None:
    calls: list[int] = []

    def backward(dnext_h: Any, cache: Any) -> Any:
        calls.append(1)
        dx, *others = rnn_step_backward(dnext_h, cache)
        return dx * len(calls), *others

    caches = Runs(STEP, "forward", rnn_step_forward, DRAWS).caches
    (problem,) = Runs(STEP, "backward", backward, DRAWS, caches).problems
    assert problem.startswith("rnn_step_backward returns other numbers in a second call with the same cache")

    def emptying(dnext_h: Any, cache: Any) -> Any:
        return rnn_step_backward(dnext_h, tuple(cache))

    iterators = list(map(iter, caches))
    (problem,) = Runs(STEP, "backward", emptying, DRAWS, iterators).problems
    assert "raises ValueError" in problem
    assert problem.endswith(", in a second call with the same cache: a cache may be used twice")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda params: params.pop("b"), "removes arrays from its argument params, such as params['b']"),
        (
            lambda params: params.update(u=params["b"]),
            "adds arrays to its argument params, such as params['u'",
        ),
        (
            lambda params: np.add(params["b"], 1, out=params["b"]),
            "writes into its argument params, such as pa",
        ),
    ],
)
def test_changes_of_a_dict(change: Any, message: str) -> None:
    task = EXERCISES["attention_keys"]

    def forward(memory: Any, params: Any) -> Any:
        results = task.forward(memory, {name: array.copy() for name, array in params.items()})
        change(params)
        return results

    (problem,) = Runs(task, "forward", forward, [task.draw(np.random.default_rng(0))]).problems
    assert problem.startswith(f"attention_keys_forward {message}")
    assert costs_a_result(problem)


def test_changes_of_options() -> None:
    task = EXERCISES["attention_step"]
    rng = np.random.default_rng(0)
    draws = {draw.note: draw for draw in task.hard_draws(rng)}

    def forward(*arguments: Any, mask: Any = None) -> Any:
        results = task.forward(*arguments, mask=mask)
        mask[-1] = True
        return results

    def backward(dcontext: Any, cache: Any, *, dweights: Any = None) -> Any:
        assert task.backward is not None
        gradients = task.backward(dcontext, cache, dweights=dweights)
        dweights += 1
        return gradients

    (problem,) = Runs(task, "forward", forward, [draws["where mask is used"]]).problems
    assert "writes into its argument mask" in problem
    draw = draws["where dweights is used"]
    caches = Runs(task, "forward", task.forward, [draw]).caches
    (problem,) = Runs(task, "backward", backward, [draw], caches).problems
    assert "writes into its argument dweights" in problem


def test_caches_that_are_objects() -> None:
    def forward(*arguments: Any) -> Any:
        next_h, (x, prev_h, Wx, Wh, _) = rnn_step_forward(*arguments)
        return next_h, SimpleNamespace(x=x, prev_h=prev_h, Wx=Wx, Wh=Wh, next_h=next_h)

    def backward(dnext_h: Any, cache: Any) -> Any:
        gradients = rnn_step_backward(dnext_h, tuple(vars(cache).values()))
        cache.next_h **= 2
        return gradients

    caches = Runs(STEP, "forward", forward, DRAWS[:1]).caches
    (problem,) = Runs(STEP, "backward", backward, DRAWS[:1], caches).problems
    assert problem == "rnn_step_backward writes into cache.next_h: a cache may be used twice"


def test_a_result_has_one_problem() -> None:
    """Its shape in letters may differ from draw to draw, where two letters have the same size by chance."""
    task = EXERCISES["rnn"]

    def longer(*arguments: Any) -> Any:
        h, cache = task.forward(*arguments)
        return np.concatenate([h, h[:, :1]], axis=1), cache

    draws = [task.draw(np.random.default_rng(seed)) for seed in range(8)]
    assert len(Runs(task, "forward", longer, draws).problems) == 1


def test_exchanged_results() -> None:
    task = EXERCISES["temporal_affine"]
    draw = task.draw(np.random.default_rng(0))

    def backward(*arguments: Any) -> Any:
        assert task.backward is not None
        dx, dw, db = task.backward(*arguments)
        return dx, db, dw

    caches = Runs(task, "forward", task.forward, [draw]).caches
    of_dw, of_db = Runs(task, "backward", backward, [draw], caches).problems
    assert of_dw.endswith(": it is exchanged with db, look at the order of the results")
    assert of_db.endswith(": it is exchanged with dw, look at the order of the results")


def test_the_function_of_a_line() -> None:
    def helper(x: Any) -> Any:
        return x + None

    def forward(*arguments: Any) -> Any:
        return helper(arguments[0])

    (problem,) = Runs(STEP, "forward", forward, DRAWS).problems
    assert problem.endswith(" of helper: return x + None")


def test_shapes_in_the_letters_of_the_expected_axes() -> None:
    """P is always 3, which may be the size of a letter that is drawn, too."""
    task = EXERCISES["discriminative"]
    draw = task.draw(np.random.default_rng(0))
    assert 3 in [draw.sizes[letter] for letter in "NLH"]

    def backward(*arguments: Any) -> Any:
        assert task.backward is not None
        dthoughts, dparams = task.backward(*arguments)
        return dthoughts.swapaxes(1, 2), dparams

    caches = Runs(task, "forward", task.forward, [draw]).caches
    (problem,) = Runs(task, "backward", backward, [draw], caches).problems
    assert "dthoughts has shape (N, H, L) = " in problem
