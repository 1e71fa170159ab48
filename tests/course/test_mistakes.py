"""Every mistake is one, and its only one: the source is wrong, and right once it is fixed."""

from __future__ import annotations

import ast
import copy
import dataclasses
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from ..plain.cases import GATES, PLAIN
from .mistakes import HELD_OUT, KINDS, MISTAKES, RIGHT, names

WRONG, EQUAL = 1e-3, 1e-10  # relative distances
LOSSES = ("softmax_loss", "temporal_softmax_loss", "doubly_stochastic_loss")

WRONG_ONES = [*MISTAKES, *HELD_OUT]
by_name = {"ids": lambda case: case.name}
every_mistake = pytest.mark.parametrize("mistake", WRONG_ONES, **by_name)


class Result(NamedTuple):
    """What an implementation returns, and the names of the arguments that it changed."""

    forward: list[Any]
    backward: list[Any]
    again: list[Any]  # what the backward returns when it is called once more with the same cache
    written: list[str]


# ------------------------------------------------------------------------------------------ inputs


class Sizes(NamedTuple):
    N: int = 3
    T: int = 4
    D: int = 5
    H: int = 6
    L: int = 7
    A: int = 8
    V: int = 10


DISTINCT = Sizes()
SQUARE = Sizes(D=6, A=6)  # each weight of one gate is square


def arguments(exercise: str, rng: np.random.Generator, sizes: Sizes) -> dict[str, Any]:
    """The positional arguments of the forward, by name."""
    N, T, D, H, L, A, V = sizes
    normal = rng.standard_normal
    cell = exercise.removesuffix("_step")
    if cell in GATES:
        G = GATES[cell] * H
        weights = {"Wx": normal((D, G)), "Wh": normal((H, G)) / 2, "b": normal(G)}
        if cell == exercise:
            return {"x": normal((N, T, D)), "h0": normal((N, H)), **weights}
        states = {"prev_h": normal((N, H))} | ({"prev_c": normal((N, H))} if cell == "lstm" else {})
        return {"x": normal((N, D)), **states, **weights}
    additive = {"Wq": normal((H, A)), "Wm": normal((D, A)), "b": normal(A), "v": normal(A)}
    if exercise == "target_attention":
        additive["Wm"] = normal((H, A))
        return {"h": normal((N, T, H)), "h0": normal((N, H)), "params": additive}
    if exercise == "attention_keys":
        return {"memory": normal((N, L, D)), "params": additive}
    if exercise == "attend":
        return {"query": normal((N, H)), "memory": normal((N, L, D)), "params": additive}
    if exercise == "attention_step":
        arrays = {"query": normal((N, H)), "keys": normal((N, L, A)), "memory": normal((N, L, D))}
        return {**arrays, "params": additive}
    if exercise == "arnet":
        R = A
        shapes = {"Wx": (H, 4 * R), "Wh": (R, 4 * R), "b": (4 * R,), "W": (R, H), "b_out": (H,)}
        params = {name: normal(shape) for name, shape in shapes.items()}
        return {"h": normal((N, T, H)), "h0": normal((N, H)), "params": params}
    if exercise == "discriminative":
        words = np.array([[1, 1, 4], [-1, 0, -1], [2, 3, -1]])
        return {"thoughts": normal((N, L, H)), "words": words, "params": {"W": normal((H, V))}}
    if exercise == "selector":
        return {"context": normal((N, D)), "h": normal((N, H)), "w": normal(H), "b": normal(1)}
    if exercise == "word_embedding":
        return {"x": np.array([[2, 0, 2, 1], [1, 0, 7, 0], [7, 1, 1, 3]]), "W": normal((V, D))}
    if exercise == "affine":
        return {"x": normal((N, 2, D)), "w": normal((2 * D, 2 * H)), "b": normal(2 * H)}
    if exercise == "temporal_affine":
        return {"x": normal((N, T, D)), "w": normal((D, H)), "b": normal(H)}
    if exercise == "softmax_loss":
        return {"x": normal((N, V)), "y": rng.integers(0, V, N)}
    if exercise == "temporal_softmax_loss":
        mask = np.array([[1, 1, 0, 0], [1, 1, 1, 1], [1, 1, 1, 0]], bool)
        return {"x": normal((N, T, V)), "y": rng.integers(0, V, (N, T)), "mask": mask}
    if exercise == "doubly_stochastic_loss":
        return {"weights": rng.random((N, T, L)), "lengths": np.array([2, 4, 3])}
    raise ValueError(f"no arguments for {exercise}")


