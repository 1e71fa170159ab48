"""Scheduled sampling: which words are replaced, by what, and that the gradient is of what is then read."""

from __future__ import annotations

import numpy as np
import pytest

from rnnlab.gradcheck import check_model, projected_check
from rnnlab.models import Seq2Seq
from rnnlab.models.parts.scheduled_sampling import choose_places, sampled_inputs

from ..toys import ARCHITECTURES, DROPOUT, NULL, PENALISED, START, WORD_TO_IDX, H, V, W, batch, build, name_of


class Sampling:
    """A model whose loss is under scheduled sampling."""

    def __init__(self, model, sampling):
        self.model, self.params, self.sampling = model, model.params, sampling

    def loss(self, *given, rng):
        return self.model.loss(*given, rng=rng, sampling=self.sampling)


def translator(**options):
    model = Seq2Seq(WORD_TO_IDX, WORD_TO_IDX, W, H, dtype=np.float64, **options)
    model.params.flat[...] = np.random.default_rng(5).uniform(-0.8, 0.8, model.params.flat.size)
    return model


def pairs():
    source = [[3, 4, 5, 2], [4, 2, 0, 0], [3, 0, 4, 0], [5, 0, 0, 0], [0, 0, 0, 0]]
    target = [[1, 3, 4, 5, 2], [1, 2, 0, 0, 0], [1, 5, 0, 3, 2], [0, 0, 0, 0, 0], [1, 4, 4, 2, 0]]
    return np.array(source), np.array(target)


def words_read(model, given, monkeypatch, **options):
    """The tokens (N, T) that the teacher-forced pass of a loss reads."""
    seen, forward = [], model.embedding.forward

    def spy(params, tokens, **rest):
        seen.append(np.array(tokens))
        return forward(params, tokens, **rest)

    with monkeypatch.context() as patch:
        patch.setattr(model.embedding, "forward", spy)
        model.loss(*given, **options)
    return seen[-1]


every_model = pytest.mark.parametrize(
    ("model", "given"),
    [
        (build(**options), batch(np.random.default_rng(1), **options))
        for options in ({"cell_type": "gru"}, {"attention": "additive", "target_attention": True})
    ]
    + [(translator(), pairs()), (translator(cell_type="lstm", target_attention=True), pairs())],
    ids=["gru", "attention", "translation", "target-attention"],
)


# ------------------------------------------------------------------ gradients


@pytest.mark.one_in(3)
@pytest.mark.parametrize("options", ARCHITECTURES + PENALISED, ids=name_of)
def test_along_a_random_direction(options, rng):
    model = build(**options, **DROPOUT)
    given = batch(rng, **options)

    def loss():
        return model.loss(*given, rng=np.random.default_rng(4), sampling=0.5)

    plain, _ = model.loss(*given, rng=np.random.default_rng(4))
    value, grads = loss()
    assert value != plain
    assert projected_check(lambda: loss()[0], model.params.flat, grads.flat, rng=rng) < 1e-7


@pytest.mark.parametrize(
    "options", [{"attention": None}, {"attention": "bilinear", "target_attention": True}]
)
@pytest.mark.parametrize("cell_type", ["gru", "lstm"])
def test_along_a_random_direction_of_a_translator(cell_type, options, rng):
    model = translator(cell_type=cell_type, word_dropout=0.3, **options)

    def loss():
        return model.loss(*pairs(), rng=np.random.default_rng(4), sampling=0.5)

    assert projected_check(lambda: loss()[0], model.params.flat, loss()[1].flat, rng=rng) < 1e-7


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"cell_type": "gru"}, {"attention": "additive"}], ids=name_of)
def test_every_parameter(options, rng):
    model, given = build(**options), batch(rng, **options)
    for row in check_model(Sampling(model, 0.6), given, seed=3, verbose=False):
        assert row.error < 1e-7 or row.error * row.grad_norm < 1e-10, row
        assert row.grad_norm > 1e-6, f"{row.name} has no gradient: a vacuous check"


