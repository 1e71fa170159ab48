from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rnnlab.decoding import beam, beam_search, greedy

from .listed import listed_beam_search
from .toys import END, START, AttendingModel, TableModel, assert_same_hypotheses

seeds = st.integers(0, 2**32 - 1)


@given(seeds, st.integers(1, 3), st.integers(1, 4), st.sampled_from([0.0, 0.7, 1.0]))
@settings(max_examples=20)
def test_one_beam_is_greedy(seed, words, max_length, length_penalty):
    model = TableModel.random(np.random.default_rng(seed), words=words)
    options = {"max_length": max_length, "forbid": (START,)}
    beams = beam_search(model, [0, 1, 2], beam_size=1, length_penalty=length_penalty, **options)
    expectations = greedy(model, [0, 1, 2], **options)
    for source, ((found,), (expected,)) in enumerate(zip(beams, expectations, strict=True)):
        assert found.tokens == expected.tokens
        assert found.finished
        end = 0.0 if expected.finished else model.table[source, max_length, expected.tokens[-1], END]
        assert found.log_prob == pytest.approx(expected.log_prob + end)


@given(
    seeds,
    st.integers(1, 3),
    st.integers(1, 3),
    st.sampled_from([(0.0, "power"), *product([0.5, 1.0, 2.0], ["power", "gnmt"])]),
    st.integers(1, 8),
    st.integers(0, 1),
    st.integers(0, 2),
)
@settings(max_examples=60)
def test_a_wide_beam_finds_what_enumeration_finds(
    seed, words, max_length, ranking, n_best, min_length, no_repeat_ngram
):
    length_penalty, normalisation = ranking
    model = TableModel.random(np.random.default_rng(seed), words=words)
    options = {
        "length_penalty": length_penalty,
        "normalisation": normalisation,
        "min_length": min_length,
        "no_repeat_ngram": no_repeat_ngram,
    }
    found = beam_search(
        model,
        [0, 1, 2],
        beam_size=50,  # no more than 27 + 9 + 3 + 1 sentences end
        max_length=max_length,
        n_best=n_best,
        forbid=(START,),
        **options,
    )
    for source, hypotheses in enumerate(found):
        expected = model.sentences(source, max_length, **options)[:n_best]
        assert_same_hypotheses(hypotheses[: len(expected)], expected)


@given(seeds, st.integers(1, 4), st.integers(1, 5), st.sampled_from([0.0, 1.0]))
@settings(max_examples=30)
def test_any_beam(seed, words, beam_size, length_penalty):
    """Sorted, without duplicates, short enough, and each with the model's own log-probability."""
    model = TableModel.random(np.random.default_rng(seed), words=words)
    options = {"max_length": 4, "length_penalty": length_penalty, "forbid": (START,)}
    for source, found in enumerate(
        beam_search(model, [0, 1, 2], beam_size=beam_size, n_best=beam_size, **options)
    ):
        assert 1 <= len(found) <= beam_size
        assert len({h.tokens for h in found}) == len(found)
        for hypothesis in found:
            assert len(hypothesis.tokens) <= 4
            assert not {START, END} & set(hypothesis.tokens)
            assert hypothesis.finished
            expected = model.log_prob(source, hypothesis.tokens, hypothesis.finished)
            assert hypothesis.log_prob == pytest.approx(expected)
            normalised = expected / (len(hypothesis.tokens) + 1) ** length_penalty
            assert hypothesis.score == pytest.approx(normalised)
        scores = [h.score for h in found]
        assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("length_penalty", [0.0, 1.0])
@pytest.mark.parametrize("num_groups", [1, 2])
def test_a_source_does_not_see_the_others(num_groups, length_penalty, rng):
    model = TableModel.random(rng, sources=6, words=5)
    options = {"beam_size": 4, "n_best": 4, "max_length": 4, "length_penalty": length_penalty}
    options |= {"num_groups": num_groups, "no_repeat_ngram": 2}
    together = beam_search(model, range(6), **options)
    for order in (range(6), rng.permutation(6)):
        for source in order:
            (alone,) = beam_search(model, [source], **options)
            assert alone == together[source]
    shuffled = rng.permutation(6)
    assert beam_search(model, shuffled, **options) == [together[source] for source in shuffled]


