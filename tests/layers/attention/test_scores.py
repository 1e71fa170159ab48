import numpy as np
import pytest

from rnnlab.layers.attention.query import attention_shapes
from rnnlab.layers.attention.scores import (
    SCORES,
    Keys,
    Workspace,
    past_columns,
    score_axes,
)

N, L, H, C, A = 3, 4, 5, 2, 6

every_score = pytest.mark.parametrize("score", SCORES)


def parameters(score, rng):
    shapes = attention_shapes(score, query_dim=H, memory_dim=H if score == "dot" else C, attention_dim=A)
    return {name: rng.standard_normal(shape) for name, shape in shapes.items()}


@every_score
@pytest.mark.parametrize("reused", [True, False])
def test_keys_and_their_backward(score, reused, rng):
    params = parameters(score, rng)
    memory = rng.standard_normal((7, H if score == "dot" else C))
    keys = Keys(score, params, reused=reused, like=memory)
    made = keys.of(memory)
    expected = {
        "additive": lambda: memory @ params["Wm"] + params["b"],
        "dot": lambda: memory,
        "bilinear": lambda: memory @ params["W"].T,
    }[score]()
    np.testing.assert_allclose(made, expected, rtol=1e-12)
    dkeys, dmemory = rng.standard_normal(made.shape), np.ones_like(memory)
    keys.backward(dkeys, dmemory)
    weight = {"additive": params.get("Wm", np.eye(1)).T, "dot": np.eye(H), "bilinear": params.get("W")}[score]
    np.testing.assert_allclose(dmemory, 1 + dkeys @ weight, rtol=1e-12)
    grads = {name: np.ones_like(array) for name, array in params.items()}
    keys.add_gradients(memory, dkeys, grads)
    if score == "additive":
        np.testing.assert_allclose(grads["Wm"], 1 + memory.T @ dkeys, rtol=1e-12)
        np.testing.assert_allclose(grads["b"], 1 + dkeys.sum(axis=0), rtol=1e-12)
    elif score == "bilinear":
        np.testing.assert_allclose(grads["W"], 1 + dkeys.T @ memory, rtol=1e-12)


@pytest.mark.parametrize("selector", [True, False])
@pytest.mark.parametrize("additive", [True, False])
def test_a_workspace(additive, selector, rng):
    keys, memory = rng.standard_normal((7, A)), rng.standard_normal((7, C))
    workspace = Workspace.of(N, L, keys, memory, additive=additive, selector=selector)
    assert (workspace.query is None) == (not additive)
    assert (workspace.beta is None) == (not selector)
    assert (workspace.context is workspace.attended) == (not selector)
    assert not workspace.weights.any()
    part = workspace.at(slice(1, 3), slice(2))
    part.weights[...] = 1
    assert workspace.weights.sum() == 4
    assert part.context.shape == (2, C)


def test_a_score_that_there_is_not():
    assert score_axes("f", "dot") == {}
    with pytest.raises(ValueError, match="f: score is 'cosine', expected one of additive, dot, bilinear"):
        score_axes("f", "cosine")


def test_the_past_that_a_step_reads():
    past = list("abcdef")
    assert [past[past_columns(t, None)] for t in range(3)] == [[], ["a"], ["a", "b"]]
    assert [past[past_columns(t, 2)] for t in range(5)] == [[], [], ["a"], ["b"], ["c"]]
    assert [past[past_columns(t, 3)] for t in range(5)] == [[], [], [], ["a"], ["b"]]
