"""CaptioningRNN under the searches: what they find has the probability that the model gives it."""

import numpy as np
import pytest

from rnnlab import decoding
from rnnlab.decoding.state_rows import select
from rnnlab.models import CaptioningRNN

from .toys import END, NULL, START, D, H, V, W, build, every_architecture, features_of, rows_of

N = 6


def features(rng, **options):
    """Of images, twice as large as usual, so that sentences differ."""
    found = features_of(rng, N, **options)
    return tuple(2 * each for each in found) if isinstance(found, tuple) else 2 * found


def searches(model, source, **options):
    """All hypotheses of every search, with the row of the source that each belongs to."""
    found = [
        *decoding.greedy(model, source, **options),
        *decoding.sample(model, source, rng=np.random.default_rng(1), **options),
        *decoding.beam_search(model, source, beam_size=3, n_best=3, length_penalty=0.7, **options),
    ]
    return [(row % N, hypothesis) for row, hypotheses in enumerate(found) for hypothesis in hypotheses]


@pytest.mark.one_in(6)
@every_architecture
def test_hypotheses_are_as_probable_as_the_model_says(options, rng):
    model, source = build(**options), features(rng, **options)
    found = searches(model, source, max_length=3, forbid=(NULL, START))
    assert any(hypothesis.finished for _, hypothesis in found)
    for row, hypothesis in found:
        caption = [START, *hypothesis.tokens, *([END] if hypothesis.finished else [])]
        total, tokens = model.nll(rows_of(source, slice(row, row + 1)), [caption])
        assert tokens == len(caption) - 1
        assert hypothesis.log_prob == pytest.approx(-total)


@pytest.mark.one_in(3)
@every_architecture
def test_one_beam_is_greedy(options, rng):
    model, source = build(**options), features(rng, **options)
    given = {"max_length": 5, "forbid": (NULL, START)}
    beams = decoding.beam_search(model, source, beam_size=1, **given)
    greedy = decoding.greedy(model, source, **given)
    assert [row[0].tokens for row in beams] == [row[0].tokens for row in greedy]


@pytest.mark.one_in(6)
@every_architecture
def test_an_image_does_not_see_the_others(options, rng):
    model, source = build(**options), features(rng, **options)
    for search in (decoding.greedy, decoding.beam_search):
        together = search(model, source, max_length=5)
        for n in range(N):
            (alone,) = search(model, rows_of(source, slice(n, n + 1)), max_length=5)
            assert [h.tokens for h in alone] == [h.tokens for h in together[n]]
            np.testing.assert_allclose([h.score for h in alone], [h.score for h in together[n]])


@pytest.mark.one_in(3)
@every_architecture
def test_rows_of_a_state_can_be_selected(options, rng):
    """What beam search does with a state: reorder, repeat and drop rows."""
    model, source = build(**options), features(rng, **options)
    rows = np.array([4, 0, 0, 2])
    _, state = model.advance(model.start(source), np.full(N, START))
    tokens = rng.integers(V, size=N)
    whole, _ = model.advance(state, tokens)
    selected, _ = model.advance(select(state, rows), tokens[rows])
    np.testing.assert_allclose(selected, whole[rows], rtol=1e-12)


def test_advance_leaves_the_state_alone(rng):
    model = build(cell_type="lstm")
    state = model.start(features(rng))
    first, _ = model.advance(state, np.full(N, START))
    again, _ = model.advance(state, np.full(N, START))
    np.testing.assert_array_equal(first, again)


# ---------------------------------------------------------------- sample, as in the course


@pytest.mark.parametrize("max_length", [1, 3, 8])
def test_sample_is_greedy_decoding_in_an_array(max_length, rng):
    model, source = build(), features(rng)
    captions = model.sample(source, max_length=max_length)
    assert captions.shape == (N, max_length)
    assert captions.dtype == np.int32
    for row, (hypothesis,) in zip(
        captions, decoding.greedy(model, source, max_length=max_length), strict=True
    ):
        expected = [*hypothesis.tokens, *([END] if hypothesis.finished else []), *[NULL] * max_length]
        assert row.tolist() == expected[:max_length]


def test_sample_pads_after_the_end(rng):
    model = build()
    model.params["b_vocab"][END] = 100
    assert model.sample(features(rng), max_length=3).tolist() == [[END, NULL, NULL]] * N
    model.params["b_vocab"][END] = -100
    assert (model.sample(features(rng), max_length=3) != END).all()


def test_sample_of_no_image():
    assert build().sample(np.ones((0, D)), max_length=3).shape == (0, 3)


def test_sample_has_a_default_length(rng):
    assert build().sample(features(rng)).shape == (N, 30)


@pytest.mark.parametrize("missing", ["<START>", "<END>"])
def test_a_vocabulary_that_cannot_be_decoded(missing):
    words = {"<NULL>": 0, "<START>": 1, "<END>": 2}
    del words[missing]
    model = CaptioningRNN({word: k for k, word in enumerate(words)}, D, W, H)
    with pytest.raises(ValueError, match=f"the model's vocabulary has no {missing}"):
        model.sample(np.ones((1, D)))


def test_features_that_do_not_fit():
    with pytest.raises(ValueError, match="CaptioningRNN.start: features has shape"):
        build().sample(np.ones((2, D + 1)))


@pytest.mark.one_in(3)
@every_architecture
def test_alignments_are_those_of_the_search(options, rng):
    """Teacher forcing with what a search found looks where the search looked."""
    model, source = build(**options), features(rng, **options)
    captions = [[START, 3, 4, END, NULL]] * N
    if not options.get("attention"):
        with pytest.raises(ValueError, match="CaptioningRNN: this model does not attend to its source"):
            model.align(source, captions)
        return
    found = [
        best
        for best, *_ in decoding.greedy(model, source, max_length=3, forbid=[NULL], return_alignments=True)
    ]
    for row, best in enumerate(found):
        caption = [START, *best.tokens, *([END] if best.finished else [])]
        (weights,) = model.align(rows_of(source, slice(row, row + 1)), [caption])
        np.testing.assert_allclose(weights, best.alignment, rtol=1e-10)
