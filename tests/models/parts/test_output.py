"""Output layers: gradients of inputs and parameters."""

import numpy as np
import pytest

from rnnlab.models.parts.output import DeepOutput, LinearOutput, OutputInputs, build_output

from .checks import H, N, P, V, W, assert_part, dropout_rng, random_parameters


def test_linear_output(rng):
    part = LinearOutput(H, V, dropout=0.3)

    def backward(dscores, cache, grads):
        return (part.backward(dscores, cache, grads).hidden,)

    assert_part(
        part,
        lambda params, hidden: part.forward(params, OutputInputs(hidden), rng=dropout_rng()),
        backward,
        {"hidden": rng.standard_normal((N, H))},
        rng,
    )


@pytest.mark.parametrize("context_dim", [0, P])
def test_deep_output(context_dim, rng):
    part = DeepOutput(H, context_dim, W, V, dropout=0.3)
    names = ["hidden", "contexts", "words"] if context_dim else ["hidden", "words"]

    def forward(params, **inputs):
        return part.forward(params, OutputInputs(**inputs), rng=dropout_rng())

    def backward(dscores, cache, grads):
        dinputs = part.backward(dscores, cache, grads)
        return tuple(getattr(dinputs, name) for name in names)

    sizes = {"hidden": H, "contexts": P, "words": W}
    assert_part(part, forward, backward, {name: rng.standard_normal((N, sizes[name])) for name in names}, rng)


def test_deep_output_is_its_equation(rng):
    part = DeepOutput(H, P, W, V)
    params = random_parameters(part, rng)
    h, z, y = (rng.standard_normal((N, size)) for size in (H, P, W))
    scores, _ = part.forward(params, OutputInputs(h, z, y))
    t = np.tanh(h @ params["W_deep_h"] + z @ params["W_deep_z"] + y + params["b_deep"])
    np.testing.assert_allclose(scores, t @ params["W_vocab"] + params["b_vocab"], rtol=1e-12)


@pytest.mark.parametrize(("output", "kind"), [("linear", LinearOutput), ("deep", DeepOutput)])
@pytest.mark.parametrize("context_dim", [0, P])
def test_the_options_choose_the_layer(output, kind, context_dim):
    options = {"output": output, "hidden_dim": H, "wordvec_dim": W, "output_dropout": 0.3}
    part = build_output(context_dim, V, options)
    assert type(part) is kind
    reads = part.output if output == "deep" else part
    assert reads.dropout == 0.3
    assert part.shapes()["W_vocab"] == (W if output == "deep" else H, V)
    assert ("W_deep_z" in part.shapes()) == (output == "deep" and context_dim > 0)