# ------------------------------------------------------------------------------------------ runs


def functions(case: Any, source: str) -> list[Callable[..., Any]]:
    """The functions of the exercise: those of the source, and those of rnnlab.plain that it lacks."""
    namespace: dict[str, Any] = {}
    exec(compile(source, case.name, "exec"), namespace)
    return [namespace.get(name, getattr(PLAIN, name)) for name in function_names(case.exercise)]


def function_names(exercise: str) -> list[str]:
    return [exercise] if exercise in LOSSES else [f"{exercise}_forward", f"{exercise}_backward"]


def options(function: Callable[..., Any], rng: np.random.Generator, sizes: Sizes) -> dict[str, Any]:
    """Values of the keyword-only arguments that change what the function computes."""
    choices = {
        "mask": rng.random((sizes.N, sizes.L)) < 0.6,
        "dweights": rng.standard_normal((sizes.N, sizes.L)),
    }
    taken = [p.name for p in inspect.signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY]
    return {name: choices[name] for name in taken if name in choices}


def run(code: list[Callable[..., Any]], reference: list[Callable[..., Any]], exercise: str, sizes: Sizes):
    """Call forward and backward, with the keyword-only arguments that the functions of ``reference`` take."""
    rng = np.random.default_rng(231)
    inputs = arguments(exercise, rng, sizes)
    chosen = [options(function, rng, sizes) for function in reference]
    before = copy.deepcopy(inputs)
    if exercise in LOSSES:
        loss, dx = code[0](*inputs.values(), **chosen[0])
        return Result([loss], [dx], [dx], changed(before, inputs))
    *outputs, cache = code[0](*inputs.values(), **chosen[0])
    kept = copy.deepcopy(outputs)
    plain_outputs = getattr(PLAIN, f"{exercise}_forward")(*before.values())[:-1]
    # the gradient of one output is enough for attention, whose second one is an option of the backward
    count = 2 if exercise == "lstm_step" else 1
    douts = {f"dout {k}": 1.5 * rng.standard_normal(np.shape(plain_outputs[k]))[()] for k in range(count)}
    douts_before = copy.deepcopy(douts)
    grads = copy.deepcopy(listed(code[1](*douts.values(), cache, **chosen[1])))
    written = changed(before, inputs) + changed(douts_before, douts)
    again = listed(code[1](*douts_before.values(), cache, **chosen[1]))
    return Result(kept, grads, again, written)


def listed(results: Any) -> list[Any]:
    return list(results) if isinstance(results, tuple) else [results]


