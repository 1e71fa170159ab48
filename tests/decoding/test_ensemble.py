from types import SimpleNamespace

import numpy as np
import pytest

from rnnlab.decoding import Ensemble, beam_search, greedy, sample
from rnnlab.decoding.ensemble import averaged
from rnnlab.models import LanguageModel
from rnnlab.ops import ops_on

from .toys import START, AttendingModel, TableModel, assert_same_hypotheses

SOURCE = [0, 1, 2]


def test_one_model_is_itself(rng):
    model = TableModel.random(rng)
    model.table[..., 2] = -np.inf
    alone = Ensemble([model])
    state = model.start(SOURCE)
    tokens = np.full(3, START)
    np.testing.assert_array_equal(alone.advance((state,), tokens)[0], model.advance(state, tokens)[0])
    assert greedy(alone, SOURCE, max_length=4) == greedy(model, SOURCE, max_length=4)
    one, other = (beam_search(each, SOURCE, n_best=3, max_length=4) for each in (alone, model))
    assert one == other
    one, other = (sample(m, SOURCE, rng=np.random.default_rng(0), max_length=4) for m in (alone, model))
    assert one == other


def test_repr_names_the_members(rng):
    found = Ensemble([TableModel.random(rng), AttendingModel.random(rng)], average="log_probabilities")
    assert repr(found) == "Ensemble(TableModel, AttendingModel; average='log_probabilities')"


def test_probabilities_are_averaged(rng):
    models = [TableModel.random(rng, words=3) for _ in range(3)]
    models[0].table[0, :, :, 2] = -np.inf  # for one of them
    for model in models:
        model.table[:, :, :, 3] = -np.inf  # for all of them
    with np.errstate(divide="ignore"):
        mean = TableModel(np.log(np.mean([np.exp(model.table) for model in models], axis=0)))
    options = {"beam_size": 4, "n_best": 4, "max_length": 3}
    found, expected = (beam_search(model, SOURCE, **options) for model in (Ensemble(models), mean))
    for one, other in zip(found, expected, strict=True):
        assert_same_hypotheses(one, other)


@pytest.mark.parametrize("name", ["start_token", "end_token", "word_to_idx"])
def test_vocabularies_that_differ(name, rng):
    models = [TableModel.random(rng) for _ in range(3)]
    for k, value in ((0, {"a": 4}), (2, {"a": 5})):
        setattr(models[k], name, value)
    if name != "word_to_idx":
        setattr(models[1], name, {"a": 4})
    with pytest.raises(ValueError, match=rf"Ensemble: models\[2\] has another {name} than models\[0\]"):
        Ensemble(models)


def test_a_member_need_not_know_its_words(rng):
    """A wrapper, or a language model, has no word_to_idx."""
    models = [TableModel.random(rng) for _ in range(3)]
    models[1].word_to_idx = {"a": 4}
    assert Ensemble(models).word_to_idx == {"a": 4}
    models[2].word_to_idx = {"a": 5}
    with pytest.raises(ValueError, match=r"models\[2\] has another word_to_idx than models\[1\]"):
        Ensemble(models)


def test_vocabularies_of_different_sizes(rng):
    models = [TableModel.random(rng, words=words) for words in (2, 3)]
    with pytest.raises(ValueError, match=r"Ensemble: models\[1\] has 5 words, models\[0\] 4, expected one"):
        greedy(Ensemble(models), SOURCE)


def test_no_model():
    with pytest.raises(ValueError, match="Ensemble: models is empty"):
        Ensemble([])
    with pytest.raises(TypeError, match="Ensemble: models is a int, expected a list of models"):
        Ensemble(3)


@pytest.mark.parametrize("name", ["start", "advance", "start_token", "end_token"])
def test_what_is_no_member(name, rng):
    members = {"start": print, "advance": print, "start_token": START, "end_token": 1}
    del members[name]
    with pytest.raises(TypeError, match=rf"Ensemble: models\[1\] is a SimpleNamespace without {name}"):
        Ensemble([TableModel.random(rng), SimpleNamespace(**members)])


@pytest.mark.parametrize("name", ["start_token", "end_token"])
def test_a_member_without_start_or_end(name, rng):
    members = {"start": print, "advance": print, "start_token": START, "end_token": 1, name: None}
    with pytest.raises(ValueError, match=r"Ensemble: models\[0\] has no <START> or no <END>, which"):
        Ensemble([SimpleNamespace(**members)])


def test_attention_is_averaged(rng):
    models = [AttendingModel.random(rng) for _ in range(2)]
    models[1].attention = lambda state: AttendingModel.attention(models[1], state) + 2
    options = {"max_length": 4, "forbid": (START,), "return_alignments": True}
    for source, (hypothesis,) in enumerate(beam_search(Ensemble(models), SOURCE, **options)):
        expected = AttendingModel.expected(source, hypothesis) + 1
        np.testing.assert_array_equal(hypothesis.alignment, expected)


def test_attention_is_that_of_the_members_that_attend(rng):
    models = [TableModel.random(rng), AttendingModel.random(rng), AttendingModel.random(rng)]
    options = {"max_length": 4, "forbid": (START,), "return_alignments": True}
    for source, (hypothesis,) in enumerate(beam_search(Ensemble(models), SOURCE, **options)):
        expected = AttendingModel.expected(source, hypothesis)
        np.testing.assert_array_equal(hypothesis.alignment, expected)


def test_attention_needs_a_model_that_attends(rng):
    models = [TableModel.random(rng), TableModel.random(rng)]
    with pytest.raises(ValueError, match="return_alignments is True, but this Ensemble does not attend"):
        greedy(Ensemble(models), SOURCE, return_alignments=True)


