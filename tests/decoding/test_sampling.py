from itertools import product

import numpy as np
import pytest
from scipy import stats

from rnnlab.decoding import greedy, sample, sampling

from .toys import END, START, TableModel


def frequencies(model, draws, **options):
    """How often each sentence comes in that many draws."""
    counts = {}
    for (found,) in sample(model, [0] * draws, **options):
        key = (found.tokens, found.finished)
        counts[key] = counts.get(key, 0) + 1
    return counts


@pytest.mark.parametrize(
    ("temperature", "forbid"), [(0.5, ()), (1.0, ()), (1.0, (START, 3)), (2.0, (START, 3))]
)
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


@pytest.mark.parametrize(
    ("options", "weights"),
    [
        ({}, [1, 4, 3, 1, 1]),
        ({"top_k": 1}, [0, 1, 0, 0, 0]),
        ({"top_k": 2}, [0, 4, 3, 0, 0]),
        ({"top_k": 3}, [1, 4, 3, 1, 1]),  # three are as probable as the third
        ({"top_k": 9}, [1, 4, 3, 1, 1]),
        ({"top_p": 0.39}, [0, 1, 0, 0, 0]),
        ({"top_p": 0.41}, [0, 4, 3, 0, 0]),
        ({"top_p": 0.69}, [0, 4, 3, 0, 0]),
        ({"top_p": 0.71}, [1, 4, 3, 0, 0]),  # of three equals the first
        ({"top_p": 0.81}, [1, 4, 3, 1, 0]),
        ({"top_k": 2, "top_p": 0.5}, [0, 1, 0, 0, 0]),  # 4 of 7 is more than half,
        ({"top_p": 0.5, "temperature": 0.5}, [0, 1, 0, 0, 0]),  # and so is 16 of 28
        ({"top_p": 0.5, "temperature": 2.0}, [0, 2, 3**0.5, 0, 0]),
        ({"top_p": 0.4, "forbid": (2,)}, [0, 0, 1, 0, 0]),
    ],
)
def test_the_likely_part_of_the_distribution(options, weights, rng):
    table = np.full((1, 2, 6, 6), -np.inf)
    table[..., [END, 2, 3, 4, 5]] = np.log([0.1, 0.4, 0.3, 0.1, 0.1])
    draws = 4000
    found = sample(TableModel(table), [0] * draws, max_length=1, rng=rng, **options)
    counts = np.bincount([h.tokens[0] if h.tokens else END for (h,) in found], minlength=6)
    expected = np.array([0, *weights]) / sum(weights)
    assert not counts[expected == 0].any()
    np.testing.assert_allclose(counts / draws, expected, atol=0.03)  # some four standard deviations


def test_the_log_probability_of_a_sample_is_the_models_own(rng):
    model = TableModel.random(rng, sources=5, words=3)
    found = sample(model, range(5), max_length=4, temperature=3.0, forbid=(START,), rng=rng)
    for source, (hypothesis,) in enumerate(found):
        expected = model.log_prob(source, hypothesis.tokens, hypothesis.finished)
        assert hypothesis.log_prob == hypothesis.score == pytest.approx(expected)


@pytest.mark.parametrize("temperature", [1e-6, 1e-60, 1e-320])
@pytest.mark.parametrize("top_p", [1.0, 0.5])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_low_temperature_is_greedy(dtype, top_p, temperature, rng):
    model = TableModel.random(rng, sources=8, words=4)
    model.table = model.table.astype(dtype)
    options = {"max_length": 4, "forbid": (2,)}
    found = sample(model, range(8), temperature=temperature, top_p=top_p, rng=rng, **options)
    assert found == greedy(model, range(8), **options)


def test_probabilities_of_a_nucleus_may_be_rounded_to_zero():
    with np.errstate(all="raise"):
        kept = sampling._likely(np.log([[0.75, 0.25]]), temperature=1e-6, top_k=0, top_p=0.5)
    np.testing.assert_array_equal(kept, [[np.log(0.75), -np.inf]])


@pytest.mark.parametrize("temperature", [1e38, 1e39, 1e308])
@pytest.mark.parametrize("top_p", [1.0, 0.999])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_high_temperature_is_uniform(dtype, top_p, temperature):
    model = TableModel(np.full((1, 2, 300, 300), -np.log(300), dtype))
    found = sample(
        model, [0], count=2000, temperature=temperature, top_p=top_p, rng=0, max_length=1, forbid=(3,)
    )
    (drawn,) = [[word for hypothesis in row for word in hypothesis.tokens] for row in found]
    assert 3 not in drawn
    assert np.mean(np.array(drawn) < 64) == pytest.approx(63 / 299, abs=0.05)