def changed(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    return [name for name in before if distance(before[name], after[name]) > 0]


def distance(found: Any, expected: Any) -> float:
    """The largest relative distance of the arrays, infinity for a different shape or structure."""
    if isinstance(expected, dict):
        if not isinstance(found, dict) or set(found) != set(expected):
            return np.inf
        return distance([found[name] for name in expected], list(expected.values()))
    if isinstance(expected, list | tuple):
        if len(found) != len(expected):
            return np.inf
        parts = [distance(one, other) for one, other in zip(found, expected, strict=True)]
        return float(np.max(parts, initial=0))  # NaN if one of them is
    if np.shape(found) != np.shape(expected):
        return np.inf
    size = np.linalg.norm(np.asarray(expected, float))
    return float(np.linalg.norm(np.subtract(found, expected, dtype=float)) / max(size, 1e-6))


def compare(case: Any, source: str, sizes: Sizes) -> tuple[float, list[str]]:
    """The distance of a source's results from those of rnnlab.plain, and the arguments that it changed."""
    code = functions(case, source)
    reference = [getattr(PLAIN, name) for name in function_names(case.exercise)]
    with np.errstate(over="ignore"):
        found, expected = run(code, code, case.exercise, sizes), run(reference, code, case.exercise, sizes)
    return distance(found[:3], expected[:3]), found.written


# ------------------------------------------------------------------------------------------ tests


@pytest.mark.one_in(3)
@every_mistake
def test_a_mistake_is_wrong_and_right_once_fixed(mistake):
    for sizes in (DISTINCT, SQUARE):
        found, written = compare(mistake, mistake.fixed, sizes)
        assert found < EQUAL
        assert not written
        if mistake.square and sizes is DISTINCT:
            with pytest.raises(ValueError, match="mismatch|aligned|broadcast"):
                compare(mistake, mistake.source, sizes)
            continue
        found, written = compare(mistake, mistake.source, sizes)
        if mistake.kind == "writes into an input":
            assert written
        else:
            assert found > WRONG
            assert not written


@pytest.mark.parametrize("case", RIGHT, **by_name)
def test_a_right_one_is_right(case):
    for sizes in (DISTINCT, SQUARE):
        found, written = compare(case, case.source, sizes)
        assert found < EQUAL
        assert not written


@pytest.mark.parametrize("mistake", [one for one in WRONG_ONES if one.kind == "wrong shape"], **by_name)
def test_a_wrong_shape_is_one(mistake):
    assert compare(mistake, mistake.source, DISTINCT)[0] == np.inf


@pytest.mark.parametrize("exercise", sorted({case.exercise for case in [*WRONG_ONES, *RIGHT]}))
def test_a_source_defines_functions_of_its_exercise(exercise):
    """They take the arguments of those of rnnlab.plain, without some keywords, and need NumPy alone."""
    for case in [*WRONG_ONES, *RIGHT]:
        if case.exercise != exercise:
            continue
        tree = ast.parse(case.source)
        defined = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
        assert len(set(defined)) == len(defined), case.name
        assert set(defined) & set(function_names(exercise)), case.name
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                assert ast.unparse(node) == "import numpy as np", case.name
        for function, name in zip(functions(case, case.source), function_names(exercise), strict=True):
            student, plain = (inspect.signature(f).parameters for f in (function, getattr(PLAIN, name)))
            assert positional(student) == positional(plain), case.name
            assert {*student} <= {*plain}, case.name


def positional(parameters):
    return [name for name, each in parameters.items() if each.kind is not each.KEYWORD_ONLY]


def test_what_is_expected_is_specific():
    for mistake in WRONG_ONES:
        assert mistake.kind in KINDS, mistake.name
        assert mistake.expected, mistake.name
        words = [word for words in mistake.expected for word in words]
        assert all(word.strip() == word and word for word in words), mistake.name
        for message in (
            f"{mistake.exercise} is right",
            f"{mistake.exercise}_backward is wrong: its gradient differs from the numeric gradient",
            f"{mistake.exercise}_forward is wrong: its output differs from the expected output by 0.3",
        ):
            assert not names(message, mistake.expected), mistake.name


def test_names_and_sources_are_unique():
    all_names = [case.name for case in [*WRONG_ONES, *RIGHT]]
    assert len(set(all_names)) == len(all_names)
    assert all(name.isidentifier() for name in all_names)
    assert len({case.source for case in [*WRONG_ONES, *RIGHT]}) == len(all_names)


def test_how_many():
    assert len(MISTAKES) >= 110
    assert len(HELD_OUT) >= 60
    assert len(RIGHT) >= 15
    assert {mistake.kind for mistake in MISTAKES} == set(KINDS)


@pytest.mark.parametrize(
    ("message", "expected", "named"),
    [
        ("da_f lacks the factor prev_c", (("da_f", "prev_c"),), True),
        ("da_f lacks the factor next_c", (("da_f", "prev_c"),), False),
        ("dWx is x @ da.T, transposed", (("dWx", "swapped"), ("dWx", "transposed")), True),
        ("da_o is wrong", (("o",),), False),
        ("dc lacks the factor o.", (("dc", "o"),), True),
        ("dWh should read Wh.T", (("Wh", ".T"),), True),
        ("da_g lacks the factor 1 - g**2", (("da_g", "1 - g**2"),), True),
    ],
)
def test_names(message, expected, named):
    assert names(message, expected) is named


def test_a_fix_must_fit():
    mistake = dataclasses.replace(MISTAKES[0], fix={"no such passage": ""})
    with pytest.raises(ValueError, match="'no such passage' occurs 0 times, expected once"):
        _ = mistake.fixed
