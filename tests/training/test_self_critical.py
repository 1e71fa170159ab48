"""Self-critical training: the estimator by enumeration, sampling, training, resuming, errors."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats

from rnnlab.decoding import Hypothesis, greedy
from rnnlab.models import CaptioningRNN, Seq2Seq, SequenceClassifier
from rnnlab.training import NonFiniteError, SelfCritical, Solver, load_checkpoint, self_critical
from rnnlab.training.protocols import Rollout

from .test_resume import Killed, assert_same_run

NULL, START, END = 0, 1, 2
WORDS = {"<NULL>": NULL, "<START>": START, "<END>": END, "a": 3, "b": 4}
V, LONGEST, D = len(WORDS), 2, 3
FEATURES = np.random.default_rng(4).standard_normal((1, D))
# A sentence is a tuple of tokens: <END> within LONGEST tokens, or LONGEST words.
OTHERS = [token for token in range(V) if token != END]
SENTENCES = [(END,), *((word, END) for word in OTHERS), *product(OTHERS, OTHERS)]


def captioner(seed=1, **options):
    options = {"cell_type": "lstm", "dtype": np.float64, **options}
    model = CaptioningRNN(WORDS, D, 2, 3, **options)
    model.params.flat[...] = np.random.default_rng(seed).uniform(-1, 1, model.params.flat.size)
    return model


def reward(sources, tokens, lengths):
    """Different for every sentence, and for a sentence that ends and one that is cut."""
    real = np.arange(tokens.shape[1]) < lengths[:, None]
    return np.sin((tokens * real) @ (1.3 * np.arange(tokens.shape[1]) + 1)) + 0.2 * lengths + sources


def padded(sentences):
    lengths = np.array([len(sentence) for sentence in sentences])
    tokens = np.full((len(sentences), LONGEST), NULL)
    for row, sentence in zip(tokens, sentences, strict=True):
        row[: len(sentence)] = sentence
    return tokens, lengths


def probabilities(model):
    """p(w) of every sentence, by the step functions."""
    found = []
    for sentence in SENTENCES:
        state, last, total = model.start(FEATURES), START, 0.0
        for token in sentence:
            log_probs, state = model.advance(state, np.array([last]))
            total, last = total + log_probs[0, token], token
        found.append(np.exp(total))
    return np.array(found)


def expected_reward(model):
    return probabilities(model) @ reward(np.zeros(len(SENTENCES)), *padded(SENTENCES))


def exact_gradient(model):
    """The gradient of -E[r(w)]: the sum over all sentences of -p(w) r(w) grad log p(w)."""
    tokens, lengths = padded(SENTENCES)
    weights = probabilities(model) * reward(np.zeros(len(SENTENCES)), tokens, lengths) * len(SENTENCES)
    tokens = np.column_stack([np.full(len(tokens), START), tokens])
    features = np.repeat(FEATURES, len(SENTENCES), axis=0)
    _, grads = model.loss(features, tokens, sentence_weights=weights, sentence_lengths=lengths)
    return grads.flat


def hypothesis_of(sentence):
    words = tuple(token for token in sentence if token != END)
    return Hypothesis(words, 0.0, 0.0, END in sentence)


def loss_of(objective, model, batch, rng, row_weights=1):
    rollout = objective(model, batch, rng)
    tokens = rollout.tokens if model.loss_average == "token" else rollout.examples
    weights = rollout.options["sentence_weights"] * np.reshape(row_weights, (-1, 1))
    options = {**rollout.options, "sentence_weights": weights * tokens / rollout.examples}
    return model.loss(*rollout.arrays, **options)


def test_probabilities_sum_to_one():
    assert probabilities(captioner()).sum() == pytest.approx(1, abs=1e-12)


def test_the_exact_gradient_is_that_of_the_expected_reward():
    model = captioner()
    gradient, flat = exact_gradient(model), model.params.flat
    for place in range(0, flat.size, 3):
        before, h = flat[place], 1e-6
        flat[place] = before + h
        above = expected_reward(model)
        flat[place] = before - h
        below = expected_reward(model)
        flat[place] = before
        assert -(above - below) / (2 * h) == pytest.approx(gradient[place], abs=1e-9)


@pytest.mark.parametrize(("baseline", "samples"), [("mean", 2), ("greedy", 1), ("greedy", 2)])
@pytest.mark.parametrize("average", ["batch", "token"])
def test_the_mean_of_the_estimator_is_the_exact_gradient(baseline, samples, average, monkeypatch):
    """Over all sentences that can be drawn, times their probability: no bias from a baseline.

    Each row of one batch draws other sentences.
    """
    model = captioner(loss_average=average)
    objective = SelfCritical(reward, samples=samples, baseline=baseline, max_length=LONGEST)
    drawn = list(product(range(len(SENTENCES)), repeat=samples))
    found = [[hypothesis_of(SENTENCES[k]) for k in row] for row in drawn]
    monkeypatch.setattr(self_critical, "sample", lambda *args, **options: found)
    probability = probabilities(model)[np.array(drawn)].prod(axis=1)
    batch = np.repeat(FEATURES, len(drawn), axis=0), np.zeros(len(drawn), int)
    _, grads = loss_of(objective, model, batch, np.random.default_rng(0), len(drawn) * probability)
    expected = exact_gradient(captioner())
    np.testing.assert_allclose(grads.flat, expected, rtol=0, atol=1e-10)
    assert np.abs(expected).max() > 0.01


def test_a_reward_may_write_into_its_arguments():
    def writing(sources, tokens, lengths):
        found = reward(sources, tokens, lengths)
        for array in (sources, tokens, lengths):
            array[...] = 0
        return found

    same, changed = (
        SelfCritical(each, samples=3, baseline="greedy", max_length=LONGEST)(
            captioner(), (FEATURES, np.zeros(1, int)), np.random.default_rng(0)
        )
        for each in (reward, writing)
    )
    np.testing.assert_array_equal(same.arrays[1], changed.arrays[1])
    for name, value in same.options.items():
        np.testing.assert_array_equal(value, changed.options[name])


def test_baselines_differ_from_the_reward_of_the_sample():
    """A mean that included the sample would shrink the gradient by (samples - 1) / samples."""
    model = captioner()
    objective = SelfCritical(reward, samples=3, max_length=LONGEST)
    rollout = objective(model, (FEATURES, np.zeros(1, int)), np.random.default_rng(0))
    rewards = reward(np.zeros(3), rollout.arrays[1][0, :, 1:], rollout.options["sentence_lengths"][0])
    others = [np.delete(rewards, k).mean() for k in range(3)]
    np.testing.assert_allclose(rollout.options["sentence_weights"], [rewards - others])
    assert rollout.means["reward"] == pytest.approx(rewards.mean())
    assert rollout.means["baseline_reward"] == pytest.approx(np.mean(others))

    objective = SelfCritical(reward, samples=3, baseline="greedy", max_length=LONGEST)
    rollout = objective(model, (FEATURES, np.zeros(1, int)), np.random.default_rng(0))
    ((best,),) = greedy(model, FEATURES, max_length=LONGEST)
    written = (*best.tokens, END) if best.finished and len(best.tokens) < LONGEST else best.tokens
    seen = reward(np.zeros(1), *padded([written]))[0]
    np.testing.assert_allclose(rollout.options["sentence_weights"], [rewards - seen])
    assert rollout.means["baseline_reward"] == pytest.approx(seen)


def test_sentences_are_drawn_from_the_distribution_of_the_gradient():
    model, count = captioner(), 6000
    objective = SelfCritical(reward, samples=count, max_length=LONGEST)
    rollout = objective(model, (FEATURES, np.zeros(1, int)), np.random.default_rng(7))
    tokens, lengths = rollout.arrays[1][0, :, 1:], rollout.options["sentence_lengths"][0]
    number = {sentence: k for k, sentence in enumerate(SENTENCES)}
    found = np.bincount(
        [number[tuple(row[:length].tolist())] for row, length in zip(tokens, lengths, strict=True)],
        minlength=len(SENTENCES),
    )
    assert stats.chisquare(found, count * probabilities(model)).pvalue > 0.01
    assert rollout.tokens == lengths.sum()


ARCHITECTURES = [
    {},
    {"cell_type": "gru", "image_input": "first_input"},
    {"image_input": "second_layer"},
    {"decoder_layers": 2, "attention": "additive", "layer_dropout": 0.3},
    {"attention": "additive", "output": "deep", "doubly_stochastic": 0.3},
    {"attention": "bilinear", "target_attention": True, "global_dim": 4, "reconstruction": 0.2},
    {"regularisation": {"zoneout_h": 0.3, "weight_dropout": 0.5}, "output_dropout": 0.5},
]


def features_of(options, N=4):
    rng = np.random.default_rng(2)
    features = rng.standard_normal((N, 6, D) if options.get("attention") else (N, D))
    return (features, rng.standard_normal((N, 4))) if "global_dim" in options else features


@pytest.mark.parametrize("options", ARCHITECTURES)
@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_sampled_log_probabilities_are_the_forced_ones(options, dropout, monkeypatch):
    model, features = captioner(**options), features_of(options)
    model.reconstruction = model.doubly_stochastic = 0
    drawn, sample = [], self_critical.sample
    monkeypatch.setattr(
        self_critical, "sample", lambda *args, **given: drawn.extend(sample(*args, **given)) or drawn
    )
    objective = SelfCritical(reward, samples=3, max_length=9, feature_dropout=dropout)
    sources, rng = np.arange(4), np.random.default_rng(3)
    rollout = objective(model, (features, sources), rng)
    found = [each for row in drawn for each in row]
    assert rollout.arrays[1].shape[:2] == (4, 3)
    assert len(found) == rollout.examples == 12
    uncut = np.array([len(each.tokens) < 9 for each in found])
    assert uncut.sum() > 6
    weights = uncut * np.random.default_rng(1).standard_normal(12)
    lengths = rollout.options["sentence_lengths"]
    loss, _ = model.loss(*rollout.arrays, sentence_weights=weights.reshape(4, 3), sentence_lengths=lengths)
    assert loss == pytest.approx(-np.dot(weights, [each.log_prob for each in found]) / 12, rel=1e-9)


def test_features_are_dropped_once_for_all():
    """Sampling, greedy decoding and the loss read the same features; another batch drops others."""
    features = np.ones((3, 8, D)), np.ones((3, 4))
    model = captioner(attention="additive", global_dim=4)
    read, start = [], model.start
    model.start = lambda inputs: read.append(inputs) or start(inputs)
    objective = SelfCritical(reward, samples=2, baseline="greedy", max_length=4, feature_dropout=0.25)
    rng = np.random.default_rng(0)
    rollout = objective(model, (features, np.arange(3)), rng)
    assert len(read) == 1
    for found, given in zip(rollout.arrays[0], read[0], strict=True):
        assert found is given
        assert set(np.unique(found)) == {0, 1 / 0.75}
    again = objective(model, (features, np.arange(3)), rng)
    assert (again.arrays[0][0] != rollout.arrays[0][0]).any()
    assert (features[0] == 1).all()


def test_tokens_have_no_features_to_drop(rng):
    model = Seq2Seq({"<NULL>": 0, "x": 1}, WORDS, 3, 4)
    with pytest.raises(TypeError, match="dropout_forward: x"):
        SelfCritical(reward, feature_dropout=0.1)(model, (np.ones((2, 2), int), np.arange(2)), rng)


def test_a_sentence_of_max_length_words_has_no_factor_for_the_end():
    model = captioner()
    model.params["b_vocab"][...] = [-9, -9, -9, 9, -9]
    model.params["W_vocab"][...] = 0
    objective = SelfCritical(reward, samples=2, max_length=2)
    rollout = objective(model, (FEATURES, np.zeros(1, int)), np.random.default_rng(0))
    np.testing.assert_array_equal(rollout.arrays[1], [[[START, 3, 3]] * 2])
    np.testing.assert_array_equal(rollout.options["sentence_lengths"], [[2, 2]])


def test_a_translation_model_too():
    source = {"<NULL>": 0, "x": 1, "y": 2}
    model = Seq2Seq(source, WORDS, 3, 4, dtype=np.float64, rng=1)
    rollout = SelfCritical(reward, samples=2, max_length=5)(
        model, (np.array([[1, 2], [2, 0]]), np.arange(2)), np.random.default_rng(0)
    )
    np.testing.assert_array_equal(rollout.arrays[0], [[1, 2], [2, 0]])
    loss, grads = model.loss(*rollout.arrays, **rollout.options)
    assert np.isfinite(loss)
    assert grads.flat.any()


# ------------------------------------------------------------------ training

COUNT = 12


class Images:
    """Images whose best caption is one word, "a" or "b", by the sign of a feature; no validation."""

    splits = ("train",)
    in_memory = True

    def __init__(self, **options):
        self.features = features_of(options, COUNT)
        rows = self.features[0] if isinstance(self.features, tuple) else self.features
        rows[..., 0] = np.where(np.arange(COUNT) % 2, 1, -1).reshape(-1, *[1] * (rows.ndim - 2))

    def epoch(self, split, batch_size, rng):
        order = rng.permutation(COUNT)
        return [order[start : start + batch_size] for start in range(0, COUNT, batch_size)]

    def batch(self, split, indices):
        rows = self.features
        return (tuple(x[indices] for x in rows) if isinstance(rows, tuple) else rows[indices]), indices

    def num_tokens(self, batch):
        raise AssertionError("the number of tokens of a rollout is not known before")


def one_word(sources, tokens, lengths):
    wanted = np.where(np.asarray(sources) % 2, 3, 4)
    return (lengths == 2) * ((tokens[:, 0] == wanted) * 1.0 + (tokens == END).any(axis=1) * 0.5)


def solver_of(model, data=None, **options):
    options = {"num_epochs": 3, "batch_size": 5, "optim_config": {"learning_rate": 0.02}} | options
    options = {"objective": SelfCritical(one_word, samples=4, max_length=4)} | options
    return Solver(model, data or Images(), verbose=False, seed=3, **options)


@pytest.mark.parametrize("baseline", ["mean", "greedy"])
def test_training_raises_the_reward(baseline):
    model = CaptioningRNN(WORDS, D, 4, 16, "lstm", rng=1)
    objective = SelfCritical(one_word, samples=5, baseline=baseline, max_length=4)
    solver = solver_of(model, objective=objective, num_epochs=60, batch_size=12)
    solver.train()
    history = solver.history
    assert history[0]["reward"] < 0.3
    assert history[-1]["reward"] > 1.3
    assert {"reward", "baseline_reward", "sampled_length"} <= set(history[0])
    assert history[-1]["sampled_length"] == pytest.approx(2, abs=0.2)
    found = [row[0] for row in greedy(model, Images().features, max_length=4)]
    assert [each.tokens for each in found] == [(3,) if k % 2 else (4,) for k in range(COUNT)]


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize("accumulate", [1, 3])
def test_a_killed_run_resumes_bit_for_bit(tmp_path, monkeypatch, accumulate):
    options = {"num_epochs": 4, "clip_norm": 1.0, "accumulate": accumulate}
    whole = solver_of(captioner(), **options)
    whole.train()
    calls, loss = [], CaptioningRNN.loss

    def dying(self, *batch, **given):
        calls.append(1)
        if len(calls) == 8 * accumulate:
            raise Killed
        return loss(self, *batch, **given)

    monkeypatch.setattr(CaptioningRNN, "loss", dying)
    with pytest.raises(Killed):
        solver_of(captioner(), run_dir=tmp_path, checkpoint_every=2, **options).train()
    monkeypatch.setattr(CaptioningRNN, "loss", loss)
    objective = SelfCritical(one_word, samples=4, max_length=4)
    resumed = Solver.resume(tmp_path, captioner(seed=9), Images(), objective=objective)
    assert 0 < len(resumed.loss_history) < len(whole.loss_history)
    resumed.train()
    assert_same_run(resumed, whole)
    assert load_checkpoint(tmp_path).solver["objective"]["samples"] == 4


@pytest.mark.usefixtures("no_pictures")
def test_a_run_resumes_with_its_own_objective_only(tmp_path):
    solver_of(captioner(), run_dir=tmp_path).train()
    for objective in (None, SelfCritical(one_word, samples=3, max_length=4)):
        with pytest.raises(ValueError, match=r"resume: objective is .*, and this run has \{.*'samples': 4"):
            Solver.resume(tmp_path, captioner(), Images(), objective=objective, num_epochs=5)


class Fixed:
    """An objective that draws nothing: two sentences of 1 to 3 words for each image, always the same."""

    dropout = False

    def config(self):
        return {"name": "fixed"}

    def check(self, model):
        pass

    def __call__(self, model, batch, rng):
        features, images = batch
        lengths = 1 + np.column_stack([images, images + 1]) % 3
        tokens = np.full((*lengths.shape, 4), START)
        tokens[..., 1:] = np.where(np.arange(3) < lengths[..., None], 3 + images[:, None, None] % 2, 0)
        weights = np.cos(images[:, None] + [0.0, 1.0])
        options = {"sentence_weights": weights, "sentence_lengths": lengths}
        means = {"weight": weights.mean()}
        return Rollout((features, tokens), options, lengths.size, int(lengths.sum()), means)


@pytest.mark.parametrize("average", ["batch", "token"])
def test_parts_make_the_update_of_the_whole(average):
    """Also where the parts have different numbers of sentences and tokens."""
    solvers = []
    for accumulate in (1, 3):
        solver = solver_of(captioner(loss_average=average), objective=Fixed(), accumulate=accumulate)
        solver.train()
        solvers.append(solver)
    one, other = solvers
    np.testing.assert_allclose(other.model.params.flat, one.model.params.flat, rtol=1e-9)
    for row, expected in zip(other.history, one.history, strict=True):
        for name in ("train_loss", "train_loss_per_token", "weight"):
            assert row[name] == pytest.approx(expected[name], rel=1e-9), name


def test_an_objective_whose_means_differ_in_name():
    class Moody(Fixed):
        def __call__(self, model, batch, rng):
            return super().__call__(model, batch, rng)._replace(means={f"mean{batch[1][0]}": 1.0})

    with pytest.raises(
        ValueError, match=r"the objective returned means \['mean\d+'\] for one part of a batch"
    ):
        solver_of(captioner(), objective=Moody(), accumulate=3).train()


def test_an_objective_that_returns_a_batch():
    class Plain(Fixed):
        def __call__(self, model, batch, rng):
            return batch

    with pytest.raises(TypeError, match="the objective Plain returned a tuple of .*, expected a Rollout"):
        solver_of(captioner(), objective=Plain()).train()


def test_an_objective_without_weights_of_sentences():
    class Unweighted(Fixed):
        def __call__(self, model, batch, rng):
            return super().__call__(model, batch, rng)._replace(options={})

    with pytest.raises(
        ValueError, match="the objective Unweighted returned options without sentence_weights"
    ):
        solver_of(captioner(), objective=Unweighted()).train()


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"attention": "additive", "global_dim": 4}])
def test_the_same_training_on_a_device(options, device):
    on_cpu, on_device, in_graphs = (captioner(**options) for _ in range(3))
    solvers = [
        solver_of(on_cpu, Images(**options), accumulate=2),
        solver_of(on_device, Images(**options), device="gpu", accumulate=2),
        solver_of(in_graphs, Images(**options), device="gpu", graphs=True, accumulate=2),
    ]
    for solver in solvers:
        solver.train()
    for solver in solvers[1:]:
        np.testing.assert_allclose(solver.loss_history, solvers[0].loss_history, rtol=1e-6)
        flat = device.asnumpy(solver.model.params.flat)
        np.testing.assert_allclose(flat, on_cpu.params.flat, rtol=1e-6, atol=1e-9)


def test_tuples_of_features_train():
    options = {"attention": "additive", "global_dim": 4}
    solver = solver_of(captioner(**options), Images(**options))
    solver.train()
    assert len(solver.history) == 3


def test_there_is_no_dropout():
    """Neither in sampling nor in the loss: the run is that of a model without dropout."""
    plain, dropping = captioner(), captioner(output_dropout=0.5, word_dropout=0.5)
    for model in (plain, dropping):
        solver_of(model).train()
    np.testing.assert_array_equal(dropping.params.flat, plain.params.flat)


def test_dropout_in_the_loss_alone():
    """The sentences of the first iteration are those that the model without dropout samples."""
    runs = {}
    for dropout in (False, True):
        model = captioner(output_dropout=0.5)
        objective = SelfCritical(one_word, samples=3, max_length=4, dropout=dropout)
        solver = solver_of(model, objective=objective, num_epochs=1, batch_size=COUNT)
        solver.train()
        runs[dropout] = solver
    assert runs[True].history[0]["reward"] == runs[False].history[0]["reward"]
    assert (runs[True].model.params.flat != runs[False].model.params.flat).any()


# ------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"samples": 1}, "samples is 1, expected at least 2 with baseline 'mean'"),
        (
            {"samples": 0, "baseline": "greedy"},
            "SelfCritical: samples is 0, expected an integer of at",
        ),
        ({"baseline": "best"}, "SelfCritical: baseline is 'best', expected one of 'mean', 'greedy'"),
        ({"max_length": 0}, "SelfCritical: max_length is 0"),
        ({"feature_dropout": 1.0}, "SelfCritical: feature_dropout is 1.0, expected a probability"),
    ],
)
def test_options_out_of_range(options, match):
    with pytest.raises(ValueError, match=match):
        SelfCritical(reward, **options)


def test_losses_of_true_sentences_are_refused():
    with pytest.raises(TypeError, match="SelfCritical: reward is 3, expected a function"):
        SelfCritical(3)
    with pytest.raises(ValueError, match="SelfCritical: the model's label_smoothing is 0.1, expected 0"):
        solver_of(captioner(label_smoothing=0.1))
    reviewed = {"attention": "additive", "reviewer": {"blocks": 1, "steps": 2}, "discriminative": 0.2}
    with pytest.raises(ValueError, match="SelfCritical: the model's discriminative is 0.2, expected 0"):
        solver_of(captioner(**reviewed, discriminative_words=1))
    model = captioner(reconstruction=0.1, reconstructor_dim=3)
    solver_of(model).train()  # ARNet needs no true sentences


def test_a_model_without_dropout_is_refused_for_a_loss_with_dropout():
    objective = SelfCritical(one_word, dropout=True)
    with pytest.raises(ValueError, match="^SelfCritical: dropout is True, and this CaptioningRNN has no dro"):
        solver_of(captioner(), objective=objective)
    for options in ({"output_dropout": 0.5}, {"regularisation": {"zoneout_h": 0.1}}):
        objective.check(captioner(**options))

    class Own(CaptioningRNN):
        """A subclass, which may have dropout of its own."""

    objective.check(Own(WORDS, D))


def test_a_model_that_writes_no_sentences_is_refused():
    match = "SelfCritical: model is a SequenceClassifier without start, advance, start_token"
    with pytest.raises(TypeError, match=match):
        SelfCritical(one_word).check(SequenceClassifier(2))

    class Unweighted(CaptioningRNN):
        def loss(self, features, captions, *, rng=None, grads=None):
            return super().loss(features, captions, rng=rng, grads=grads)

    match = "SelfCritical weights .* but the loss of this Unweighted takes no sentence_weights"
    with pytest.raises(TypeError, match=match):
        SelfCritical(one_word).check(Unweighted(WORDS, D))


@pytest.mark.parametrize(
    ("batch", "found"),
    [
        ((FEATURES,), "1 entries"),
        ((FEATURES, np.array([[START, 3, END]])), r"sources of shape \(1, 3\)"),
    ],
)
def test_captions_are_no_sources(batch, found, rng):
    with pytest.raises(ValueError, match=f"SelfCritical: a batch has {found}, expected the model's inputs"):
        SelfCritical(one_word)(captioner(), batch, rng)


def test_scheduled_sampling_is_refused():
    with pytest.raises(ValueError, match="scheduled_sampling is given, expected none with an objective"):
        solver_of(captioner(), scheduled_sampling={"name": "constant", "value": 0.1})


def test_bad_rewards_are_errors():
    def bad(value):
        return lambda sources, tokens, lengths: np.where(np.asarray(sources) == 7, value, 0.5)

    with pytest.raises(NonFiniteError, match="SelfCritical: the reward of source 7 is nan"):
        solver_of(captioner(), objective=SelfCritical(bad(np.nan), samples=2)).train()
    wrong = SelfCritical(lambda *given: np.zeros(3), samples=2)
    with pytest.raises(ValueError, match=r"reward returned the shape \(3,\), expected \(M,\) = \(10,\)"):
        solver_of(captioner(), objective=wrong).train()


@pytest.mark.parametrize("accumulate", [1, 2])
def test_the_average_of_a_models_loss_does_not_matter(accumulate):
    """The estimate is a mean over sentences, also with a model that divides by the number of tokens."""
    found, losses = [], []
    for average in ("batch", "token"):
        model = captioner(loss_average=average)
        options = {"update_rule": "sgd", "optim_config": {"learning_rate": 0.1}, "accumulate": accumulate}
        objective = SelfCritical(reward, samples=4, max_length=LONGEST)
        solver = solver_of(
            model, objective=objective, num_epochs=2, batch_size=6, restore_best=False, **options
        )
        solver.train()
        found.append(model.params.flat.copy())
        losses.append([(row["train_loss"], row["train_loss_per_token"]) for row in solver.history])
    np.testing.assert_allclose(*found, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(*losses, rtol=1e-9, atol=1e-12)
