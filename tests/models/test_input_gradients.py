"""The gradients of features, word vectors and hidden states, against numeric ones, in every kind of model."""

from __future__ import annotations

import numpy as np
import pytest

from rnnlab.gradcheck.numeric import projected_check
from rnnlab.layers import reversed_in_time
from rnnlab.layers.attention.contexts import ContextBackward
from rnnlab.models.parts import embedding
from rnnlab.ops import ops_for, unchecked

from ..layers.shifted import shift_states
from . import test_classification as classification
from . import test_translation as translation
from .cases import NAMES, case_called
from .toys import ARCHITECTURES, DROPOUT, NULL, START, H, L, W, batch, build, features_of, name_of

ARNET = {"reconstruction": 0.3, "reconstructor_dim": 3}


def with_every_loss(options):
    """The options with dropout and all losses that they allow."""
    options = options | DROPOUT | ARNET | {"label_smoothing": 0.1}
    if options.get("attention"):
        options |= {"doubly_stochastic": 0.5}
    if "reviewer" in options:
        options |= {"discriminative": 0.5, "discriminative_words": 2}
    return options


def shift_words(monkeypatch, *shifted):
    """Add ``shift`` (N, T, W), as it is at each call, to the vectors that are looked up in ``matrix``."""
    forward = embedding.word_embedding_forward

    def shifted_forward(tokens, W, **options):
        words, cache = forward(tokens, W, **options)
        for matrix, shift in shifted:
            if np.shares_memory(W, matrix) and words.shape == shift.shape:
                words = words + shift
        return words, cache

    monkeypatch.setattr(embedding, "word_embedding_forward", shifted_forward)


def assert_right(loss, checked, rng):
    """Each array that ``loss()`` reads, with its gradient, along a random direction of the array."""
    for name, (array, gradient) in checked.items():
        assert gradient.shape == array.shape, name
        assert projected_check(loss, array, gradient, rng=rng) < 1e-6, name


def steps_of(shift, hidden):
    """Each step by itself, so that none hides another."""
    return {f"hidden state {t}": (shift[:, t], hidden[:, t]) for t in range(hidden.shape[1])}


def assert_captioner(model, features, captions, rng, monkeypatch, *, seed=None, **options):
    """Check the gradients of a captioner, and that they do not change its loss; return them."""

    def run(**more):
        generator = None if seed is None else np.random.default_rng(seed)
        return model.loss(features, captions, rng=generator, **options, **more)

    loss, grads, inputs = run(input_gradients=True)
    expected, expected_grads = run()
    assert loss == expected
    np.testing.assert_allclose(grads.flat, expected_grads.flat, rtol=1e-9, atol=1e-12)
    rows = captions.reshape(-1, captions.shape[-1])
    lengths = lengths_of(rows)
    N, T, H = len(rows), lengths.max(initial=0), model.config()["hidden_dim"]
    assert inputs.words.shape == (N, T, W)
    assert inputs.hidden.shape == (N, T, H)
    padding = np.arange(T) >= lengths[:, None]
    assert not inputs.words[padding].any()
    assert not inputs.hidden[padding].any()

    words, hidden = np.zeros((N, T, W)), np.zeros((N, T, H))
    early = model.config()["image_input"] == "first_input"
    shift_words(monkeypatch, (model.params["W_embed"], words))
    shift_states(monkeypatch, last_recurrent(model.params), hidden, lengths, early)
    checked = {"words": (words, inputs.words)} | steps_of(hidden, inputs.hidden)
    if isinstance(features, tuple):
        checked |= {"regions": (features[0], inputs.features[0]), "image": (features[1], inputs.features[1])}
    else:
        checked["features"] = (features, inputs.features)
    assert_right(lambda: run()[0], checked, rng)
    return inputs


def last_recurrent(params):
    """The recurrent weight of the decoder's last layer."""
    return params[next(name for name in ("layer3_Wh", "layer2_Wh", "Wh") if name in params)]


def lengths_of(captions):
    """Up to the last target of each caption."""
    return ((captions[:, 1:] != NULL) * np.arange(1, captions.shape[1])).max(axis=1)


@pytest.mark.one_in(6)
@pytest.mark.parametrize("options", ARCHITECTURES, ids=name_of)
def test_captions(options, rng, monkeypatch):
    """Every architecture with dropout and every loss that it allows."""
    options = with_every_loss(options)
    inputs = assert_captioner(build(**options), *batch(rng, **options), rng, monkeypatch, seed=1)
    arrays = inputs.features if isinstance(inputs.features, tuple) else (inputs.features,)
    for gradient in (*arrays, inputs.words, inputs.hidden):
        assert np.abs(gradient).max() > 1e-5, "a vacuous check"


