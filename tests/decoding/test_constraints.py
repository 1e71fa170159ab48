import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rnnlab.decoding import Ensemble, beam_search, greedy, sample
from rnnlab.decoding.constraints import Constraints, repeated
from rnnlab.decoding.search import gives_new_array

from .toys import END, START, AttendingModel, TableModel, has_repeats

seeds = st.integers(0, 2**32 - 1)


def searches(model, source, seed=0, **options):
    """Every search: pairs of a source and a hypothesis."""
    found = [
        greedy(model, source, **options),
        sample(model, source, rng=np.random.default_rng(seed), **options),
        beam_search(model, source, beam_size=3, n_best=3, **options),
        beam_search(model, source, beam_size=4, n_best=4, num_groups=2, **options),
    ]
    return [(n, h) for rows in found for n, row in zip(source, rows, strict=True) for h in row]


def constraints(model, **options):
    given = {"max_length": 5, "min_length": 0, "forbid": (), "no_repeat_ngram": 0}
    return Constraints("test", model, **given | options)


def test_the_log_probabilities_are_not_changed(rng):
    log_probs = rng.standard_normal((2, 4))
    kept = log_probs.copy()
    out = constraints(TableModel.random(rng), forbid=(0, 3, 3), min_length=2).apply(log_probs, 1, None)
    np.testing.assert_array_equal(log_probs, kept)
    kept[:, [0, 3, END]] = -np.inf
    np.testing.assert_array_equal(out, kept)
    assert constraints(TableModel.random(rng)).apply(log_probs, 1, None) is log_probs


@pytest.mark.parametrize("word", ["start", "end"])
@pytest.mark.parametrize(("token", "error"), [(-1, ValueError), (1.0, TypeError)])
def test_what_is_no_token(rng, word, token, error):
    model = TableModel.random(rng)
    setattr(model, f"{word}_token", token)
    with pytest.raises(error, match=f"test: the model's token <{word.upper()}> is {token}, expected"):
        constraints(model)


class NewArrays(TableModel):
    """Says that its arrays are new, as they are."""

    @gives_new_array
    def advance(self, state, tokens):
        return super().advance(state, tokens)


def test_arrays_that_are_new_are_overwritten(rng):
    log_probs = rng.standard_normal((2, 4))
    model = NewArrays.random(rng)
    assert constraints(model, forbid=(3,)).apply(log_probs, 1, None) is log_probs
    assert (log_probs[:, 3] == -np.inf).all()
    found = searches(model, range(3), forbid=(3,), min_length=1, no_repeat_ngram=2, max_length=4)
    same = TableModel(model.table)
    assert found == searches(same, range(3), forbid=(3,), min_length=1, no_repeat_ngram=2, max_length=4)


def test_the_array_of_a_model_stays(rng):
    model = Constant(rng)
    kept = model.log_probs.copy()
    greedy(Ensemble([model]), [0, 1], forbid=(2,), max_length=3)
    beam_search(Ensemble([model]), [0, 1], beam_size=1, forbid=(2,), max_length=3)
    sample(model, [0, 1], rng=rng, top_k=2, top_p=0.5, max_length=3)
    np.testing.assert_array_equal(model.log_probs, kept)


class Constant(TableModel):
    """Gives one and the same array at each step."""

    def __init__(self, rng):
        super().__init__(None)
        self.log_probs = -rng.random((2, 5))

    def advance(self, state, tokens):
        return self.log_probs, state


@given(seeds, st.integers(1, 4), st.integers(0, 9))
def test_repeated_words_are_those_that_would_repeat(seed, n, more):
    history = np.random.default_rng(seed).integers(3, size=(4, n + more))
    found = set(zip(*(array.tolist() for array in repeated(history, n)), strict=True))
    for row, tokens in enumerate(history.tolist()):
        seen = {tuple(tokens[k : k + n]) for k in range(len(tokens) - n + 1)}
        for word in range(4):
            latest = (*tokens[len(tokens) - n + 1 :], word)
            assert ((row, word) in found) == (latest in seen)


@given(seeds, st.integers(1, 3))
@settings(max_examples=30)
def test_no_ngram_comes_twice(seed, n):
    model = TableModel.random(np.random.default_rng(seed), words=2, positions=9)
    model.table[..., END] -= 3
    for _, hypothesis in searches(model, [0, 1, 2], seed, max_length=8, no_repeat_ngram=n):
        assert not has_repeats(hypothesis.tokens, n)


@given(seeds, st.integers(0, 4))
@settings(max_examples=30)
def test_no_sentence_is_too_short_or_too_long(seed, min_length):
    model = TableModel.random(np.random.default_rng(seed), words=2)
    model.table[..., np.arange(model.table.shape[-1]) != END] -= 2
    for source, hypothesis in searches(model, [0, 1, 2], seed, max_length=4, min_length=min_length):
        assert min_length <= len(hypothesis.tokens) <= 4
        expected = model.log_prob(source, hypothesis.tokens, hypothesis.finished)
        assert hypothesis.log_prob == pytest.approx(expected)


def test_where_only_the_end_may_come(rng):
    model = TableModel.random(rng)
    forbid = (START, *model.words)
    for source, hypothesis in searches(model, [0, 1], forbid=forbid):
        assert hypothesis.tokens == ()
        assert hypothesis.finished
        assert hypothesis.log_prob == pytest.approx(model.log_prob(source, (), True))


