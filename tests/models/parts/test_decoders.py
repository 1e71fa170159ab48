"""Decoders: gradients of inputs and parameters, padding, and decoding steps against whole sequences."""

import numpy as np
import pytest

from rnnlab.gradcheck.cases import CELLS
from rnnlab.gradcheck.numeric import eval_numerical_gradient, relative_distance
from rnnlab.models import Seq2Seq
from rnnlab.models.parts.decoders import (
    AttentiveDecoder,
    Decoded,
    FactoredDecoder,
    FirstInputDecoder,
    RecurrentDecoder,
    build_decoder,
)
from rnnlab.models.parts.encoders import Source

from ...layers.shifted import shift_states
from ..toys import WORD_TO_IDX, build
from .checks import LENGTHS, H, N, P, T, W, assert_part, random_parameters, recurrence

DECODERS = {
    "initial_state": lambda cell: RecurrentDecoder(cell, W, H),
    "every_step": lambda cell: RecurrentDecoder(cell, W, H, image_dim=P),
    "first_input": lambda cell: FirstInputDecoder(cell, W, H),
    "second_layer": lambda cell: FactoredDecoder(cell, W, H, image_dim=P),
}
every_decoder = pytest.mark.parametrize("decoder", DECODERS)
every_cell = pytest.mark.parametrize("cell", CELLS)


@pytest.mark.one_in(2)
@every_decoder
@every_cell
@pytest.mark.parametrize("lengths", [None, LENGTHS], ids=["full", "ragged"])
def test_gradients(decoder, cell, lengths, rng):
    part = DECODERS[decoder](recurrence(cell))
    inputs = {"words": rng.standard_normal((N, T, W))}
    if decoder != "initial_state":
        inputs["image"] = rng.standard_normal((N, W if decoder == "first_input" else P))
    inputs |= {f"state{k}": rng.standard_normal((N, H)) for k in range(part.num_states)}

    def forward(params, words, image=None, **state):
        decoded, cache = part.forward(params, words, Source(tuple(state.values()), image), lengths)
        return decoded.hidden, decoded.first, cache

    def backward(dhidden, dfirst, cache, grads):
        dwords, dsource = part.backward(Decoded(dhidden, first=dfirst), cache, grads)
        return dwords, *(() if dsource.image is None else (dsource.image,)), *dsource.state

    assert_part(part, forward, backward, inputs, rng)


@every_decoder
def test_the_state_before_the_words(decoder, rng):
    """``first`` is the initial state, or the state after the image; None for a state of zeros."""
    part = DECODERS[decoder](recurrence("lstm"))
    params, words = random_parameters(part, rng), rng.standard_normal((N, T, W))
    image = None if decoder == "initial_state" else rng.standard_normal((N, W if "first" in decoder else P))
    state = tuple(rng.standard_normal((N, H)) for _ in range(part.num_states))
    for zero_state in (False, True):
        source = Source(state, image, zero_state=zero_state)
        decoded, _ = part.forward(params, words, source, LENGTHS)
        if decoder == "first_input":
            (started, _, _) = part.start(params, source)
            np.testing.assert_allclose(decoded.first, started[0], rtol=1e-12)
        elif zero_state:
            assert decoded.first is None
        else:
            np.testing.assert_array_equal(decoded.first, state[-2])


@every_decoder
def test_padding_carries_the_state_through(decoder, rng):
    part = DECODERS[decoder](recurrence("lstm"))
    image = rng.standard_normal((N, W if decoder == "first_input" else P))
    image = None if decoder == "initial_state" else image
    state = tuple(rng.standard_normal((N, H)) for _ in range(part.num_states))
    words = rng.standard_normal((N, T, W))
    decoded, _ = part.forward(random_parameters(part, rng), words, Source(state, image), LENGTHS)
    for row, length in zip(decoded.hidden, LENGTHS, strict=True):
        padding = row[max(length - 1, 0) :]
        np.testing.assert_array_equal(padding, np.broadcast_to(padding[0], padding.shape))
        assert length < 2 or (row[length - 1] != row[length - 2]).all()


@every_decoder
@every_cell
def test_a_decoder_decodes_as_it_trains(decoder, cell, rng):
    part = DECODERS[decoder](recurrence(cell))
    params = random_parameters(part, rng)
    words = rng.standard_normal((N, T, W))
    image = rng.standard_normal((N, W if decoder == "first_input" else P))
    image = None if decoder == "initial_state" else image
    state = tuple(rng.standard_normal((N, H)) for _ in range(part.num_states))
    decoded, _ = part.forward(params, words, Source(state, image), None)
    decoding = part.start(params, Source(state, image))
    for t in range(T):
        step, decoding = part.advance(words[:, t], decoding)
        np.testing.assert_allclose(step.hidden, decoded.hidden[:, t], rtol=1e-12)


@pytest.mark.parametrize(("memory_dim", "target"), [(P, False), (0, True), (P, True)])
def test_attentive_decoder(memory_dim, target, rng):
    part = AttentiveDecoder(
        recurrence("gru"),
        W,
        H,
        memory_dim=memory_dim,
        attention_dim=3,
        selector=memory_dim > 0,
        target=target,
    )
    inputs = {"words": rng.standard_normal((N, T, W)), "h0": rng.standard_normal((N, H))}
    if memory_dim:
        inputs["memory"] = rng.standard_normal((N, 2, P))
    kinds = ["source"] * (memory_dim > 0) + ["target"] * target

    def forward(params, words, h0, memory=None):
        decoded, cache = part.forward(params, words, Source((h0,), memory=memory), LENGTHS)
        assert list(decoded.weights) == kinds
        return decoded.hidden, decoded.contexts, decoded.first, *decoded.weights.values(), cache

    def backward(dhidden, dcontexts, dfirst, *rest):
        *dweights, cache, grads = rest
        ddecoded = Decoded(dhidden, dcontexts, dict(zip(kinds, dweights, strict=True)), dfirst)
        dwords, dsource = part.backward(ddecoded, cache, grads)
        return dwords, *dsource.state, *((dsource.memory,) if memory_dim else ())

    assert_part(part, forward, backward, inputs, rng)
    assert part.context_dim == memory_dim + H * target