def test_attention_to_different_numbers_of_vectors_has_no_mean(rng):
    models = [TableModel.random(rng), AttendingModel.random(rng), AttendingModel.random(rng)]
    models[2].attention = lambda state: AttendingModel.attention(models[2], state)[:, :2]
    with pytest.raises(ValueError, match=r"models\[2\] attends to 2 vectors, models\[1\] to 3"):
        greedy(Ensemble(models), SOURCE, return_alignments=True)


def test_log_probabilities_are_averaged_and_normalised(rng):
    models = [TableModel.random(rng, words=3) for _ in range(3)]
    for model in models:
        model.table[:, :, :, 3] = -np.inf  # for all of them
    models[0].table[0, :, :, 2] = -np.inf  # for one of them, so that the ensemble never chooses it
    mean = np.mean([model.table for model in models], axis=0)
    mean -= np.log(np.exp(mean).sum(axis=-1, keepdims=True))
    options = {"beam_size": 4, "n_best": 4, "max_length": 3}
    ensemble = Ensemble(models, average="log_probabilities")
    found, expected = (beam_search(model, SOURCE, **options) for model in (ensemble, TableModel(mean)))
    for one, other in zip(found, expected, strict=True):
        assert_same_hypotheses(one, other)


@pytest.mark.parametrize("average", ["probabilities", "log_probabilities"])
def test_no_word_that_all_members_can_have(average, rng):
    """Some sentence cannot go on then; the others are not affected."""
    models = [TableModel.random(rng, words=2) for _ in range(2)]
    models[0].table[1, :, :, :2] = -np.inf
    models[1].table[1, :, :, 2:] = -np.inf
    state = tuple(model.start(SOURCE) for model in models)
    log_probs, _ = Ensemble(models, average=average).advance(state, np.full(3, START))
    assert not np.isnan(log_probs).any()
    assert (log_probs[1] == -np.inf).all() == (average == "log_probabilities")
    np.testing.assert_allclose(np.exp(log_probs[[0, 2]]).sum(axis=1), 1)


def test_each_model_reads_its_own_arrays(rng):
    class Reading(TableModel):
        def start(self, source):
            self.read = source
            return super().start(source[0] if isinstance(source, tuple) else source)

    models = [Reading.random(rng) for _ in range(3)]
    ensemble = Ensemble(models, num_arrays=[1, 2, 1])
    arrays = tuple(np.array(source) for source in ([0, 1], [1, 2], [7, 7], [2, 0]))
    alone = [model.table[source[0], 0, START] for model, source in zip(models, [[0], [1], [2]], strict=True)]
    log_probs, _ = ensemble.advance(ensemble.start(arrays), np.array([START, START]))
    np.testing.assert_allclose(log_probs[0], np.log(np.mean(np.exp(alone), axis=0)))
    assert [type(model.read) for model in models] == [np.ndarray, tuple, np.ndarray]
    assert models[1].read[1] is arrays[2]
    with pytest.raises(ValueError, match="source is 2 arrays, expected a tuple of 4 arrays"):
        ensemble.start(arrays[:2])
    with pytest.raises(ValueError, match="source is ndarray, expected a tuple of 4 arrays"):
        ensemble.start(np.array([0, 1, 2, 0]))


@pytest.mark.parametrize("num_arrays", [[1], [1, 0]])
def test_numbers_of_arrays_that_do_not_fit(num_arrays, rng):
    models = [TableModel.random(rng), TableModel.random(rng)]
    with pytest.raises(ValueError, match=r"num_arrays is .*, expected 2 numbers of at least 1"):
        Ensemble(models, num_arrays=num_arrays)


def test_averages_that_do_not_exist(rng):
    with pytest.raises(ValueError, match="average is 'median', expected one of probabilities, log_prob"):
        Ensemble([TableModel.random(rng)], average="median")


@pytest.mark.parametrize("average", ["probabilities", "log_probabilities"])
def test_averages_on_a_device(average, device, rng):
    ops = ops_on("gpu")
    log_probs = [np.log(rng.dirichlet(np.ones(4), size=3)) for _ in range(2)]
    log_probs[0][1, :2] = log_probs[1][1, 2:] = -np.inf
    found = averaged([ops.asarray(each) for each in log_probs], average)
    np.testing.assert_allclose(ops.asnumpy(found), averaged(log_probs, average))


def test_the_likelihood_needs_a_token_of_padding(rng):
    models = [TableModel.random(rng) for _ in range(2)]
    with pytest.raises(ValueError, match=r"Ensemble.nll: no model has a null_token"):
        Ensemble(models).nll([0], [[0, 3, 1]])
    models[1].null_token = 9
    total, tokens = Ensemble(models).nll([0], np.array([[0, 3, 1, 9]]))
    assert (tokens, total > 0) == (2, True)


def test_the_likelihood_of_sentences_without_a_source():
    words = {word: token for token, word in enumerate(["<NULL>", "<START>", "<END>", "a", "b"])}
    models = [LanguageModel(words, 2, 3, dtype=np.float64, rng=seed) for seed in (0, 1)]
    sentences = [[1, 3, 4, 2], [1, 2, 0, 0]]
    assert Ensemble(models[:1]).nll(sentences) == pytest.approx(models[0].nll(sentences))
    nats, tokens = Ensemble(models).nll(sentences)
    assert tokens == 4
    assert nats < max(model.nll(sentences)[0] for model in models)
    with pytest.raises(TypeError, match=r"Ensemble.nll: found 3 arguments, expected a source and sentences"):
        Ensemble(models).nll(sentences, sentences, sentences)
