"""Edits of the source of a function."""

import ast
import inspect

import numpy as np

from rnnlab.course.edits import ALPHA, Source, edits, name_of


def right(dy, x, w):
    """Two statements with a sum, a product, a transpose, a sum over an axis, and a square."""
    a = dy * (1 - x**2) + w
    return a @ w.T, a.sum(axis=0)


DEFINITION = ast.parse(inspect.getsource(right)).body[0]
ALIKE = ["dy", "x", "w"]


def found():
    return list(edits(DEFINITION, ["dx", "db"].__getitem__, lambda name: ALIKE if name in ALIKE else []))


def test_what_is_edited():
    messages = {each.message for each in found()}
    assert messages >= {
        "a lacks the factor dy",
        "a lacks the factor 1 - x ** 2",
        "w does not reach a: it is left out",
        "a lacks the term dy * (1 - x ** 2)",
        "a has x where dy belongs",
        "a has x where its square belongs",
        "a has the derivative of a sigmoid where that of a tanh belongs, 1 - x**2",
        "dx is transposed",
        "dx has w where w.T belongs",
        "db sums a over axis 1 where axis 0 belongs",
        "db is the mean of a where the sum belongs",
    }
    assert "dx has a where w belongs" not in messages  # a has another shape


def test_what_stands_for_1_minus_a_variable():
    definition = ast.parse("def f(z, g):\n    return (1 - z) * g").body[0]
    made = edits(definition, ["h"].__getitem__, lambda name: ["z", "g"] if name in ("z", "g") else [])
    messages = [each.message for each in made]
    assert "h has z where 1 - z belongs" in messages
    assert "h has 1 - g where 1 - z belongs" in messages
    assert not any(each.endswith("where z belongs") for each in messages)


def test_brackets_that_make_the_difference():
    definition = ast.parse("def f(r, h, W):\n    return (r * h) @ W").body[0]
    messages = {each.message for each in edits(definition, ["g"].__getitem__, lambda name: [])}
    assert "g has r * (h @ W) where (r * h) @ W belongs" in messages


def test_a_variable_that_has_no_value_yet_is_not_read():
    made = edits(DEFINITION, ["dx", "db"].__getitem__, lambda name: [*ALIKE, "a"])
    assert all(each.target != "a" or "has a where" not in each.message for each in made)


def test_an_edited_function_and_the_function_as_it_was():
    before = ast.dump(DEFINITION)
    arguments = np.arange(1.0, 5).reshape(2, 2), np.full((2, 2), 0.5), np.eye(2)
    by_message, source = {each.message: each for each in found()}, Source(DEFINITION)
    results = {}
    for name in (None, "a lacks the factor 1 - x ** 2", "w does not reach a: it is left out"):
        space = {ALPHA: 0.0, "np": np}
        exec(source.compiled(by_message.get(name)), space)
        results[name] = space["right"](*arguments)[1]
    np.testing.assert_allclose(results[None], right(*arguments)[1])
    np.testing.assert_allclose(results["a lacks the factor 1 - x ** 2"], [1 + 3 + 1, 2 + 4 + 1])
    np.testing.assert_allclose(results["w does not reach a: it is left out"], [3.0, 4.5])
    assert ast.dump(DEFINITION) == before


def test_the_name_of_a_target():
    for text, expected in {"dx[:, t]": "dx", "a, b[0]": "a, b", "x": "x", "f()[...]": "f()"}.items():
        assert name_of(ast.parse(text, mode="eval").body) == expected