def test_the_gradient_of_the_memory_may_be_left_out(rng):
    part = AttentiveDecoder(recurrence("gru"), W, H, memory_dim=P, attention_dim=3)
    params, words = random_parameters(part, rng), rng.standard_normal((N, T, W))
    source = Source((rng.standard_normal((N, H)),), memory=rng.standard_normal((N, 2, P)))
    results = []
    for needed in (True, False):
        decoded, cache = part.forward(params, words, source._replace(memory_gradient=needed), LENGTHS)
        grads = params.zeros_like()
        dwords, dsource = part.backward(Decoded(np.cos(decoded.hidden)), cache, grads)
        assert (dsource.memory is not None) == needed
        results.append((dwords, dsource.state[0], grads.flat))
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)


@every_decoder
def test_the_whole_gradient_of_the_states(decoder, rng, monkeypatch):
    """Of the layer whose states the decoder returns, at the words' steps."""
    part = DECODERS[decoder](recurrence("lstm"))
    params, words = random_parameters(part, rng), rng.standard_normal((N, T, W))
    image = None if decoder == "initial_state" else rng.standard_normal((N, W if "first" in decoder else P))
    source = Source(tuple(rng.standard_normal((N, H)) for _ in range(part.num_states)), image)
    decoded, cache = part.forward(params, words, source, LENGTHS)
    whole, shift = np.full((N, T, H), np.nan), np.zeros((N, T, H))
    part.backward(Decoded(np.cos(decoded.hidden)), cache, params.zeros_like(), whole_dh=whole)
    recurrent = params["layer2_Wh" if decoder == "second_layer" else "Wh"]
    shift_states(monkeypatch, recurrent, shift, LENGTHS, early=int(decoder == "first_input"))

    def loss(_):
        return float(np.sin(part.forward(params, words, source, LENGTHS)[0].hidden).sum())

    assert relative_distance(whole, eval_numerical_gradient(loss, shift, verbose=False)) < 1e-8


def test_attentive_decoder_decodes_as_it_trains(rng):
    part = AttentiveDecoder(recurrence("lstm"), W, H, memory_dim=P, attention_dim=3, target=True)
    params, words = random_parameters(part, rng), rng.standard_normal((N, T, W))
    mask = np.array([[1, 1], [1, 0], [0, 1]], bool)
    source = Source(
        tuple(rng.standard_normal((N, H)) for _ in range(2)), memory=rng.standard_normal((N, 2, P)), mask=mask
    )
    decoded, _ = part.forward(params, words, source, None)
    state = part.start(params, source)
    for t in range(T):
        step, state = part.advance(words[:, t], state)
        np.testing.assert_allclose(step.hidden, decoded.hidden[:, t], rtol=1e-12)
        np.testing.assert_allclose(step.contexts, decoded.contexts[:, t], rtol=1e-12)
        np.testing.assert_allclose(state[1], decoded.weights["source"][:, t], rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({}, RecurrentDecoder),
        ({"image_input": "every_step"}, RecurrentDecoder),
        ({"image_input": "first_input"}, FirstInputDecoder),
        ({"image_input": "second_layer"}, FactoredDecoder),
        ({"attention": "additive"}, AttentiveDecoder),
        ({"target_attention": True}, AttentiveDecoder),
    ],
    ids=str,
)
def test_the_decoder_of_a_captioning_model(options, kind):
    defaults = build()._options
    decoder = build_decoder(recurrence("gru"), 7, defaults | options)
    assert type(decoder) is kind
    attends, remembers = "attention" in options, "target_attention" in options
    assert decoder.context_dim == 7 * attends + defaults["hidden_dim"] * remembers
    if kind is RecurrentDecoder:
        assert decoder.image_dim == (defaults["wordvec_dim"] if "image_input" in options else 0)


TRANSLATION = Seq2Seq(WORD_TO_IDX, WORD_TO_IDX, W, H)._options


@pytest.mark.parametrize(
    ("options", "kind", "context_dim"),
    [
        ({"attention": None}, RecurrentDecoder, 0),
        ({"attention": "additive"}, AttentiveDecoder, 7),
        ({"attention": None, "target_attention": True}, AttentiveDecoder, H),
        ({"attention": "additive", "target_attention": True}, AttentiveDecoder, 7 + H),
    ],
    ids=str,
)
def test_the_decoder_of_a_translation_model(options, kind, context_dim):
    decoder = build_decoder(recurrence("gru"), 7, TRANSLATION | options)
    assert type(decoder) is kind
    assert decoder.context_dim == context_dim
    assert getattr(decoder, "attends_to_source", False) == (options["attention"] is not None)


@pytest.mark.parametrize(("given", "units"), [(None, H), (3, 3)])
def test_the_units_of_additive_scores(given, units):
    decoder = build_decoder(recurrence("gru"), 7, TRANSLATION | {"attention_dim": given})
    assert decoder.shapes()["source_v"] == (units,)