def test_sources_are_searched_in_chunks(monkeypatch, rng):
    model = TableModel.random(rng, sources=5, words=5)
    options = {"beam_size": 3, "n_best": 3, "max_length": 4}
    together = beam_search(model, range(5), **options)
    monkeypatch.setattr(beam, "ROWS", 7)  # two sources with three slots each
    model.rows.clear()
    assert beam_search(model, range(5), **options) == together
    assert max(model.rows) <= 6
    assert model.rows.count(1) <= 1 < model.rows.count(2)
    monkeypatch.setattr(beam, "ROWS", 1)  # a source at least
    assert beam_search(model, range(5), **options) == together


def test_a_wider_beam_finds_what_greedy_misses():
    """The likeliest first word, 2, leads to ends of which none is likely."""
    with np.errstate(divide="ignore"):
        table = np.log(np.zeros((1, 3, 4, 4)))
        table[0, 0, START, [2, 3]] = np.log([0.6, 0.4])
        table[0, 1, 2, [END, 2, 3]] = np.log([0.4, 0.3, 0.3])
        table[0, 1, 3, [END, 2]] = np.log([0.9, 0.1])
        table[0, 2, :, END] = 0
    model = TableModel(table)
    assert greedy(model, [0], max_length=2)[0][0].tokens == (2,)
    best, second = beam_search(model, [0], beam_size=2, n_best=2, max_length=2)[0]
    assert (best.tokens, second.tokens) == ((3,), (2,))
    assert np.exp([best.log_prob, second.log_prob]) == pytest.approx([0.36, 0.24])


def test_length_penalty_prefers_long_sentences():
    """(2,) has probability 0.5 x 0.8, (3, 2, 2) 0.5 x 0.7 x 0.8 x 0.9: per word the second is better."""
    with np.errstate(divide="ignore"):
        table = np.log(np.zeros((1, 4, 4, 4)))
        table[0, 0, START, [2, 3]] = np.log([0.5, 0.5])
        table[0, 1, 2, [END, 3]] = np.log([0.8, 0.2])
        table[0, 1, 3, [END, 2]] = np.log([0.3, 0.7])
        table[0, 2, 2, [END, 2]] = np.log([0.2, 0.8])
        table[0, 3, 2, [END, 3]] = np.log([0.9, 0.1])
        table[0, 2:, 3, END] = 0
    model = TableModel(table)
    options = {"beam_size": 8, "max_length": 3}
    short, long = (beam_search(model, [0], length_penalty=penalty, **options)[0][0] for penalty in (0.0, 1.0))
    assert short.tokens == (2,)
    assert short.score == short.log_prob == pytest.approx(np.log(0.4))
    assert long.tokens == (3, 2, 2)
    assert long.score == pytest.approx(np.log(0.5 * 0.7 * 0.8 * 0.9) / 4)


# ---------------------------------------------------------------- ends


def test_beams_that_never_end_return_the_best_unfinished(rng):
    model = TableModel.random(rng, words=3)
    model.table[..., END] = -np.inf
    for source, found in enumerate(
        beam_search(model, [0, 1, 2], beam_size=30, n_best=5, max_length=3, forbid=(START,))
    ):
        assert [h.finished for h in found] == [False] * 5
        log_probs = sorted(
            (
                model.log_prob(source, (a, b, c), False)
                for a in model.words
                for b in model.words
                for c in model.words
            ),
            reverse=True,
        )
        np.testing.assert_allclose([h.log_prob for h in found], log_probs[:5])


def test_unfinished_sentences_follow_the_finished_ones(rng):
    model = TableModel.random(rng, sources=1, words=2)
    model.table[0, :2, :, END] = -np.inf  # nothing ends before two words
    model.table[0, 2, 3, END] = -np.inf  # and nothing after the word 3
    found = beam_search(model, [0], beam_size=4, n_best=4, max_length=2, forbid=(START,))[0]
    assert {h.tokens for h in found[:2]} == {(2, 2), (3, 2)}
    assert {h.tokens for h in found[2:]} == {(2, 3), (3, 3)}
    assert [h.finished for h in found] == [True, True, False, False]


@given(seeds, st.integers(1, 4), st.integers(1, 3), st.sampled_from([0.0, 1.0]))
@settings(max_examples=30)
def test_all_that_is_in_the_beam_ends_at_the_maximum_length(seed, words, max_length, length_penalty):
    """A beam as wide as there are partial sentences finds all sentences that end, and nothing else."""
    model = TableModel.random(np.random.default_rng(seed), words=words)
    size = sum(words**length for length in range(max_length + 1))
    options = {"max_length": max_length, "length_penalty": length_penalty}
    found = beam_search(model, [0, 1, 2], beam_size=size, n_best=size, forbid=(START,), **options)
    for source, hypotheses in enumerate(found):
        assert_same_hypotheses(hypotheses, model.sentences(source, **options))


