"""Discriminative supervision in a model: its words, its weight, and what it refuses."""

import re

import numpy as np
import pytest

from rnnlab.layers import discriminative_forward
from rnnlab.models import CaptioningRNN

from ..toys import WORD_TO_IDX, D, H, W, batch, build

FIRST = sum(word in WORD_TO_IDX for word in ("<NULL>", "<START>", "<END>", "<UNK>"))  # token of a word
OPTIONS = {"cell_type": "lstm", "attention": "additive", "reviewer": {"blocks": 2, "steps": 2}}


@pytest.mark.parametrize("count", [1, 3, None])
def test_the_loss_is_that_of_the_layer(count, rng):
    """The mean over blocks, of the frequent words among all targets of a caption."""
    model, (features, captions) = (
        build(**OPTIONS, discriminative=0.7, discriminative_words=count),
        batch(rng, **OPTIONS),
    )
    total, (nll, _) = model.loss(features, captions)[0], model.nll(features, captions)
    k, targets = len(WORD_TO_IDX) - FIRST if count is None else count, captions[:, 1:]
    words = np.where((targets >= FIRST) & (targets < FIRST + k), targets - FIRST, -1)
    W_words = {"W": model.params["discriminative_W"]}
    assert W_words["W"].shape == (H, k)
    losses = [discriminative_forward(each, words, W_words)[0] for each in model.review(features).thoughts]
    assert total == pytest.approx(nll / len(captions) + 0.7 * np.mean(losses), rel=1e-10)


def test_scheduled_sampling_does_not_change_the_words(rng):
    """Words that the decoder reads instead of the true ones are no targets."""
    model, (features, captions) = build(**OPTIONS, discriminative=0.7), batch(rng, **OPTIONS)
    weighted, _ = model.loss(features, captions, rng=np.random.default_rng(0), sampling=0.9)
    model.discriminative = 0.0
    without, _ = model.loss(features, captions, rng=np.random.default_rng(0), sampling=0.9)
    plain, _ = model.loss(features, captions)
    model.discriminative = 0.7
    assert weighted - without == pytest.approx(model.loss(features, captions)[0] - plain, rel=1e-9)


def test_a_part_of_a_batch_has_its_share(rng):
    model, (features, captions) = build(**OPTIONS, discriminative=0.7), batch(rng, **OPTIONS)
    whole, grads = model.loss(features, captions)
    N, tokens, total, summed = (
        len(captions),
        int((captions[:, 1:] != 0).sum()),
        0.0,
        model.params.zeros_like(),
    )
    for rows in (slice(0, 2), slice(2, N)):
        loss, _ = model.loss(features[rows], captions[rows], part_of=(N, tokens), grads=summed)
        total += loss
    assert total == pytest.approx(whole, rel=1e-12)
    np.testing.assert_allclose(summed.flat, grads.flat, rtol=1e-9, atol=1e-13)


def test_a_padded_batch_has_the_same_loss(rng):
    model, (features, captions) = build(**OPTIONS, discriminative=0.7), batch(rng, **OPTIONS)
    loss, grads = model.loss(features, captions)
    padded_grads = model.params.zeros_like()
    padded_loss = model.padded_loss(model.padded(features, captions), grads=padded_grads)
    assert padded_loss == pytest.approx(loss, rel=1e-12)
    np.testing.assert_allclose(padded_grads.flat, grads.flat, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"discriminative": 0.5, "reviewer": None},
            "discriminative is 0.5, which needs the thought",
        ),
        (
            {"discriminative_words": 2, "reviewer": None},
            "discriminative_words is 2, which needs the thought",
        ),
        (
            {"discriminative_words": 99},
            f"discriminative_words is 99, expected at most {len(WORD_TO_IDX) - FIRST}, the vocabulary "
            "without its special words",
        ),
        ({"discriminative_words": 0}, "discriminative_words is 0, expected an integer of at least 1"),
        ({"discriminative": -1.0}, "discriminative is -1.0, expected a finite number of at least 0"),
    ],
)
def test_wrong_options_are_named(options, message):
    with pytest.raises(ValueError, match=re.escape(f"CaptioningRNN: {message}")):
        CaptioningRNN(WORD_TO_IDX, D, W, H, **(OPTIONS | options))


def test_the_vocabulary_begins_with_its_special_words(rng):
    words = list(WORD_TO_IDX)
    moved = {word: k for k, word in enumerate(reversed(words))}
    with pytest.raises(ValueError, match="word_to_idx does not begin with its special words"):
        CaptioningRNN(moved, D, W, H, **OPTIONS, discriminative=0.5)


def test_a_weight_without_word_scores_is_named(rng):
    model, given = build(**OPTIONS), batch(rng, **OPTIONS)
    model.discriminative = 0.5
    with pytest.raises(
        ValueError,
        match="discriminative is 0.5, but the model was made without .*: give it discriminative_words",
    ):
        model.loss(*given)
