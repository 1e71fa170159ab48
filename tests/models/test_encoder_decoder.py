"""The loss that captioning and translation share: weights and lengths of sentences, parts, padded batches."""

import numpy as np
import pytest

from rnnlab.gradcheck.numeric import projected_check
from rnnlab.ops import ops_for

from .test_translation import batch as pairs
from .test_translation import build as build_seq2seq
from .toys import DROPOUT, END, NULL, START, batch, build, every_architecture, rows_of

WEIGHTS = np.array([0.5, -2.0, 0.0, 1.5, 3.0])
averages = pytest.mark.parametrize("average", ["batch", "token"])


def captioner(rng, **options):
    return build(**options), *batch(rng, **options)


def translator(rng, **options):
    return build_seq2seq(**options), *pairs()


every_model = pytest.mark.parametrize("make", [captioner, translator])


@every_model
@averages
def test_the_loss_is_the_weighted_sum_over_sentences(make, average, rng):
    model, source, target = make(rng, loss_average=average)
    divisor = len(target) if average == "batch" else (target[:, 1:] != NULL).sum()
    nats = [model.nll(source[n : n + 1], target[n : n + 1])[0] for n in range(len(target))]
    loss, _ = model.loss(source, target, sentence_weights=WEIGHTS)
    assert loss == pytest.approx(np.dot(WEIGHTS, nats) / divisor)


@every_model
def test_weights_of_one_change_nothing(make, rng):
    model, source, target = make(rng)
    loss, grads = model.loss(source, target)
    weighted, weighted_grads = model.loss(source, target, sentence_weights=np.ones(len(target)))
    assert weighted == pytest.approx(loss)
    np.testing.assert_allclose(weighted_grads.flat, grads.flat, rtol=1e-10, atol=1e-14)


@pytest.mark.one_in(4)
@every_architecture
def test_gradients(options, rng):
    model, source, target = captioner(rng, **options, **DROPOUT)

    def loss():
        return model.loss(source, target, sentence_weights=WEIGHTS, rng=np.random.default_rng(3))

    assert projected_check(lambda: loss()[0], model.params.flat, loss()[1].flat, rng=rng) < 1e-7


@pytest.mark.parametrize("others", [{}, {"label_smoothing": 0.1, "reconstruction": 0.3}])
def test_gradients_of_translation(others, rng):
    model, source, target = translator(rng, **others)

    def loss():
        return model.loss(source, target, sentence_weights=WEIGHTS)

    assert projected_check(lambda: loss()[0], model.params.flat, loss()[1].flat, rng=rng) < 1e-7


@every_model
@averages
def test_padded_batches(make, average, rng):
    model, source, target = make(rng, loss_average=average)
    options = {"sentence_weights": WEIGHTS, "sentence_lengths": [4, 2, 3, 2, 0]}
    loss, grads = model.loss(source, target, **options)
    padded_grads = model.params.zeros_like()
    padded = model.padded_loss(model.padded(source, target, **options), grads=padded_grads)
    assert padded == pytest.approx(loss)
    np.testing.assert_allclose(padded_grads.flat, grads.flat, rtol=1e-9, atol=1e-12)


@every_model
@averages
def test_parts_add_up_to_the_batch(make, average, rng):
    model, source, target = make(rng, loss_average=average)
    whole, grads = model.loss(source, target, sentence_weights=WEIGHTS)
    size, added = (len(target), int((target[:, 1:] != NULL).sum())), model.params.zeros_like()
    total = sum(
        model.loss(source[rows], target[rows], sentence_weights=WEIGHTS[rows], part_of=size, grads=added)[0]
        for rows in (slice(2), slice(2, 5))
    )
    assert total == pytest.approx(whole)
    np.testing.assert_allclose(added.flat, grads.flat, rtol=1e-9, atol=1e-13)


