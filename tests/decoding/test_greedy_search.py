import numpy as np
import pytest

from rnnlab.decoding import beam_search, greedy, sample

from .toys import END, START, AttendingModel, TableModel


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
    model.table[0, ..., END] = 0  # the first ends at once, the second after a word
    model.table[1, 0, :, END] = -np.inf
    model.table[1, 1, :, END] = 0
    found = greedy(model, [0, 1], max_length=4)
    assert [len(row[0].tokens) for row in found] == [0, 1]
    assert model.rows == [2, 1]


def test_a_source_does_not_see_the_others(rng):
    model = TableModel.random(rng, sources=6, words=5)
    together = greedy(model, range(6), max_length=4)
    assert [greedy(model, [source], max_length=4)[0] for source in range(6)] == together


@pytest.mark.parametrize("search", [greedy, sample])
def test_sources_are_decoded_in_chunks(search, monkeypatch, rng):
    model = TableModel.random(rng, sources=7, words=5)

    def run(source):
        noise = {} if search is greedy else {"rng": np.random.default_rng(3)}
        return search(model, source, max_length=4, no_repeat_ngram=2, **noise)

    together = run(range(7))
    assert run(range(5)) == together[:5]  # a sample depends on the place of its source, not on the others
    monkeypatch.setattr("rnnlab.decoding.greedy_search.ROWS", 3)
    model.rows.clear()
    assert run(range(7)) == together
    assert max(model.rows) == 3


@pytest.mark.parametrize("search", [greedy, sample])
def test_alignments_belong_to_the_words(search, rng):
    model = AttendingModel.random(rng, words=3)

    def run(**options):
        noise = {} if search is greedy else {"rng": np.random.default_rng(3)}
        return search(model, [2, 0, 1] * 9, max_length=4, **noise, **options)

    for source, (found,), (same,) in zip([2, 0, 1] * 9, run(return_alignments=True), run(), strict=True):
        assert found._replace(alignment=None) == same
        np.testing.assert_array_equal(found.alignment, model.expected(source, found))


# ---------------------------------------------------------------- sampling


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


@pytest.mark.parametrize("word", ["start", "end"])
def test_a_vocabulary_without_start_or_end(word, rng):
    model = TableModel.random(rng)
    setattr(model, f"{word}_token", None)
    with pytest.raises(ValueError, match=f"greedy: the model's vocabulary has no <{word.upper()}>"):
        greedy(model, [0])


def test_start_and_end_are_two_tokens(rng):
    model = TableModel.random(rng)
    model.end_token = model.start_token
    with pytest.raises(
        ValueError, match="greedy: <START> and <END> are both the token 0, expected two tokens"
    ):
        greedy(model, [0])


@pytest.mark.parametrize("search", [greedy, beam_search])
def test_an_end_that_the_model_cannot_reach(search, rng):
    model = TableModel.random(rng, words=3)
    model.end_token = 5
    with pytest.raises(ValueError, match="<END> is the token 5, and the model has scores of 5 words"):
        search(model, [0])
