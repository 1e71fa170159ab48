"""What captioning and translation share: last states, decoding steps and errors."""

import numpy as np
import pytest

from rnnlab import decoding
from rnnlab.models.encoder_decoder import EncoderDecoder

from .test_translation import batch as pairs
from .test_translation import build as build_seq2seq
from .toys import DROPOUT, END, NULL, START, batch, build, every_architecture, rows_of

LAST = [5, 2, 4, 2]  # steps of the toys' captions up to the last target


@pytest.mark.one_in(3)
@every_architecture
def test_last_states_predict_the_last_token(options, rng):
    """The same states as by the step functions of decoding, and without dropout."""
    model = build(**options, **DROPOUT)
    features, captions = batch(rng, **options)
    features, captions = rows_of(features, slice(4)), captions[:4]
    states, hidden = model.last_states(features, captions), model.hidden_states(features, captions)
    assert hidden.shape[1] == max(LAST)
    state = model.start(features)
    for t, tokens in enumerate(captions.T[:-1], 1):
        words, _ = model.embedding.forward(model.params, tokens)
        decoded, state = model.decoder.advance(words, state)
        for n in np.flatnonzero(np.equal(LAST, t)):
            np.testing.assert_allclose(states[n], decoded.hidden[n], rtol=1e-10)
            np.testing.assert_array_equal(hidden[n, t:], np.tile(hidden[n, t - 1], (max(LAST) - t, 1)))
        for n in np.flatnonzero(np.greater_equal(LAST, t)):
            np.testing.assert_allclose(hidden[n, t - 1], decoded.hidden[n], rtol=1e-10)


def test_a_greedy_sentence_gives_the_states_that_wrote_it(rng):
    model, (source, _) = build_seq2seq(cell_type="lstm"), pairs()
    for (found,), row in zip(
        decoding.greedy(model, source, max_length=4, forbid=(NULL, START)), source, strict=True
    ):
        written = [*found.tokens, *([END] if found.finished else [])]
        state, last = model.start(row[None]), START
        for token in written:
            words, _ = model.embedding.forward(model.params, np.array([last]))
            decoded, _ = model.decoder.advance(words, state)
            log_probs, state = model.advance(state, np.array([last]))
            log_probs[:, [NULL, START]] = -np.inf
            assert log_probs.argmax() == token
            last = token
        states = model.last_states(row[None], [[START, *written]])
        np.testing.assert_allclose(states, decoded.hidden, rtol=1e-10)


def test_every_sentence_needs_a_token(rng):
    features, captions = batch(rng)
    with pytest.raises(
        ValueError, match=r"CaptioningRNN.last_states: sentence 4 has no token after its first"
    ):
        build().last_states(features, captions)
    with pytest.raises(ValueError, match=r"Seq2Seq.last_states: sentences has shape \(2, 5\)"):
        build_seq2seq().last_states(pairs()[0], pairs()[1][:2])


@pytest.mark.one_in(3)
@every_architecture
def test_steps_have_the_probabilities_of_the_loss(options, rng):
    """The log-probabilities of ``advance`` along a caption sum up to its likelihood."""
    model = build(**options)
    features, captions = batch(rng, **options)
    state, total = model.start(features), 0.0
    for tokens, targets in zip(captions.T[:-1], captions.T[1:], strict=True):
        log_probs, state = model.advance(state, tokens)
        np.testing.assert_allclose(np.exp(log_probs).sum(axis=1), 1)
        total -= log_probs[np.arange(len(targets)), targets][targets != NULL].sum()
    assert total == pytest.approx(model.nll(features, captions)[0])


def test_the_attention_of_a_state_needs_a_source(rng):
    model, (features, _) = build(target_attention=True), batch(rng)
    assert not model.attends_to_source
    with pytest.raises(ValueError, match="CaptioningRNN: this model does not attend to its source"):
        model.attention(model.start(features))


@pytest.mark.parametrize("options", [{}, {"attention": "bilinear"}])
def test_weights_over_the_past_make_the_contexts(options, rng):
    model = build(target_attention=True, cell_type="gru", **options)
    features, captions = batch(rng, **options)
    weights = model.align_past(features, captions)
    inputs, forced = model._batch("loss", features, captions)
    decoded, _ = model._decoded(inputs, forced)
    T, H = decoded.hidden.shape[1:]
    assert weights.shape == (len(captions), T, T)
    np.testing.assert_allclose(weights @ decoded.hidden, decoded.contexts[..., -H:], rtol=1e-10, atol=1e-15)
    real = np.arange(T) < forced.lengths[:, None]
    np.testing.assert_allclose(weights.sum(axis=2), real & (np.arange(T) > 0), rtol=1e-12)
    assert not np.triu(weights).any()


def test_the_weights_of_a_delayed_state_are_one(rng):
    model = build(target_attention=True, target_delay=2)
    features, captions = batch(rng)
    weights = model.align_past(features, captions)
    T = weights.shape[1]
    lengths = model._batch("loss", features, captions)[1].lengths
    for row, length in zip(weights, lengths, strict=True):
        np.testing.assert_array_equal(row, np.eye(T, k=-2) * (np.arange(T) < length)[:, None])


@pytest.mark.parametrize("options", [{}, {"attention": "additive"}, {"image_input": "second_layer"}])
def test_weights_over_the_past_need_target_attention(options, rng):
    with pytest.raises(ValueError, match="CaptioningRNN: this model does not attend to the decoder's own"):
        build(**options).align_past(*batch(rng, **options))


def test_weights_over_the_past_of_a_translation():
    model = build_seq2seq(target_attention=True)
    assert np.allclose(model.align_past(*pairs()).sum(axis=2)[0, 1:3], 1)


@pytest.mark.parametrize("options", [{}, {"image_input": "every_step"}, {"attention": "additive"}])
@pytest.mark.parametrize(("rows", "shape"), [(1, (3,)), (3, (1,)), (3, (2,)), (3, (3, 1)), (1, ())])
def test_a_step_reads_one_token_for_each_row(options, rows, shape, rng):
    """A state of one row is not broadcast to several tokens, whichever primitives compute the step."""
    model, (features, _) = build(**options), batch(rng, **options)
    state = model.start(rows_of(features, slice(rows)))
    for step in (model.advance, model.read):
        with pytest.raises(ValueError, match=rf"tokens has shape .*, expected \(N,\) = \({rows},\), one for"):
            step(state, np.full(shape, START))


def test_a_model_without_an_encoder_is_not_made():
    with pytest.raises(TypeError, match="abstract"):
        EncoderDecoder({}, {}, memory_dim=1, rng=0, device="cpu")