@every_model
def test_on_a_device(make, device, rng):
    model, source, target = make(rng)
    loss, grads = model.loss(source, target, sentence_weights=WEIGHTS)
    on_device, device_grads = model.to("gpu").loss(source, target, sentence_weights=WEIGHTS)
    assert float(on_device) == pytest.approx(loss)
    flat = ops_for(device_grads.flat).asnumpy(device_grads.flat)
    np.testing.assert_allclose(flat, grads.flat, rtol=1e-9, atol=1e-12)


@pytest.mark.one_in(3)
@every_architecture
def test_lengths_score_every_token(options, rng):
    """Also <NULL>, <START>, and tokens after <END>, as the step functions do."""
    model, features = build(**options | {"discriminative": 0.0}), batch(rng, **options)[0]
    tokens = np.array([[START, 3, NULL, NULL], [START, END, NULL, 4], [START, START, 5, 3]])
    lengths, weights = [3, 1, 2], [1.0, -0.5, 2.0]
    state, expected = model.start(rows_of(features, slice(3))), 0.0
    for t in range(3):
        log_probs, state = model.advance(state, tokens[:, t])
        expected -= sum(weights[n] * log_probs[n, tokens[n, t + 1]] for n in range(3) if t < lengths[n])
    loss, _ = model.loss(
        rows_of(features, slice(3)), tokens, sentence_weights=weights, sentence_lengths=lengths
    )
    assert loss == pytest.approx(expected / 3)


# ------------------------------------------------------------------ several sentences of a source


def several(rng, make, **options):
    """A model, and the same sentences twice: with a source for each, and with two sources of two each."""
    model, source, target = make(rng, **options)
    few = rows_of(source, slice(2))
    again = rows_of(source, np.repeat([0, 1], 2))
    return model, (again, target[:4]), (few, target[:4].reshape(2, 2, -1))


def assert_same(model, flat, grouped, **options):
    assert model.nll(*grouped) == pytest.approx(model.nll(*flat))
    loss, grads = model.loss(*flat, **options)
    shaped = {name: np.reshape(value, (2, 2)) for name, value in options.items()}
    again, grouped_grads = model.loss(*grouped, **shaped)
    assert again == pytest.approx(loss)
    np.testing.assert_allclose(grouped_grads.flat, grads.flat, rtol=1e-9, atol=1e-12)
    padded_grads = model.params.zeros_like()
    padded = model.padded_loss(model.padded(*grouped, **shaped), grads=padded_grads)
    assert padded == pytest.approx(loss)
    np.testing.assert_allclose(padded_grads.flat, grads.flat, rtol=1e-9, atol=1e-12)


REVIEWED = {"attention": "additive", "reviewer": {"blocks": 2, "steps": 3}}


@pytest.mark.one_in(4)
@every_architecture
def test_sentences_of_an_image_share_its_encoding(options, rng):
    model, flat, grouped = several(rng, captioner, **options)
    assert_same(model, flat, grouped)
    assert_same(model, flat, grouped, sentence_weights=WEIGHTS[:4], sentence_lengths=[5, 2, 3, 1])


@pytest.mark.parametrize(
    "options",
    [
        REVIEWED,
        REVIEWED | {"target_attention": True, "output": "deep", "doubly_stochastic": 0.5},
        REVIEWED | {"discriminative": 0.3, "discriminative_words": 3},
        {"attention": "additive", "doubly_stochastic": 0.5, "reconstruction": 0.3, "label_smoothing": 0.1},
    ],
)
def test_with_a_reviewer_and_other_losses(options, rng):
    model, flat, grouped = several(rng, captioner, **options)
    assert_same(model, flat, grouped, sentence_weights=WEIGHTS[:4])


@pytest.mark.parametrize("options", [{}, {"attention": None}, REVIEWED, {"reconstruction": 0.3}])
def test_sentences_of_a_source_share_its_encoding(options, rng):
    model, flat, grouped = several(rng, translator, **options)
    assert_same(model, flat, grouped, sentence_weights=WEIGHTS[:4])


def test_an_encoder_s_reconstruction_is_a_mean_over_sources(rng):
    model, flat, grouped = several(rng, translator, encoder_reconstruction=0.3)
    assert model.loss(*grouped)[0] == pytest.approx(model.loss(*flat)[0])


