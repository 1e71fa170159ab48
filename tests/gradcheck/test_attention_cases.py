import pytest

from rnnlab.gradcheck.attention_cases import attention_cases, attentive_case, review_case
from rnnlab.gradcheck.cases import A, H
from rnnlab.layers.attention.query import attention_shapes
from rnnlab.layers.attention.scores import SCORES
from rnnlab.layers.review import review_shapes


@pytest.mark.parametrize("score", SCORES)
def test_every_parameter_of_a_score_is_checked(score, rng):
    keys, step, target = attention_cases(score, lambda *shape: rng.standard_normal(shape))
    params = set(attention_shapes(score, query_dim=H, memory_dim=H, attention_dim=A))
    assert (set(keys.inputs) | set(step.inputs)) - {"memory", "query", "keys"} == params
    assert set(target.inputs) - {"h", "h0"} == params


@pytest.mark.slow
@pytest.mark.parametrize("parts", ["source", "target", "source and target", "selector and target"])
def test_the_inputs_of_a_decoder_are_those_of_its_parts(parts, rng):
    case = attentive_case("lstm", "lstm", "additive", parts, lambda *shape: rng.standard_normal(shape))
    assert ("memory" in case.inputs) == (parts != "target")
    for part in ("target", "selector"):
        assert any(name.startswith(f"{part}_") for name in case.inputs) == (part in parts)
    *outs, cache = case.forward(**case.inputs)
    grads = case.backward(*outs, cache)
    for array, grad in zip(case.inputs.values(), grads, strict=True):
        assert grad.shape == array.shape


def test_a_reviewer_is_checked_with_respect_to_every_parameter(rng):
    case = review_case("review", lambda *shape: rng.standard_normal(shape), blocks=2, inter=False)
    shapes = review_shapes(memory_dim=5, hidden_dim=2, attention_dim=A, blocks=2, steps=2, inter=False)
    assert set(case.inputs) - {"memory", "h0", "c0"} == set(shapes)
