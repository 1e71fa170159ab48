"""A reviewer in a model: what the decoder reads, what its options do, and everything that works with it."""

import re

import numpy as np
import pytest

from rnnlab.decoding import Ensemble, beam_search, greedy, sample
from rnnlab.gradcheck import check_model
from rnnlab.layers import review_forward
from rnnlab.models import CaptioningRNN
from rnnlab.models.parts.reviewer import ReviewerOptions

from ..test_translation import batch as pairs
from ..test_translation import build as build_seq2seq
from ..toys import WORD_TO_IDX, D, H, W, batch, build, features_of

REVIEWER = {"blocks": 2, "steps": 3}
ATTENTION = {"attention": "additive", "reviewer": REVIEWER}


def test_the_decoder_reads_the_last_blocks_thoughts(rng):
    model, (features, captions) = build(cell_type="lstm", **ATTENTION), batch(rng, **ATTENTION)
    encoded, _ = model.encoder.forward(model.params, features)
    thoughts, state, weights, _ = review_forward(
        features, encoded.state, model.params.scope("reviewer_"), **REVIEWER
    )
    source = model._reviewed(features).source
    np.testing.assert_array_equal(source.memory, thoughts[-1])
    for one, other in zip(source.state, state, strict=True):
        np.testing.assert_array_equal(one, other)
    over_thoughts = model.align_thoughts(features, captions)
    np.testing.assert_allclose(model.align(features, captions), over_thoughts @ weights[-1][0], rtol=1e-12)


def test_review_shows_every_step(rng):
    model, (features, _) = build(cell_type="lstm", **ATTENTION), batch(rng, **ATTENTION)
    review = model.review(features)
    N, L = features.shape[:2]
    assert [each.shape for each in review.thoughts] == [(N, 3, H)] * 2
    assert [[w.shape for w in block] for block in review.weights] == [[(N, 3, L)], [(N, 3, L), (N, 3, 3)]]
    for block in review.weights:
        for each in block:
            np.testing.assert_allclose(each.sum(axis=2), 1)
    with pytest.raises(ValueError, match="CaptioningRNN: this model has no reviewer"):
        build(attention="additive").review(features)
    with pytest.raises(ValueError, match="CaptioningRNN: this model has no reviewer"):
        build(attention="additive").align_thoughts(features, batch(rng, **ATTENTION)[1])


@pytest.mark.parametrize("cell_type", ["lstm", "gru", "rnn"])
def test_attention_while_decoding_is_that_of_teacher_forcing(cell_type, rng):
    model, (features, captions) = build(cell_type=cell_type, **ATTENTION), batch(rng, **ATTENTION)
    expected, state = model.align(features, captions), model.start(features)
    for t, tokens in enumerate(captions.T[:2]):
        _, state = model.advance(state, tokens)
        real = (captions[:, t + 1 :] != model.null_token).any(axis=1)
        np.testing.assert_allclose(model.attention(state)[real], expected[real, t], rtol=1e-10)


@pytest.mark.parametrize("cell_type", ["lstm", "simplified_gru"])
@pytest.mark.parametrize(
    "options",
    [
        {"state_activation": "tanh", "project_cell": True},
        {"target_attention": True, "selector": True, "output": "deep", "doubly_stochastic": 0.3},
        {"reconstruction": 0.2, "regularisation": {"zoneout_h": 0.2, "recurrent_dropout": 0.2}},
        {"global_dim": 5, "label_smoothing": 0.1, "loss_average": "token"},
        {"discriminative": 0.5, "discriminative_words": 2},
    ],
    ids=lambda options: "-".join(options),
)
def test_gradients_with_every_option(cell_type, options, rng):
    """Along one direction of all parameters: :mod:`rnnlab.gradcheck` has each parameter by itself."""
    options = ATTENTION | {"reviewer": REVIEWER | {"dropout": 0.3}, "feature_dropout": 0.2} | options
    model, given = build(cell_type=cell_type, **options), batch(rng, **options)
    _, grads = model.loss(*given, rng=np.random.default_rng(1))
    start, direction = model.params.flat.copy(), rng.standard_normal(model.params.flat.size)

    def moved(step):
        model.params.flat[...] = start + step * direction
        return model.loss(*given, rng=np.random.default_rng(1))[0]

    numeric = (moved(1e-6) - moved(-1e-6)) / 2e-6
    assert grads.flat @ direction == pytest.approx(numeric, rel=1e-6)


