"""Every model on a GPU, or CuPy's stand-in, against the same on the CPU; and what it tells people."""

from itertools import chain

import numpy as np
import pytest

from rnnlab.decoding import Ensemble, beam_search, greedy, sample
from rnnlab.gradcheck.numeric import relative_distance
from rnnlab.models import CaptioningRNN
from rnnlab.ops import ops_for

from .cases import NAMES, case_called
from .toys import batch, build, features_of


def losses(model, batch):
    """The loss with its gradients, and the likelihood."""
    loss, grads = model.loss(*batch, rng=np.random.default_rng(3))
    return float(loss), ops_for(grads.flat).asnumpy(grads.flat), model.nll(*batch)


@pytest.mark.one_in(8)
@pytest.mark.parametrize("name", NAMES)
def test_the_same_as_on_the_cpu(name, device):
    model, batch = case_called(name)
    loss, grads, (nats, tokens) = losses(model, batch)
    assert model.device == "cpu"
    assert model.to("gpu").device == "gpu:0"
    on_device = losses(model, batch)
    assert on_device[0] == pytest.approx(loss, rel=1e-10)
    np.testing.assert_allclose(on_device[1], grads, rtol=1e-9, atol=1e-11)
    assert on_device[2] == (pytest.approx(nats, rel=1e-10), tokens)
    np.testing.assert_array_equal(losses(model, batch)[1], on_device[1])  # to the bit


@pytest.mark.parametrize("name", NAMES[::7])
def test_in_single_precision(name, device):
    model, batch = case_called(name)
    single = type(model).from_config(model.config() | {"dtype": "float32"})
    single.params.flat[...] = model.params.flat
    loss, grads, _ = losses(model, batch)
    on_device = losses(single.to("gpu"), batch)
    assert on_device[1].dtype == np.float32
    assert on_device[0] == pytest.approx(loss, rel=1e-4)
    assert relative_distance(on_device[1], grads) < 1e-3


def test_there_and_back(device):
    model = build()
    before = model.params.flat.copy()
    assert model.to("gpu") is model
    assert type(model.params.flat) is device.ndarray
    model.to("gpu")
    assert type(model.to("cpu").params.flat) is np.ndarray
    np.testing.assert_array_equal(model.params.flat, before)
    assert type(model).from_config(model.config(), rng=0).device == "cpu"
    assert CaptioningRNN(model.word_to_idx, 3, 2, 4, device="gpu").device == "gpu:0"
    assert "device" not in model.config()


def test_a_parameter_is_set_from_either_library(device):
    params = build().to("gpu").params
    b = np.arange(params["b"].size, dtype=float)
    params["b"] = b
    np.testing.assert_array_equal(device.asnumpy(params["b"]), b)
    params["b"] = device.asarray(b[::-1].copy())
    np.testing.assert_array_equal(device.asnumpy(params["b"]), b[::-1])
    with pytest.raises(ValueError, match=r"parameter 'b' has shape \(\d+,\), the array given has \(2,\)"):
        params["b"] = np.zeros(2)


@pytest.mark.parametrize(
    "options",
    [
        {"cell_type": "lstm"},
        {"cell_type": "gru", "attention": "additive", "target_attention": True, "output": "deep"},
        {"cell_type": "lstm", "attention": "additive", "target_attention": True, "output": "concat"},
        {"cell_type": "gru", "attention": "additive", "global_dim": 5},
    ],
    ids=lambda options: "-".join(map(str, options.values())),
)
def test_searches_find_the_same(options, device, rng):
    model, features = build(**options), features_of(rng, 4, **options)
    alignments = {"return_alignments": "attention" in options}
    common = {"max_length": 6, **alignments}
    searches = [
        lambda: greedy(model, features, min_length=2, forbid=[3], **common),
        lambda: beam_search(model, features, beam_size=4, n_best=3, no_repeat_ngram=2, **common),
        lambda: beam_search(model, features, beam_size=4, num_groups=2, max_length=6),
        lambda: sample(model, features, rng=np.random.default_rng(5), top_k=3, max_length=6),
        lambda: beam_search(Ensemble([model, model]), features, beam_size=3, **common),
        lambda: greedy(Ensemble([model, model], average="log_probabilities"), features, **common),
    ]  # fmt: skip
    on_cpu = [search() for search in searches]
    model.to("gpu")
    for search, expected in zip(searches, on_cpu, strict=True):
        for found, wanted in zip(chain(*search()), chain(*expected), strict=True):
            assert (found.tokens, found.finished) == (wanted.tokens, wanted.finished)
            assert found.log_prob == pytest.approx(wanted.log_prob)
            if wanted.alignment is not None:
                np.testing.assert_allclose(found.alignment, wanted.alignment, rtol=1e-9, atol=1e-12)


def test_the_likelihood_of_an_ensemble(device, rng):
    features, captions = batch(rng, attention="additive")
    models = [build(attention="additive"), build(attention="additive", rng=1)]
    nats, tokens = Ensemble(models).nll(features, captions)
    on_device = Ensemble([model.to("gpu") for model in models]).nll(features, captions)
    assert on_device == (pytest.approx(nats, rel=1e-10), tokens)


def test_answers_are_numpys(device, rng):
    features, captions = batch(rng, attention="additive")
    model = build(attention="additive").to("gpu")
    assert type(model.align(features, captions)) is np.ndarray
    assert type(model.last_states(features[:1], [[1, 3, 2]])) is np.ndarray
    assert type(model.hidden_states(features[:1], [[1, 3, 2]])) is np.ndarray
    assert model.sample(features).dtype == np.int32
    for case in ("SequenceClassifier gru mean", "SequenceClassifier gru both directions, ARNet"):
        classifier, (x, *_) = case_called(case)
        expected = classifier.predict(x)
        found = classifier.to("gpu").predict(x)
        assert type(found) is np.ndarray
        np.testing.assert_array_equal(found, expected)


def test_answers_of_a_reviewer_are_numpys(device, rng):
    options = {"attention": "additive", "target_attention": True, "reviewer": {"blocks": 2, "steps": 3}}
    model, (features, captions) = build(**options), batch(rng, **options)

    def answers():
        (_, thoughts, weights), given = model.review(features), (features, captions)
        return *thoughts, *chain(*weights), model.align_thoughts(*given), model.align_past(*given)

    expected = answers()
    model.to("gpu")
    for found, each in zip(answers(), expected, strict=True):
        assert type(found) is np.ndarray
        np.testing.assert_allclose(found, each, rtol=1e-9, atol=1e-12)


def test_features_may_be_on_the_device_already(device, rng):
    features, captions = batch(rng)
    model = build().to("gpu")
    expected = model.loss(features, captions)[0]
    fetched = model.prefetch((features, captions))
    assert type(fetched[0]) is device.ndarray
    assert fetched[1] is captions
    assert float(model.loss(*fetched)[0]) == expected


def test_scheduled_sampling(device, rng):
    features, captions = batch(rng)
    model = build()
    expected = model.loss(features, captions, rng=np.random.default_rng(1), sampling=0.5)[0]
    found = float(model.to("gpu").loss(features, captions, rng=np.random.default_rng(1), sampling=0.5)[0])
    assert found == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("name", ["cuda", "gpu:x", "gpu:", 0, None])
def test_a_device_that_is_none(name):
    with pytest.raises(ValueError, match="expected 'cpu', 'gpu' or 'gpu:N'"):
        build().to(name)


def test_a_gpu_that_is_not_there(device):
    with pytest.raises(ValueError, match="device is 'gpu:99', but there are"):
        build().to("gpu:99")