# ------------------------------------------------------------------ which words


@every_model
def test_nothing_is_drawn_without_it(model, given):
    one, other = np.random.default_rng(3), np.random.default_rng(3)
    loss, grads = model.loss(*given, rng=one, sampling=0.0)
    expected, as_ever = model.loss(*given, rng=other)
    assert loss == expected
    np.testing.assert_array_equal(grads.flat, as_ever.flat)
    assert one.bit_generator.state == other.bit_generator.state


@pytest.mark.slow
@every_model
def test_the_first_word_and_padding_stay(model, given, monkeypatch, rng):
    true = given[1]
    T, changed = true.shape[1] - 1, np.zeros(true[:, :-1].shape, bool)
    lengths = ((true[:, 1:] != NULL) * np.arange(1, T + 1)).max(axis=1)
    for _ in range(100):
        read = words_read(model, given, monkeypatch, rng=rng, sampling=1.0)
        changed |= read != true[:, :-1]
    may = (true[:, :-1] != NULL) & (np.arange(T) < lengths[:, None]) & (np.arange(T) > 0)
    np.testing.assert_array_equal(changed, may)


@every_model
def test_the_targets_stay(model, given):
    """At probability 1 the loss is that of the true words after the model's own."""
    places, points = choose_places(given[1][:, :-1] != NULL, 1.0, np.random.default_rng(3))
    source, forced = model._batch("loss", *given)
    lengths = forced.lengths[:, None]
    places &= np.arange(places.shape[1]) < lengths
    mixed = sampled_inputs(model, model.start(given[0]), forced.inputs, places, points)
    expected, _ = model._loss(source, forced._replace(inputs=mixed), None, None)
    assert model.loss(*given, rng=np.random.default_rng(3), sampling=1.0)[0] == expected


@pytest.mark.parametrize("sampling", [0.1, 0.75])
def test_the_share_of_words(sampling, rng):
    real = np.ones((2000, 11), bool)
    real[1000:, 6:] = False
    places, points = choose_places(real, sampling, rng)
    assert not places[:, 0].any()
    assert not places[~real].any()
    for t in range(1, 11):
        rows = 2000 if t < 6 else 1000
        spread = np.sqrt(sampling * (1 - sampling) / rows)
        assert abs(places[:rows, t].mean() - sampling) < 5 * spread
    together = (places[:1000, 1:] - sampling).T @ (places[:1000, 1:] - sampling) / 1000
    apart = together - np.diag(np.diag(together))
    assert abs(apart).max() < 5 * sampling * (1 - sampling) / np.sqrt(1000)  # each coin by itself
    assert 0 <= points.min() <= points.max() < 1


# ------------------------------------------------------------------ by which words


@pytest.mark.parametrize(
    "options",
    [
        {"cell_type": "lstm"},
        {"cell_type": "gru", "image_input": "first_input"},
        {"cell_type": "lstm", "image_input": "second_layer"},
        {"cell_type": "lstm", "attention": "additive", "decoder_layers": 2},
        {"attention": "additive", "target_attention": True, "output": "deep"},
    ],
    ids=name_of,
)
def test_words_follow_the_model_s_distribution(options, rng):
    """20,000 times the same example: the first word drawn, and the second after each of the first."""
    N, model = 20_000, build(**options)
    features, captions = batch(rng, **options)
    features = np.repeat(features[:1], N, axis=0)
    inputs = np.repeat(captions[:1, :3], N, axis=0)
    places, points = choose_places(inputs != NULL, 1.0, rng)
    mixed = sampled_inputs(model, model.start(features), inputs, places, points)
    one = model.start(features[:1])
    first, after_start = model.advance(one, np.array([START]))
    assert_drawn_from(np.exp(first[0]), mixed[:, 1])
    for word in range(V):
        rows = mixed[:, 1] == word
        second, _ = model.advance(after_start, np.array([word]))
        assert_drawn_from(np.exp(second[0]), mixed[rows, 2])