def test_where_nothing_may_come_the_sentence_stops(rng):
    model = AttendingModel.random(rng, positions=9)
    forbid = (START, *model.words)
    for _, hypothesis in searches(model, [0, 1], forbid=forbid, min_length=1, return_alignments=True):
        assert hypothesis[:4] == ((), 0.0, 0.0, False)
        assert hypothesis.alignment.shape == (0, 3)
    options = {"forbid": (START,), "min_length": 3, "no_repeat_ngram": 1}  # there are two words only
    found = searches(model, [0, 1], return_alignments=True, **options)
    assert len(found) > 2 * 4
    for source, hypothesis in found:
        assert sorted(hypothesis.tokens) == [2, 3]
        assert not hypothesis.finished
        assert hypothesis.log_prob == pytest.approx(model.log_prob(source, hypothesis.tokens, False))
        np.testing.assert_array_equal(hypothesis.alignment, model.expected(source, hypothesis))


@pytest.mark.parametrize("options", [{}, {"no_repeat_ngram": 2}, {"min_length": 2}], ids=str)
def test_sentences_without_an_end_have_the_maximum_length(options, rng):
    model = TableModel.random(rng)
    for source, hypothesis in searches(model, [0, 1], max_length=3, forbid=(END,), **options):
        assert len(hypothesis.tokens) == 3
        assert END not in hypothesis.tokens
        assert not hypothesis.finished
        assert hypothesis.log_prob == pytest.approx(model.log_prob(source, hypothesis.tokens, False))


@pytest.mark.parametrize("search", [greedy, sample, beam_search])
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"max_length": 0}, ValueError, "max_length is 0, expected at least 1"),
        ({"max_length": 2.5}, TypeError, "max_length is 2.5, expected an integer"),
        ({"min_length": -1}, ValueError, "min_length is -1, expected 0 to 30"),
        ({"min_length": 4, "max_length": 3}, ValueError, "min_length is 4, expected 0 to 3"),
        ({"no_repeat_ngram": -1}, ValueError, "no_repeat_ngram is -1, expected at least 0"),
        ({"forbid": (3, -1)}, ValueError, "forbid holds -1, expected tokens of the vocabulary"),
        ({"forbid": ["a"]}, TypeError, r"forbid is \['a'\], expected tokens"),
        ({"forbid": (2, 4)}, ValueError, "forbid holds 4, the vocabulary has 4 words"),
        (
            {"return_alignments": True},
            ValueError,
            "return_alignments is True, but this TableModel does not attend",
        ),
    ],
)
def test_wrong_options(search, options, error, message, rng):
    noise = {"rng": rng} if search is sample else {}
    with pytest.raises(error, match=f"^{search.__name__}: {message}"):
        search(TableModel.random(rng), [0], **noise, **options)


@pytest.mark.parametrize("search", [greedy, sample, beam_search])
@pytest.mark.parametrize(
    ("result", "error", "message"),
    [
        (np.zeros((2, 4), np.float16), TypeError, "dtype float16, expected float32 or float64"),
        (np.zeros((2, 4), int), TypeError, "dtype int64, expected float32 or float64"),
        (np.zeros((3, 4)), ValueError, r"shape \(3, 4\), expected \(N, V\) with N = 2"),
        (np.zeros(2), ValueError, r"shape \(2,\), expected \(N, V\) with N = 2"),
        ([[0.0] * 4] * 2, TypeError, "expected NumPy or CuPy arrays, got builtins.list"),
    ],
)
def test_results_that_are_no_log_probabilities(search, result, error, message, rng):
    model, noise = TableModel.random(rng), {"rng": rng} if search is sample else {}
    model.advance = lambda state, tokens: (result, state)
    with pytest.raises(error, match=message):
        search(model, [0, 1], **noise)


@pytest.mark.parametrize("search", [greedy, sample, beam_search])
@pytest.mark.parametrize(
    ("token", "options"),
    [(END, {"min_length": 1}), (3, {"forbid": [3]}), (END, {"min_length": 1, "forbid": [3]})],
    ids=str,
)
def test_numbers_that_are_none_at_a_forbidden_token(search, token, options, rng):
    model = TableModel.random(rng)
    model.table[1, 0, START, token] = np.nan
    noise = {"rng": rng} if search is sample else {}
    with pytest.raises(ValueError, match=f"{search.__name__}: the model's log-probabilities hold NaN"):
        search(model, [0, 1], **noise, **options)


@pytest.mark.parametrize("search", [greedy, sample, beam_search])
def test_a_number_that_is_none_after_a_repeated_word(search, rng):
    """After "2 2" the word 2 would complete the bigram again."""
    model = TableModel.random(rng)
    model.table[...] = -np.inf
    model.table[..., 2] = 0.0
    model.table[:, 2, 2, 2] = np.nan
    noise = {"rng": rng} if search is sample else {}
    with pytest.raises(ValueError, match=f"{search.__name__}: the model's log-probabilities hold NaN"):
        search(model, [0], **noise, max_length=3, no_repeat_ngram=2)


@pytest.mark.parametrize("search", [greedy, sample, beam_search])
def test_numbers_that_are_none(search, rng):
    model = TableModel.random(rng)
    model.table[1, 0, START, 2] = np.nan
    noise = {"rng": rng} if search is sample else {}
    with pytest.raises(ValueError, match=f"{search.__name__}: the model's log-probabilities hold NaN"):
        search(model, [0, 1], **noise)