def test_a_word_that_cannot_be_appended_takes_no_place(rng):
    """<END> is less likely than each word; the empty sentence is far less likely than that of one word."""
    model = TableModel.random(rng, sources=1, words=3)
    model.table[0, 0, START] = np.log([1e-3, 0.03, 0.949, 0.015, 0.005])
    model.table[0, 1] = np.log([0.1, 0.1, 0.3, 0.3, 0.2])
    for beam_size in range(1, 6):
        (found,) = beam_search(model, [0], beam_size=beam_size, max_length=1)[0]
        assert (found.tokens, found.finished) == ((2,), True)
        assert found.log_prob == pytest.approx(np.log(0.949 * 0.1))


def test_a_sentence_is_returned_once(rng):
    """The longest ones are among those that ended and among those that go on."""
    model = TableModel.random(rng, sources=1, words=1)
    found = beam_search(model, [0], beam_size=8, n_best=8, max_length=3, forbid=(START,))[0]
    assert_same_hypotheses(found, model.sentences(0, 3))


@pytest.mark.parametrize("end_first", [False, True])
@pytest.mark.parametrize("words", [1, 2])
def test_fewer_words_than_the_beam_is_wide(words, end_first, rng):
    model = TableModel.random(rng, words=words)
    expected = [model.sentences(source, 2) for source in range(3)]
    if end_first:  # <END> is 0 and <START> is 1
        swapped = [END, START, *model.words]
        model.table = model.table[:, :, swapped][..., swapped]
        model.start_token, model.end_token = END, START
    found = beam_search(model, [0, 1, 2], beam_size=10, n_best=10, max_length=2, forbid=(model.start_token,))
    for hypotheses, sentences in zip(found, expected, strict=True):
        assert_same_hypotheses(hypotheses, sentences)


def test_a_certain_end_gives_the_empty_sentence_at_once(rng):
    model = TableModel.random(rng)
    model.table[...] = -np.inf
    model.table[..., END] = 0
    found = beam_search(model, [0, 1], beam_size=3, n_best=3, max_length=4)
    assert [[(h.tokens, h.log_prob, h.finished) for h in row] for row in found] == [[((), 0.0, True)]] * 2
    assert model.rows == [2]


def test_a_source_that_is_done_costs_nothing_more(rng):
    model = TableModel.random(rng, sources=2, words=2)
    model.table[0, ..., END] = np.log(1 - 1e-9)
    model.table[0, ..., [START, *model.words]] = np.log(1e-9 / 3)
    model.table[1, ..., END] = -np.inf
    beam_search(model, [0, 1], beam_size=2, max_length=4)
    assert model.rows == [2, 2, 2, 2, 2]  # a row for each source, then two for the second


def test_forbidden_tokens_never_appear(rng):
    model = TableModel.random(rng, words=4)
    model.table[..., np.arange(model.table.shape[-1]) != 3] -= 5
    found = beam_search(model, [0, 1, 2], beam_size=12, n_best=12, max_length=4, forbid=(START, 3))
    words = {token for row in found for hypothesis in row for token in hypothesis.tokens}
    assert words == {2, 4, 5}
    allowed = beam_search(model, [0, 1, 2], beam_size=6, min_length=1, max_length=4)
    assert any(3 in row[0].tokens for row in allowed)


def test_forbidding_leaves_the_models_arrays_alone(rng):
    model = TableModel.random(rng)
    kept = model.table.copy()
    model.advance = lambda state, tokens: (model.table[0, 0, : len(tokens)], state)  # its own memory
    beam_search(model, [0] * 3, beam_size=1, max_length=2, forbid=(START, 2))
    np.testing.assert_array_equal(model.table, kept)