@every_model
def test_several_sentences_with_scheduled_sampling(make, rng):
    model, flat, grouped = several(rng, make)
    (one, one_grads), (other, other_grads) = (
        model.loss(*batch, rng=np.random.default_rng(3), sampling=0.6) for batch in (flat, grouped)
    )
    assert other == pytest.approx(one)
    np.testing.assert_allclose(other_grads.flat, one_grads.flat, rtol=1e-9, atol=1e-12)


@every_model
def test_several_sentences_on_a_device(make, device, rng):
    model, _, grouped = several(rng, make)
    nll = model.nll(*grouped)
    loss, grads = model.loss(*grouped, sentence_weights=WEIGHTS[:4].reshape(2, 2))
    on_device, device_grads = model.to("gpu").loss(*grouped, sentence_weights=WEIGHTS[:4].reshape(2, 2))
    assert model.nll(*grouped) == pytest.approx(nll)
    assert float(on_device) == pytest.approx(loss)
    flat = ops_for(device_grads.flat).asnumpy(device_grads.flat)
    np.testing.assert_allclose(flat, grads.flat, rtol=1e-9, atol=1e-12)


def test_errors_of_several_sentences(rng):
    model, _, (features, captions) = several(rng, captioner)
    with pytest.raises(ValueError, match=r"sentence_weights has shape \(4,\), expected \(N, S\) = \(2, 2\)"):
        model.loss(features, captions, sentence_weights=WEIGHTS[:4])
    with pytest.raises(ValueError, match=r"sentence_lengths\[1, 0\] is 9"):
        model.loss(features, captions, sentence_lengths=[[1, 1], [9, 1]])
    with pytest.raises(ValueError, match=r"captions has shape \(2, 0, 6\), expected \(N, L\) or \(N, S, L\)"):
        model.loss(features, captions[:, :0])
    with pytest.raises(
        ValueError, match=r"CaptioningRNN.nll: captions has shape \(2, 2, 1\), expected \(N, L\) or \(N, S"
    ):
        model.nll(features, captions[:, :, :1])
    model, _, (features, captions) = several(rng, captioner, attention="additive")
    with pytest.raises(
        ValueError, match=r"CaptioningRNN.align: captions has shape \(2, 2, 6\), expected \(N, L\) w"
    ):
        model.align(features, captions)


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"sentence_weights": np.ones(4)}, ValueError, r"sentence_weights has shape \(4,\), expected \(N,\)"),
        ({"sentence_weights": 1.0}, ValueError, r"sentence_weights has shape \(\)"),
        ({"sentence_weights": [1, 2, np.nan, 4, 5]}, ValueError, r"sentence_weights\[2\] is nan"),
        ({"sentence_weights": ["a"] * 5}, TypeError, "sentence_weights"),
        ({"sentence_weights": np.ma.ones(5)}, TypeError, "sentence_weights is a MaskedArray"),
        ({"sentence_lengths": np.ma.ones(5, int)}, TypeError, "sentence_lengths is a MaskedArray"),
        ({"sentence_lengths": [1.0] * 5}, TypeError, "sentence_lengths has dtype float64"),
        ({"sentence_lengths": [1] * 4}, ValueError, r"sentence_lengths has shape \(4,\)"),
        ({"sentence_lengths": [1, 6, 1, 1, 1]}, ValueError, r"sentence_lengths\[1\] is 6, expected 0 to"),
        ({"sentence_lengths": [1, 2, -1, 1, 1]}, ValueError, r"sentence_lengths\[2\] is -1"),
    ],
)
def test_errors(options, error, match, rng):
    model, features, captions = captioner(rng)
    with pytest.raises(error, match=f"CaptioningRNN.loss: {match}"):
        model.loss(features, captions, **options)
    with pytest.raises(error, match=f"CaptioningRNN.padded: {match}"):
        model.padded(features, captions, **options)