@pytest.mark.slow
def test_gradients_of_a_translator(rng):
    reviewer = {"reviewer": REVIEWER, "encoder_reconstruction": 0.2, "encoder_reconstructor_dim": 2}
    model = build_seq2seq(**reviewer, discriminative=0.4)
    assert all(row.passed for row in check_model(model, pairs(), tolerance=1e-5, verbose=False))


def test_a_source_with_several_sentences_is_read_once(rng):
    """The loss and the gradients are those of repeated features."""
    model, (features, captions) = (
        build(cell_type="lstm", **ATTENTION, discriminative=0.5),
        batch(rng, **ATTENTION),
    )
    several = np.stack([captions, captions[::-1]], axis=1)
    loss, grads = model.loss(features, several)
    flat = several.reshape(-1, captions.shape[1])
    expected, expected_grads = model.loss(np.repeat(features, 2, axis=0), flat)
    assert loss == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(grads.flat, expected_grads.flat, rtol=1e-8, atol=1e-12)


def test_searches_and_ensembles(rng):
    options = ATTENTION | {"cell_type": "lstm"}
    model, plain = build(**options), build(cell_type="gru", attention="additive")
    features = features_of(rng, 3, **options)
    for found in (
        greedy(model, features, max_length=5, return_alignments=True),
        beam_search(model, features, beam_size=2, max_length=5, return_alignments=True),
        sample(model, features, max_length=5, rng=np.random.default_rng(0), return_alignments=True),
        beam_search(Ensemble([model, plain]), features, beam_size=2, max_length=5, return_alignments=True),
    ):
        for hypotheses in found:
            np.testing.assert_allclose(hypotheses[0].alignment.sum(axis=1), 1)
            assert hypotheses[0].alignment.shape[1] == features.shape[1]


def test_a_model_from_its_config(rng):
    model = build(cell_type="gru", **ATTENTION, discriminative=0.3)
    config = model.config()
    assert config["reviewer"] == ReviewerOptions(**REVIEWER)._asdict()
    again = type(model).from_config(config)
    assert again.params.shapes == model.params.shapes
    assert "reviewer=" in repr(model)
    assert build(cell_type="gru").config()["reviewer"] == ReviewerOptions()._asdict()


def test_without_a_reviewer_nothing_changes(rng):
    one, other = build(attention="additive"), build(attention="additive", reviewer=None)
    given = batch(rng, attention="additive")
    assert one.loss(*given)[0] == other.loss(*given)[0]
    assert not any(name.startswith("reviewer") for name in one.params)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"reviewer": {"blocks": 0}}, ValueError, "reviewer.blocks is 0, expected an integer of at least 1"),
        ({"reviewer": {"blocks": 1, "steps": 0}}, ValueError, "reviewer.steps is 0, expected an integer"),
        ({"reviewer": {"blocks": 1, "intra": 1}}, ValueError, "reviewer.intra is 1, expected True or False"),
        (
            {"reviewer": {"blocks": 1, "dropout": 1.0}},
            ValueError,
            "reviewer.dropout is 1.0, expected a probab",
        ),
        ({"reviewer": {"steps": 3}}, ValueError, "reviewer has steps but no blocks"),
        ({"reviewer": {"inter": True, "intra": False}}, ValueError, "reviewer has intra but no blocks"),
        ({"reviewer": {"block": 3}}, ValueError, "reviewer has block, expected blocks, steps"),
        ({"reviewer": 3}, TypeError, "reviewer is 3, expected a mapping"),
        (
            {"reviewer": REVIEWER, "attention": None},
            ValueError,
            "reviewer.blocks is 2, which needs attention 'additive', 'dot' or 'bilinear'",
        ),
        (
            {"reviewer": {"blocks": 1, "inter": False}},
            ValueError,
            "reviewer.inter is False, which needs reviewer.blocks of at least 2: it removes the connections",
        ),
        (
            {"reviewer": {"blocks": 2, "steps": 1, "intra": False}},
            ValueError,
            "reviewer.intra is False, which needs reviewer.steps of at least 2: it removes the connections",
        ),
    ],
)
def test_wrong_options_are_named(options, error, message):
    with pytest.raises(error, match=re.escape(f"CaptioningRNN: {message}")):
        CaptioningRNN(WORD_TO_IDX, D, W, H, "lstm", **({"attention": "additive"} | options))