@pytest.mark.parametrize("options", ARCHITECTURES[::12], ids=name_of)
def test_the_loss_alone_without_dropout(options, rng, monkeypatch):
    assert_captioner(build(**options), *batch(rng, **options), rng, monkeypatch)


ATTENTION = {"cell_type": "lstm", "attention": "additive", "target_attention": True, "output": "deep"}


@pytest.mark.parametrize("options", [{"cell_type": "lstm"}, ATTENTION], ids=name_of)
@pytest.mark.parametrize("captions", [[[START, 3]], [[START, 3, 4, 2]]], ids=["one step", "one caption"])
def test_a_batch_of_one(options, captions, rng, monkeypatch):
    model, features = build(**options, **ARNET), features_of(rng, 1, **options)
    assert_captioner(model, features, np.array(captions), rng, monkeypatch)


@pytest.mark.parametrize("options", [{"cell_type": "gru"}, ATTENTION], ids=name_of)
def test_several_captions_of_an_image(options, rng, monkeypatch):
    features, captions = batch(rng, **options)
    several = np.stack([captions, captions[::-1]], axis=1)
    inputs = assert_captioner(build(**options, **ARNET), features, several, rng, monkeypatch)
    flat = build(**options, **ARNET).loss(
        np.repeat(features, 2, axis=0), several.reshape(-1, captions.shape[1]), input_gradients=True
    )[2]
    np.testing.assert_allclose(inputs.words, flat.words, rtol=1e-9, atol=1e-13)
    summed = flat.features.reshape(-1, 2, *features.shape[1:]).sum(axis=1)
    np.testing.assert_allclose(inputs.features, summed, rtol=1e-9, atol=1e-13)


def test_options_of_the_loss(rng, monkeypatch):
    """Scheduled sampling, weights and lengths of sentences, a part of a batch."""
    features, captions = batch(rng, **ATTENTION)
    options = {"sampling": 0.5, "part_of": (9, 40), "sentence_weights": [1, -0.5, 2, 0, 1]}
    model = build(**ATTENTION, **ARNET)
    grads = model.params.zeros_like()
    _, kept, _ = model.loss(features, captions, grads=grads, input_gradients=True)
    assert kept is grads
    assert_captioner(model, features, captions, rng, monkeypatch, seed=4, **options)


def test_word_vectors_add_up_to_the_gradient_of_their_matrix(rng):
    model = build(**ATTENTION)
    features, captions = batch(rng, **ATTENTION)
    _, grads, inputs = model.loss(features, captions, input_gradients=True)
    summed = np.zeros_like(grads["W_embed"])
    np.add.at(summed, captions[:, :-1].ravel(), inputs.words.reshape(-1, W))
    np.testing.assert_allclose(grads["W_embed"], summed, rtol=1e-10, atol=1e-13)


def test_nothing_but_padding(rng):
    model = build(**ATTENTION)
    features, captions = features_of(rng, 2, **ATTENTION), np.full((2, 4), NULL)
    loss, _, inputs = model.loss(features, captions, input_gradients=True)
    assert loss == 0
    assert inputs.words.shape == (2, 0, W)
    assert inputs.hidden.shape == (2, 0, H)
    assert inputs.features.shape == (2, L, model.input_dim)
    assert not inputs.features.any()


