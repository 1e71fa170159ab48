"""Output layers: gradients of inputs and parameters."""

import numpy as np
import pytest

from rnnlab.models.parts.output import (
    ConcatOutput,
    DeepOutput,
    LinearOutput,
    OutputInputs,
    TiedOutput,
    build_output,
)
from rnnlab.parameters import Parameters

from .checks import H, N, P, V, W, assert_part, dropout_rng, random_parameters


class WithWords(TiedOutput):
    """A tied output with its weight, which the word embedding of a model has."""

    def shapes(self):
        return super().shapes() | {"W_embed": (self.vocabulary_size, self.hidden_dim)}


@pytest.mark.parametrize("kind", [LinearOutput, WithWords])
def test_linear_output(kind, rng):
    part = kind(H, V, dropout=0.3)

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
@pytest.mark.parametrize("kind", ["concat", "deep"])
def test_an_output_that_reads_contexts(kind, context_dim, rng):
    if kind == "concat":
        part = ConcatOutput(H, W, context_dim, V, dropout=0.3)
    else:
        part = DeepOutput(LinearOutput(W, V, dropout=0.3), H, context_dim)
    names = ["hidden", "contexts", "words"] if context_dim else ["hidden", "words"]

    def forward(params, **inputs):
        return part.forward(params, OutputInputs(**inputs), rng=dropout_rng())

    def backward(dscores, cache, grads):
        dinputs = part.backward(dscores, cache, grads)
        return tuple(getattr(dinputs, name) for name in names)

    sizes = {"hidden": H, "contexts": P, "words": W}
    assert_part(part, forward, backward, {name: rng.standard_normal((N, sizes[name])) for name in names}, rng)


def test_deep_output_is_its_equation(rng):
    part = DeepOutput(LinearOutput(W, V), H, P)
    params = random_parameters(part, rng)
    h, z, y = (rng.standard_normal((N, size)) for size in (H, P, W))
    scores, _ = part.forward(params, OutputInputs(h, z, y))
    t = np.tanh(h @ params["W_deep_h"] + z @ params["W_deep_z"] + y + params["b_deep"])
    np.testing.assert_allclose(scores, t @ params["W_vocab"] + params["b_vocab"], rtol=1e-12)


def test_a_concatenated_output_is_its_equation(rng):
    """Eq. 11 of Xia et al. (2017), with a matrix for each input."""
    part = ConcatOutput(H, W, P, V)
    params = random_parameters(part, rng)
    h, z, y = (rng.standard_normal((N, size)) for size in (H, P, W))
    scores, _ = part.forward(params, OutputInputs(h, z, y))
    of_state, of_word, of_contexts = np.split(params["W_vocab"], [H, H + W])
    expected = y @ of_word + h @ of_state + z @ of_contexts + params["b_vocab"]
    np.testing.assert_allclose(scores, expected, rtol=1e-12)


def test_a_tied_output_is_a_linear_one_with_the_word_vectors(rng):
    tied, linear = WithWords(H, V), LinearOutput(H, V)
    params, hidden = random_parameters(tied, rng), OutputInputs(rng.standard_normal((N, H)))
    same = random_parameters(linear, rng)
    same["W_vocab"], same["b_vocab"] = params["W_embed"].T, params["b_vocab"]
    (scores, cache), (expected, other) = tied.forward(params, hidden), linear.forward(same, hidden)
    np.testing.assert_allclose(scores, expected, rtol=1e-12)
    grads, expected_grads = params.zeros_like(), same.zeros_like()
    tied.backward(np.cos(scores), cache, grads)
    linear.backward(np.cos(scores), other, expected_grads)
    np.testing.assert_allclose(grads["W_embed"].T, expected_grads["W_vocab"], rtol=1e-12)
    np.testing.assert_allclose(grads["b_vocab"], expected_grads["b_vocab"], rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows", [1, 3, 130, 700])
def test_a_tied_output_of_many_words(rows, dtype, rng):
    """Large enough for all ways to compute a product, several threads among them."""
    size, words = 96, 3001
    tied = WithWords(size, words)
    params = Parameters(tied.shapes(), dtype)
    params.flat[...] = rng.standard_normal(params.flat.size)
    hidden, dscores = (rng.standard_normal((rows, n)).astype(dtype) for n in (size, words))
    scores, cache = tied.forward(params, OutputInputs(hidden))
    grads = params.zeros_like()
    dhidden = tied.backward(dscores, cache, grads).hidden
    h, d, W = hidden.astype(np.float64), dscores.astype(np.float64), params["W_embed"].astype(np.float64)
    expected = (h @ W.T + params["b_vocab"], d @ W, d.T @ h, d.sum(axis=0))
    for found, right in zip((scores, dhidden, grads["W_embed"], grads["b_vocab"]), expected, strict=True):
        assert found.dtype == dtype
        np.testing.assert_allclose(found, right, atol=100 * np.finfo(dtype).eps * abs(right).max())


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize(("output", "kind"), [("linear", LinearOutput), ("deep", DeepOutput)])
@pytest.mark.parametrize("context_dim", [0, P])
def test_the_options_choose_the_layer(output, kind, context_dim, tied):
    options = {"output": output, "hidden_dim": H, "wordvec_dim": W, "output_dropout": 0.3}
    part = build_output(context_dim, V, options | {"tied_embeddings": tied})
    assert isinstance(part, kind)
    reads = part.output if output == "deep" else part
    assert type(reads) is (TiedOutput if tied else LinearOutput)
    assert reads.dropout == 0.3
    assert reads.hidden_dim == (W if output == "deep" else H)
    assert part.shapes().get("W_vocab") == (None if tied else (reads.hidden_dim, V))
    assert ("W_deep_z" in part.shapes()) == (output == "deep" and context_dim > 0)


@pytest.mark.parametrize("context_dim", [0, P])
def test_the_option_concat(context_dim, rng):
    options = {"output": "concat", "hidden_dim": H, "wordvec_dim": W, "output_dropout": 0.5}
    part = build_output(context_dim, V, options | {"tied_embeddings": False})
    assert isinstance(part, ConcatOutput)
    assert part.shapes() == {"W_vocab": (H + W + context_dim, V), "b_vocab": (V,)}
    params = random_parameters(part, rng)
    inputs = OutputInputs(*(rng.standard_normal((N, size)) for size in (H, context_dim, W)))
    scores, cache = part.forward(params, inputs)
    gradients = part.backward(scores, cache, params.zeros_like())
    assert gradients.hidden.shape == (N, H)
    assert gradients.words.shape == (N, W)
    dropped, _ = part.forward(params, inputs, rng=dropout_rng())
    assert not np.allclose(scores, dropped)