def test_the_generator_alone_decides(rng):
    model = TableModel.random(rng, sources=8, words=4)
    one, other, third = (
        sample(model, range(8), max_length=4, rng=np.random.default_rng(seed)) for seed in (1, 1, 2)
    )
    assert one == other != third


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": 0.0}, "temperature is 0.0, expected a positive number"),
        ({"temperature": -1.0}, "temperature is -1.0, expected a positive number"),
        ({"temperature": float("nan")}, "temperature is nan, expected a positive number"),
        ({"temperature": float("inf")}, "temperature is inf, expected a positive number"),
        ({"temperature": None}, "temperature is None, expected a positive number"),
        ({"top_k": -1}, "top_k is -1, expected at least 0"),
        ({"top_p": "a"}, "top_p is 'a', expected a number in"),
        ({"top_p": 0.0}, r"top_p is 0.0, expected a number in \(0, 1\]"),
        ({"top_p": 1.1}, r"top_p is 1.1, expected a number in \(0, 1\]"),
    ],
)
def test_wrong_options_of_sampling(options, message, rng):
    with pytest.raises(ValueError, match=f"^sample: {message}"):
        sample(TableModel.random(rng), [0], rng=rng, **options)


def test_a_seed_is_a_generator(rng):
    model = TableModel.random(rng, sources=8, words=4)
    assert sample(model, range(8), max_length=4, rng=3) == sample(
        model, range(8), max_length=4, rng=np.random.default_rng(3)
    )
    with pytest.raises(ValueError, match="^sample: rng is -1"):
        sample(model, [0], rng=-1)
    for wrong in (None, True, 0.5):
        with pytest.raises(TypeError, match=f"^sample: rng is {wrong}, expected a numpy Generator or a seed"):
            sample(model, [0], rng=wrong)


def test_the_nucleus_of_equal_tokens_is_the_smallest_set(rng):
    table = np.full((1, 2, 6, 6), -np.inf)
    table[..., 2:] = np.log(0.25)
    found = sample(TableModel(table), [0] * 400, max_length=1, top_p=0.5, rng=rng)
    assert {h.tokens for (h,) in found} == {(2,), (3,)}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("count", [3, 10, 1000])
def test_a_share_of_equal_tokens(count, dtype):
    probs = np.full((2, count), 0.1, dtype)
    for kept in {1, count // 2, count - 1}:
        inside = sampling._nucleus(probs, kept / count)
        assert (np.flatnonzero(inside[1]) == np.arange(kept)).all()


def test_several_samples_of_a_source(rng):
    """A source is read once, and its samples are those of as many equal sources."""
    model = TableModel.random(rng, sources=3, words=4)
    starts, start = [], model.start
    model.start = lambda source: starts.append(len(source)) or start(source)
    found = sample(model, [0, 1, 2], rng=np.random.default_rng(3), count=4, max_length=4)
    assert starts == [3]
    assert [len(each) for each in found] == [4, 4, 4]
    repeated = sample(model, np.repeat([0, 1, 2], 4), rng=np.random.default_rng(3), max_length=4)
    assert [each for row in found for each in row] == [each for (each,) in repeated]
    assert len({each.tokens for row in found for each in row}) > 3


def test_no_samples_is_an_error(rng):
    with pytest.raises(ValueError, match="sample: count is 0, expected at least 1"):
        sample(TableModel.random(rng), [0], rng=rng, count=0)


@pytest.mark.parametrize("scores", [[-np.inf, np.inf, 0.0], [0.0, 0.0, np.inf], [-1.0, np.nan, 0.0]])
def test_samples_are_not_drawn_from_scores_that_are_no_log_probabilities(scores):
    """Also if the infinite one is not drawn: infinity less infinity is no number."""

    class Broken:
        start_token, end_token = 0, 1

        def start(self, source):
            return np.zeros((len(source), 1))

        def advance(self, state, tokens):
            return np.repeat([scores], len(tokens), 0), state

    with pytest.raises(ValueError, match="sample: the model's log-probabilities hold"):
        sample(Broken(), np.zeros(1), rng=0, max_length=3)