@given(seeds, st.integers(1, 4))
@settings(max_examples=20)
def test_of_equals_the_first_is_taken(seed, beam_size):
    """Many words of few different probabilities: one beam is greedy still, a wider one sorts."""
    rng = np.random.default_rng(seed)
    model = TableModel(-rng.integers(1, 4, size=(2, 2, 60, 60)).astype(float))
    options = {"max_length": 1, "forbid": (START,)}
    one_beam = beam_search(model, [0, 1], beam_size=1, **options)
    assert [row[0].tokens for row in one_beam] == [row[0].tokens for row in greedy(model, [0, 1], **options)]

    model.table[..., END] = -np.inf  # so that the beam is full of unfinished words
    found = beam_search(model, [0, 1], beam_size=beam_size, n_best=beam_size, **options)
    for row, log_probs in zip(found, model.table[:, 0, START], strict=True):
        expected = [word for word in np.argsort(-log_probs, kind="stable") if word not in (START, END)]
        assert [h.tokens for h in row] == [(word,) for word in expected[:beam_size]]


def test_no_source(rng):
    assert beam_search(TableModel.random(rng), [], beam_size=3) == []


# ---------------------------------------------------------------- groups


@given(seeds, st.sampled_from([2, 3]))
@settings(max_examples=15)
def test_groups_that_care_little_are_one_beam_each(seed, num_groups):
    """Without diversity all groups find what one of them finds alone."""
    model = TableModel.random(np.random.default_rng(seed), words=4)
    options = {"max_length": 4, "forbid": (START,)}
    alone = beam_search(model, [0, 1, 2], beam_size=2, n_best=2, **options)
    groups = beam_search(
        model, [0, 1, 2], beam_size=2 * num_groups, num_groups=num_groups, n_best=2, diversity=0, **options
    )
    for one, other in zip(alone, groups, strict=True):
        assert_same_hypotheses(other, one)


def test_a_diversity_that_overflows_in_float32_is_a_large_one(rng):
    model = TableModel(TableModel.random(rng, words=4).table.astype(np.float32))
    options = {"beam_size": 3, "num_groups": 3, "n_best": 3, "max_length": 4}
    found = beam_search(model, [0, 1, 2], diversity=1e39, **options)
    assert found == beam_search(model, [0, 1, 2], diversity=1e6, **options)


@given(seeds, st.sampled_from([2, 4]))
@settings(max_examples=15)
def test_groups_start_with_different_words(seed, num_groups):
    model = TableModel.random(np.random.default_rng(seed), words=5)
    found = beam_search(
        model,
        [0, 1, 2],
        beam_size=num_groups,
        num_groups=num_groups,
        n_best=num_groups,
        diversity=100,
        max_length=4,
        min_length=1,
        forbid=(START,),
        length_penalty=1,
    )
    for source, hypotheses in enumerate(found):
        firsts = np.argsort(-model.table[source, 0, START, 2:])[:num_groups] + 2
        assert {h.tokens[0] for h in hypotheses} == set(firsts.tolist())
        for hypothesis in hypotheses:  # diversity has no part in the numbers
            expected = model.log_prob(source, hypothesis.tokens, hypothesis.finished)
            assert hypothesis.log_prob == pytest.approx(expected)
            assert hypothesis.score == pytest.approx(expected / (len(hypothesis.tokens) + 1))


@given(seeds, st.integers(1, 3), st.integers(1, 4), st.integers(1, 4), st.integers(0, 2), st.integers(0, 2))
@settings(max_examples=100)
def test_any_beam_is_that_of_lists(seed, num_groups, size, max_length, min_length, no_repeat_ngram):
    """All options together, at any width. All sentences can end, so that only finished ones are returned."""
    rng = np.random.default_rng(seed)
    length_penalty, normalisation = [(0.0, "power"), (0.7, "power"), (2.0, "power"), (1.0, "gnmt")][seed % 4]
    model = TableModel.random(rng, words=3)
    options = {
        "beam_size": num_groups * size,
        "n_best": int(rng.integers(1, num_groups * size + 1)),
        "max_length": max_length,
        "min_length": min(min_length, max_length),
        "length_penalty": length_penalty,
        "normalisation": normalisation,
        "num_groups": num_groups,
        "no_repeat_ngram": no_repeat_ngram,
    }
    if num_groups > 1:
        options["diversity"] = float(rng.uniform(0.1, 3))
    for source, found in enumerate(beam_search(model, [0, 1, 2], forbid=(START,), **options)):
        expected = listed_beam_search(model, source, **options)
        assert_same_hypotheses(found, expected)


