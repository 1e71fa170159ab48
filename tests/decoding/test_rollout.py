from itertools import product

import numpy as np
import pytest
from scipy import stats

from rnnlab.decoding import greedy, sample

from .toys import END, START, TableModel


def test_greedy_takes_the_likeliest_token_at_every_step(rng):
    model = TableModel.random(rng, sources=8, words=4)
    for source, (found,) in enumerate(greedy(model, range(8), max_length=4, forbid=(START,))):
        tokens, last = (), START
        while len(tokens) <= 4:
            row = model.table[source, len(tokens), last].copy()
            row[START] = -np.inf
            last = int(row.argmax())
            if last == END or len(tokens) == 4:
                break
            tokens += (last,)
        assert found.tokens == tokens
        assert found.finished == (last == END)
        assert found.log_prob == found.score == pytest.approx(model.log_prob(source, tokens, found.finished))


@pytest.mark.parametrize("search", [greedy, sample])
def test_a_sentence_that_never_ends_has_the_maximum_length(search, rng):
    model = TableModel.random(rng, positions=4)
    model.table[..., END] = -np.inf
    options = {} if search is greedy else {"rng": rng}
    for source, (found,) in enumerate(search(model, [0, 1], max_length=3, **options)):
        assert len(found.tokens) == 3
        assert not found.finished
        assert found.log_prob == pytest.approx(model.log_prob(source, found.tokens, False))


def test_a_sentence_of_the_maximum_length_may_end(rng):
    model = TableModel.random(rng, sources=1)
    model.table[0, :3, :, END] = -np.inf
    model.table[0, 3] = -np.inf
    model.table[0, 3, :, END] = 0
    ((found,),) = greedy(model, [0], max_length=3)
    assert len(found.tokens) == 3
    assert found.finished


def test_greedy_stops_when_all_have_ended(rng):
    model = TableModel.random(rng, sources=2)
    model.table[0, ..., END] = 10  # the first ends at once, the second after a word
    model.table[1, 0, :, END] = -np.inf
    model.table[1, 1, :, END] = 10
    found = greedy(model, [0, 1], max_length=4)
    assert [len(row[0].tokens) for row in found] == [0, 1]
    assert model.rows == [2, 2]


def test_a_source_does_not_see_the_others(rng):
    model = TableModel.random(rng, sources=6, words=5)
    together = greedy(model, range(6), max_length=4)
    assert [greedy(model, [source], max_length=4)[0] for source in range(6)] == together


# ---------------------------------------------------------------- sampling


def frequencies(model, draws, **options):
    """How often each sentence comes in that many draws."""
    counts = {}
    for (found,) in sample(model, [0] * draws, **options):
        key = (found.tokens, found.finished)
        counts[key] = counts.get(key, 0) + 1
    return counts


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("forbid", [(), (START, 3)])
def test_sentences_come_as_often_as_they_are_probable(temperature, forbid, rng):
    model = TableModel.random(rng, sources=1, words=2, spread=0.7)
    sharpened = model.table / temperature
    sharpened[..., list(forbid)] = -np.inf
    sharpened -= np.log(np.exp(sharpened).sum(axis=-1, keepdims=True))
    exact = TableModel(sharpened)

    tokens = [token for token in range(4) if token not in (END, *forbid)]
    expected = {((), True): exact.log_prob(0, (), True)}
    expected |= {((a,), True): exact.log_prob(0, (a,), True) for a in tokens}
    expected |= {(pair, True): exact.log_prob(0, pair, True) for pair in product(tokens, repeat=2)}
    not_ended = {pair: np.exp(exact.log_prob(0, pair, False)) for pair in product(tokens, repeat=2)}
    expected |= {
        (pair, False): np.log(p - np.exp(expected[pair, True])) for pair, p in not_ended.items() if p
    }
    draws = 20_000
    counts = frequencies(model, draws, max_length=2, temperature=temperature, forbid=forbid, rng=rng)
    assert set(counts) <= set(expected)
    observed = [counts.get(key, 0) for key in expected]
    assert stats.chisquare(observed, draws * np.exp(list(expected.values()))).pvalue > 1e-3


def test_the_log_probability_of_a_sample_is_the_models_own(rng):
    model = TableModel.random(rng, sources=5, words=3)
    found = sample(model, range(5), max_length=4, temperature=3.0, forbid=(START,), rng=rng)
    for source, (hypothesis,) in enumerate(found):
        expected = model.log_prob(source, hypothesis.tokens, hypothesis.finished)
        assert hypothesis.log_prob == hypothesis.score == pytest.approx(expected)


def test_a_low_temperature_is_greedy(rng):
    model = TableModel.random(rng, sources=8, words=4)
    assert sample(model, range(8), max_length=4, temperature=1e-6, rng=rng) == greedy(
        model, range(8), max_length=4
    )


def test_the_generator_alone_decides(rng):
    model = TableModel.random(rng, sources=8, words=4)
    one, other, third = (
        sample(model, range(8), max_length=4, rng=np.random.default_rng(seed)) for seed in (1, 1, 2)
    )
    assert one == other != third


# ---------------------------------------------------------------- both


@pytest.mark.parametrize("search", [greedy, sample])
def test_forbidden_tokens_never_appear(search, rng):
    model = TableModel.random(rng, sources=20, words=4)
    model.table[..., 3] += 5
    options = {} if search is greedy else {"rng": rng}
    found = search(model, range(20), max_length=4, forbid=(START, 3), **options)
    assert {token for (hypothesis,) in found for token in hypothesis.tokens} == {2, 4, 5}


@pytest.mark.parametrize("search", [greedy, sample])
def test_no_source(search, rng):
    options = {} if search is greedy else {"rng": rng}
    assert search(TableModel.random(rng), [], **options) == []


@pytest.mark.parametrize("search", [greedy, sample])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_length": 0}, "max_length is 0, expected at least 1"),
        ({"forbid": [2, END]}, "forbid holds <END> "),
    ],
)
def test_wrong_options(search, options, message, rng):
    noise = {} if search is greedy else {"rng": rng}
    with pytest.raises(ValueError, match=f"^{search.__name__}: {message}"):
        search(TableModel.random(rng), [0], **noise, **options)


@pytest.mark.parametrize("temperature", [0.0, -1.0, float("nan")])
def test_wrong_temperature(temperature, rng):
    with pytest.raises(ValueError, match=f"sample: temperature is {temperature}, expected a number above 0"):
        sample(TableModel.random(rng), [0], temperature=temperature, rng=rng)


@pytest.mark.parametrize("word", ["start", "end"])
def test_a_vocabulary_without_start_or_end(word, rng):
    model = TableModel.random(rng)
    setattr(model, f"{word}_token", None)
    with pytest.raises(ValueError, match=f"greedy: the model's vocabulary has no <{word.upper()}>"):
        greedy(model, [0])