TRANSLATORS = [
    *translation.COMBINATIONS[:: len(translation.COMBINATIONS) // 9],
    *translation.RECONSTRUCTING[::5],
    {"reviewer": {"blocks": 2, "steps": 2}, "discriminative": 0.4, "encoder_reconstruction": 0.2},
]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("options", TRANSLATORS, ids=translation.name_of)
def test_translations(options, rng, monkeypatch):
    source, target = translation.batch()
    model = translation.build(**translation.with_dropout(options))

    def run(**more):
        return model.loss(source, target, rng=np.random.default_rng(1), **more)

    loss, grads, inputs = run(input_gradients=True)
    expected, expected_grads = run()
    assert loss == expected
    np.testing.assert_allclose(grads.flat, expected_grads.flat, rtol=1e-9, atol=1e-12)
    for gradient, tokens, dtype in (
        (inputs.source, source, translation.W),
        (inputs.target, target[:, :-1], translation.W),
        (inputs.hidden, target[:, :-1], model.config()["hidden_dim"]),
    ):
        assert gradient.shape == (*tokens.shape, dtype)
        assert np.abs(gradient).max() > 1e-5, "a vacuous check"
    shifts = [np.zeros(gradient.shape) for gradient in inputs]
    params = model.params
    shift_words(monkeypatch, (params["W_source"], shifts[0]), (params["W_embed"], shifts[1]))
    shift_states(monkeypatch, last_recurrent(params), shifts[2], lengths_of(target))
    checked = {"source": (shifts[0], inputs.source), "target": (shifts[1], inputs.target)}
    assert_right(lambda: run()[0], checked | steps_of(shifts[2], inputs.hidden), rng)
    past_the_end = np.cumsum(source[:, ::-1] != NULL, axis=1)[:, ::-1] == 0
    assert not inputs.source[past_the_end].any()


@pytest.mark.one_in(6)
@pytest.mark.parametrize("options", classification.OPTIONS, ids=translation.name_of)
@pytest.mark.parametrize("lengths", [None, classification.LENGTHS], ids=["full", "ragged"])
def test_classes(options, lengths, rng, monkeypatch):
    model, (x, labels) = classification.build(**options, output_dropout=0.4), classification.batch(rng)

    def run(**more):
        return model.loss(x, labels, lengths, rng=np.random.default_rng(1), **more)

    loss, grads, inputs = run(input_gradients=True)
    expected, expected_grads = run()
    assert loss == expected
    np.testing.assert_allclose(grads.flat, expected_grads.flat, rtol=1e-9, atol=1e-12)
    assert np.abs(inputs.x).max() > 1e-5, "a vacuous check"
    H, both = classification.H, ("forward_", "backward_")
    for k, direction in enumerate(both if options.get("bidirectional") else ("",)):
        prefix = "layer2_" * (options.get("num_layers") == 2) + direction
        hidden, found = np.zeros((*x.shape[:2], H)), inputs.hidden[:, :, k * H : (k + 1) * H]
        if k:  # in the order in which the direction reads
            found = reversed_in_time(found, lengths)
        shift_states(monkeypatch, model.params[f"{prefix}Wh"], hidden, lengths)
        assert_right(lambda: run()[0], {"x": (x, inputs.x)} | steps_of(hidden, found), rng)
    if lengths is not None:
        padding = np.arange(x.shape[1]) >= lengths[:, None]
        assert not inputs.x[padding].any()
        assert not inputs.hidden[padding].any()


# ---------------------------------------------------------------- a GPU


def flat(inputs):
    """All arrays, as NumPy's."""
    arrays = [each for field in inputs for each in (field if isinstance(field, tuple) else (field,))]
    return [ops_for(each).asnumpy(each) for each in arrays]


@pytest.mark.parametrize("name", NAMES[::5])
def test_on_a_device(name, device):
    model, given = case_called(name)
    expected = model.loss(*given, rng=np.random.default_rng(3), input_gradients=True)[2]
    model.to("gpu")
    found = model.loss(*given, rng=np.random.default_rng(3), input_gradients=True)[2]
    assert type(found.hidden) is device.ndarray
    for one, other in zip(flat(expected), flat(found), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-12)


# ---------------------------------------------------------------- what is computed without them


def test_regions_get_no_gradient_that_is_not_asked_for(rng, monkeypatch):
    model, given = build(**ATTENTION), batch(rng, **ATTENTION)
    called = []
    monkeypatch.setattr(ContextBackward, "memory_gradient", lambda *_: called.append(True))
    assert len(model.loss(*given)) == 2
    assert not called


def test_steps_run_at_once_where_they_are_not_asked_for(rng, monkeypatch):
    model, given = build(cell_type="lstm"), batch(rng)
    chunks = []
    ops = unchecked(ops_for(model.params.flat))
    backward = ops.steps_backward
    monkeypatch.setattr(ops, "steps_backward", lambda *given: (chunks.append(1), backward(*given)))
    model.loss(*given)
    assert chunks
    chunks.clear()
    model.loss(*given, input_gradients=True)
    assert not chunks


def test_single_precision_stays(rng):
    model = build(cell_type="lstm", attention="additive", dtype=np.float32)
    for gradient in flat(model.loss(*batch(rng, attention="additive"), input_gradients=True)[2]):
        assert gradient.dtype == np.float32