def assert_drawn_from(probabilities, words):
    """Chi-square with V - 1 = 5 degrees of freedom, which 25.7 exceeds once in 10,000 times."""
    expected = len(words) * probabilities
    found = np.bincount(words, minlength=V)
    assert expected.min() > 5
    assert ((found - expected) ** 2 / expected).sum() < 25.7


def test_a_word_that_cannot_come_is_not_drawn(rng):
    model = build()
    model.params["b_vocab"][[0, 1, 3]] = -1e4
    features, captions = batch(rng)
    inputs = np.repeat(captions[:1, :-1], 300, axis=0)
    places, points = choose_places(inputs != NULL, 1.0, rng)
    points[:100], points[100:200] = 0.0, np.nextafter(1.0, 0.0)
    mixed = sampled_inputs(model, model.start(np.repeat(features[:1], 300, axis=0)), inputs, places, points)
    assert set(np.unique(mixed[:, 1:])) == {2, 4, 5}


@every_model
def test_the_order_of_the_batch_matters_only_for_the_draws(model, given, rng):
    order = rng.permutation(len(given[0]))
    inputs = given[1][:, :-1]
    places, points = choose_places(inputs != NULL, 0.7, rng)
    mixed = sampled_inputs(model, model.start(given[0]), inputs, places, points)
    assert (mixed != inputs).any()
    permuted = sampled_inputs(
        model, model.start(given[0][order]), inputs[order], places[order], points[order]
    )
    np.testing.assert_array_equal(permuted, mixed[order])


def test_dropout_is_off_while_words_are_drawn(rng):
    features, captions = batch(rng)
    places, points = choose_places(captions[:, :-1] != NULL, 1.0, rng)
    quiet, noisy = (
        sampled_inputs(model, model.start(features), captions[:, :-1], places, points)
        for model in (build(), build(**DROPOUT))
    )
    np.testing.assert_array_equal(quiet, noisy)


# ------------------------------------------------------------------ cost and errors


def test_what_is_not_drawn_costs_nothing(rng, monkeypatch):
    model = build()
    features, captions = batch(rng)
    state, inputs = model.start(features), captions[:, :-1]
    read, scored = [], []
    advance, forward = model.decoder.advance, model.output.forward
    monkeypatch.setattr(
        model.decoder,
        "advance",
        lambda words, *rest: read.append(len(words)) or advance(words, *rest),
    )
    monkeypatch.setattr(
        model.output,
        "forward",
        lambda params, readout, **rest: (
            scored.append(len(readout.hidden)) or forward(params, readout, **rest)
        ),
    )
    places, points = np.zeros(inputs.shape, bool), np.zeros(inputs.shape)
    sampled_inputs(model, state, inputs, places, points)
    assert read == scored == []
    places[0, [1, 3]] = places[2, 1] = True
    sampled_inputs(model, state, inputs, places, points)
    assert read == [2, 1, 1]  # of five rows, those before their last drawn word
    assert scored == [2, 1]  # no scores at the step without a draw


def test_without_a_draw_there_is_no_first_pass(rng, monkeypatch):
    model = build()
    monkeypatch.setattr(model, "_start", None)
    model.loss(*batch(rng), rng=rng, sampling=1e-12)


@pytest.mark.parametrize("model", [build(), translator()], ids=["CaptioningRNN", "Seq2Seq"])
@pytest.mark.parametrize("sampling", [-0.1, 1.1, np.nan])
def test_errors(model, sampling, rng):
    given, name = (pairs(), "Seq2Seq") if isinstance(model, Seq2Seq) else (batch(rng), "CaptioningRNN")
    assert np.isfinite(model.loss(*given, rng=rng, sampling=1)[0])
    with pytest.raises(ValueError, match=rf"{name}.loss: sampling is {sampling}, expected .* in \[0, 1\]"):
        model.loss(*given, rng=rng, sampling=sampling)
    with pytest.raises(ValueError, match=f"{name}.loss: sampling is 0.5 and rng None, expected a generator"):
        model.loss(*given, sampling=0.5)
