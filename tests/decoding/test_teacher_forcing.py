import numpy as np
import pytest

from rnnlab.decoding import Ensemble, sentences_nll, teacher_forced
from rnnlab.models import CaptioningRNN

from .toys import END, START, TableModel

NULL = 4  # of the vocabulary START, END, 2, 3, NULL


@pytest.fixture
def model(rng):
    return TableModel.random(rng, words=3)


SENTENCES = np.array(
    [[START, 2, END, NULL, NULL], [START, 3, 2, 3, END], [START, NULL, NULL, NULL, NULL]], np.int32
)


def expected(model, sentences):
    """By row and position, the log-probabilities of the next token."""
    return {
        (row, t): model.table[row, t, sentence[t]]
        for row, sentence in enumerate(sentences)
        for t in range(len(sentence) - 1)
        if sentence[t + 1] != NULL
    }


def test_each_distribution_follows_the_true_words(model):
    found = {}
    for step, (rows, tokens, log_probs) in enumerate(
        teacher_forced(model, [0, 1, 2], SENTENCES, null_token=NULL)
    ):
        assert tokens.tolist() == SENTENCES[rows, step + 1].tolist()
        found |= {(row, step): each for row, each in zip(rows.tolist(), log_probs, strict=True)}
    wanted = expected(model, SENTENCES)
    assert found.keys() == wanted.keys()
    for place, log_probs in wanted.items():
        np.testing.assert_array_equal(found[place], log_probs)


def test_sentences_that_have_ended_are_dropped(model):
    list(teacher_forced(model, [0, 1, 2], SENTENCES, null_token=NULL))
    assert model.rows == [3, 3, 1, 1]


def test_padding_inside_a_sentence_is_read_but_not_predicted(model):
    sentences = np.array([[START, NULL, 2, NULL, END]])
    found = list(teacher_forced(model, [1], sentences, null_token=NULL))
    assert [prediction.tokens.tolist() for prediction in found] == [[2], [END]]
    np.testing.assert_array_equal(found[0].log_probs[0], model.table[1, 1, NULL])


def test_nothing_to_predict(model):
    assert list(teacher_forced(model, [0], SENTENCES[2:], null_token=NULL)) == []
    assert list(teacher_forced(model, [], SENTENCES[:0], null_token=NULL)) == []
    assert model.rows == []
    assert sentences_nll(model, [0], SENTENCES[2:], null_token=NULL) == (0.0, 0)


def test_the_likelihood_of_an_ensemble_is_that_of_the_mean_probability(rng):
    models = [TableModel.random(rng, words=3) for _ in range(3)]
    total, tokens = sentences_nll(Ensemble(models), [0, 1, 2], SENTENCES, null_token=NULL)
    mean = np.log(np.mean([np.exp(model.table) for model in models], axis=0))
    places = expected(TableModel(mean), SENTENCES)
    assert tokens == len(places) == 6
    by_hand = -sum(log_probs[SENTENCES[row, t + 1]] for (row, t), log_probs in places.items())
    assert total == pytest.approx(by_hand, rel=1e-12)


@pytest.mark.parametrize(
    ("sentences", "error", "message"),
    [
        ([[START, 2, -1]], IndexError, "sentences holds -1, expected tokens from 0"),
        ([[START, 2, 9]], IndexError, "sentences holds 9, and there are"),
        ([[[START, 2, 9], [START, 2, END]]], IndexError, "sentences holds 9, and there are 5 words"),
        ([[START, 2.0, END]], TypeError, "sentences has dtype float64, expected integers"),
        ([[START, NULL, NULL], [START, 2, END]], ValueError, "source has 1 rows, expected 2 as sentences"),
    ],
)
def test_sentences_that_do_not_fit(sentences, error, message, model):
    with pytest.raises(error, match=f"teacher_forced: {message}"):
        sentences_nll(model, [0], np.array(sentences), null_token=NULL)


def test_padding_may_be_any_number(model):
    expected = sentences_nll(model, [0, 1, 2], SENTENCES, null_token=NULL)
    padded = np.where(SENTENCES == NULL, -1, SENTENCES)
    assert sentences_nll(model, [0, 1, 2], padded, null_token=-1) == expected


def test_padding_that_is_no_token_is_refused_before_a_word(model):
    sentences = np.array([[START, -1, 2, END]])
    with pytest.raises(IndexError, match="sentences holds -1 before a word, expected it after the last word"):
        sentences_nll(model, [0], sentences, null_token=-1)


def test_padding_that_is_no_token_is_not_read(rng):
    """Whether sentences that have ended stay in the batch depends on how many there are."""
    vocabulary = {"<NULL>": 0, "<START>": 1, "<END>": 2, "a": 3}
    model = CaptioningRNN(vocabulary, 3, 2, 4, dtype=np.float64)
    features = rng.standard_normal((3, 3))
    sentences = np.array([[1, 2, -1, -1], [1, 3, 3, 2], [1, 3, 3, 2]])
    found = sentences_nll(model, features, sentences, null_token=-1)
    expected = model.nll(features, np.where(sentences < 0, 0, sentences))
    np.testing.assert_allclose(found, expected)
    without_start = CaptioningRNN({"<NULL>": 0, "a": 1, "b": 2}, 3, 2, 4, dtype=np.float64)
    sentences = np.array([[1, 0, 0], [1, 2, 1]])
    found = sentences_nll(without_start, features[:2], sentences, null_token=0)
    np.testing.assert_allclose(found, without_start.nll(features[:2], sentences))


@pytest.mark.parametrize("shape", [(3, 0), (0, 0), (3, 2, 0), (3, 0, 4), (0, 2, 4)])
def test_sentences_without_tokens(shape, model):
    sentences = np.full(shape, NULL)
    assert sentences_nll(model, list(range(shape[0])), sentences, null_token=NULL) == (0, 0)


@pytest.mark.parametrize("average", ["probabilities", "log_probabilities"])
def test_several_sentences_of_each_row(average, rng):
    vocabulary = {"<NULL>": 0, "<START>": 1, "<END>": 2, "a": 3}
    models = [CaptioningRNN(vocabulary, 3, 2, 4, dtype=np.float64, rng=seed) for seed in (0, 1)]
    features, sentences = rng.standard_normal((2, 3)), np.zeros((2, 3, 4), int)
    sentences[...] = 1, 3, 2, 0
    sentences[1, 2] = 1, 3, 3, 2
    assert sentences_nll(models[0], features, sentences, null_token=0)[1] == 13
    np.testing.assert_allclose(
        Ensemble(models[:1]).nll(features, sentences), models[0].nll(features, sentences)
    )
    found = Ensemble(models, average=average).nll(features, sentences)
    flat = np.repeat(features, 3, axis=0), sentences.reshape(6, 4)
    np.testing.assert_allclose(found, Ensemble(models, average=average).nll(*flat))


def test_sentences_of_another_shape(model):
    with pytest.raises(ValueError, match=r"sentences has shape \(2,\), expected \(N, L\)"):
        list(teacher_forced(model, [0], np.array([START, END]), null_token=NULL))