def diverse(model, source, num_groups, diversity, max_length):
    """Vijayakumar et al. (2016), algorithm 1, with one sentence a group."""
    paths = [[START] for _ in range(num_groups)]
    for t in range(max_length + 1):
        chosen = np.zeros(model.table.shape[-1])
        for path in paths:
            if path[-1] != END and len(path) <= max_length + 1:
                row = model.table[source, t, path[-1]] - diversity * chosen
                row[START] = -np.inf
                word = int(row.argmax())
                if word == END or t < max_length:
                    path.append(word)
                if word != END and t < max_length:
                    chosen[word] += 1
    return {tuple(token for token in path if token not in (START, END)) for path in paths}


@given(seeds, st.sampled_from([0.3, 1.0]))
@settings(max_examples=20)
def test_groups_of_one_are_greedy_with_a_penalty(seed, diversity):
    model = TableModel.random(np.random.default_rng(seed), words=4)
    options = {"beam_size": 3, "num_groups": 3, "n_best": 3, "max_length": 4, "forbid": (START,)}
    for source, found in enumerate(beam_search(model, [0, 1, 2], diversity=diversity, **options)):
        assert {h.tokens for h in found} <= diverse(model, source, 3, diversity, 4)
        ended = [h for h in found if h.finished]
        assert len({h.tokens for h in found}) == len(found) == len(ended)


def test_groups_end_at_the_maximum_length():
    row = np.log([1e-9, 0.1, 0.6, 0.3])
    model = TableModel(np.broadcast_to(row, (1, 2, 4, 4)).copy())
    options = {"beam_size": 3, "num_groups": 3, "n_best": 3, "max_length": 1, "min_length": 1}
    found = beam_search(model, [0], diversity=100, forbid=(START,), **options)[0]
    assert {h.tokens for h in found} == {(2,), (3,)}
    assert all(h.finished for h in found)


# ---------------------------------------------------------------- alignments


@given(seeds, st.integers(1, 2), st.sampled_from([0.0, 1.0]))
@settings(max_examples=15)
def test_alignments_belong_to_the_words(seed, num_groups, length_penalty):
    model = AttendingModel.random(np.random.default_rng(seed), words=3)
    options = {"beam_size": 4, "n_best": 4, "max_length": 4, "length_penalty": length_penalty}
    options |= {"num_groups": num_groups, "forbid": (START,)}
    with_alignments = beam_search(model, [2, 0, 1], return_alignments=True, **options)
    without = beam_search(model, [2, 0, 1], **options)
    for source, found, same in zip([2, 0, 1], with_alignments, without, strict=True):
        assert [h._replace(alignment=None) for h in found] == same
        for hypothesis in found:
            np.testing.assert_array_equal(hypothesis.alignment, model.expected(source, hypothesis))


# ---------------------------------------------------------------- options that do not fit


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam_size": 0}, "beam_size is 0, expected at least 1"),
        ({"n_best": 0}, "n_best is 0, expected 1 to 3"),
        ({"n_best": 4}, "n_best is 4, expected 1 to 3"),
        ({"length_penalty": -0.1}, "length_penalty is -0.1, expected a finite number of at least 0"),
        ({"length_penalty": float("nan")}, "length_penalty is nan, expected a finite number of at least 0"),
        (
            {"length_penalty": 200.0},
            "length_penalty is 200.0, for which the scores of 30 words would be zero",
        ),
        ({"normalisation": "gnmt"}, "normalisation is 'gnmt', which needs length_penalty above 0"),
        ({"diversity": 1.0}, "diversity is 1.0, which needs num_groups of at least 2"),
        ({"normalisation": "mean"}, "normalisation is 'mean', expected 'power' or 'gnmt'"),
        ({"diversity": -1.0}, "diversity is -1.0, expected a finite number of at least 0"),
        ({"length_penalty": None}, "length_penalty is None, expected a finite number of at least 0"),
        ({"num_groups": 0}, "num_groups is 0, expected at least 1"),
        ({"num_groups": 2}, "num_groups is 2, expected a divisor of beam_size = 3"),
    ],
)
def test_wrong_options(options, message, rng):
    with pytest.raises(TypeError, match="n_best is 1.5, expected an integer"):
        beam_search(TableModel.random(rng), [0], n_best=1.5)
    with pytest.raises(TypeError, match="beam_size is True, expected an integer"):
        beam_search(TableModel.random(rng), [0], beam_size=True)
    with pytest.raises(ValueError, match=f"^beam_search: {message}"):
        beam_search(TableModel.random(rng), [0], **options)
