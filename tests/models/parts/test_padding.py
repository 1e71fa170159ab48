"""Padded batches: the same losses and gradients as the batch, in few shapes."""

import numpy as np
import pytest

from rnnlab.models import Seq2Seq, SequenceClassifier
from rnnlab.models.parts.padding import padded_tokens, real_steps, rounded_count, rounded_up
from rnnlab.ops import gpu_training, ops_for

from ...training.parts import parts_of
from ..cases import NAMES, case_called
from ..toys import batch, build


def padded_loss(model, batch, part_of=None, grads=None, rng=None):
    """The loss and the gradients of a batch that is padded."""
    ops = ops_for(model.params.flat)
    grads = model.params.zeros_like() if grads is None else grads
    padded = model.padded(*batch, part_of=part_of).on(ops.asarray)
    return float(model.padded_loss(padded, rng=rng, grads=grads)), ops.asnumpy(grads.flat)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", NAMES)
def test_loss_and_gradients(name):
    model, batch = case_called(name)
    expected, grads = model.loss(*batch)
    loss, padded = padded_loss(model, batch)
    assert loss == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(padded, grads.flat, rtol=1e-9, atol=1e-12)


@pytest.mark.one_in(8)
@pytest.mark.parametrize("name", NAMES)
def test_on_a_device(name, device):
    model, batch = case_called(name)
    expected, grads = model.loss(*batch)
    loss, padded = padded_loss(model.to("gpu"), batch)
    assert loss == pytest.approx(expected, rel=1e-10)
    np.testing.assert_allclose(padded, grads.flat, rtol=1e-9, atol=1e-11)


@pytest.mark.one_in(8)
@pytest.mark.parametrize("name", NAMES)
def test_in_a_graph(name, device):
    model, batch = case_called(name)
    ops = ops_for(model.to("gpu").params.flat)
    padded, grads = model.padded(*batch).on(ops.asarray), model.params.zeros_like()
    loss, rng = ops.zeros(1), np.random.default_rng(3)

    def work():
        grads.flat[...] = 0
        loss[...] = model.padded_loss(padded, rng=rng, grads=grads)

    work()
    expected = ops.asnumpy(loss), ops.asnumpy(grads.flat)
    training, rng = gpu_training(), np.random.default_rng(3)
    graph = training.Graph(work, training.GraphMemory())
    for _ in range(2):
        graph.launch(np.random.default_rng(3), lambda: None)
        np.testing.assert_array_equal(ops.asnumpy(loss), expected[0])
        np.testing.assert_array_equal(ops.asnumpy(grads.flat), expected[1])


@pytest.mark.parametrize("name", NAMES[::5])
def test_parts_add_up(name):
    model, batch = case_called(name)
    tokens = len(batch[1]) if name.startswith("Seq") and np.ndim(batch[1]) == 1 else None
    expected, grads = model.loss(*batch)
    whole = (
        getattr(model, "num_examples", lambda batch: len(batch[1]))(batch),
        tokens if tokens is not None else int(model.nll(*batch)[1]),
    )
    gradients = model.params.zeros_like()
    loss = sum(padded_loss(model, part, whole, gradients)[0] for part in parts_of(batch, 2))
    assert loss == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(gradients.flat, grads.flat, rtol=1e-9, atol=1e-12)


EMPTY_SOURCES = [{}, {"bidirectional": False}, {"num_layers": 2, "encoder_reconstruction": 0.1}]


@pytest.mark.parametrize("place", ["cpu", "gpu"])
@pytest.mark.parametrize("options", EMPTY_SOURCES)
def test_a_source_of_padding_only(options, place, device):
    """A sentence without a token has the memory and the state of no step, padded or not."""
    words = {"<NULL>": 0, "<START>": 1, "<END>": 2, "a": 3, "b": 4}
    model = Seq2Seq(words, words, wordvec_dim=4, hidden_dim=5, dtype="float64", reconstruction=0.1, **options)
    model.params.flat[...] = np.random.default_rng(1).standard_normal(model.params.flat.size)
    source, target = np.array([[3, 4, 2], [0, 0, 0]]), np.array([[1, 3, 2, 0], [1, 4, 3, 2]])
    expected, grads = model.loss(source, target)
    loss, padded = padded_loss(model.to(place), (source, target))
    assert loss == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(padded, grads.flat, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("place", ["cpu", "gpu"])
@pytest.mark.parametrize("options", [{}, {"bidirectional": True, "readout": "mean", "reconstruction": 0.1}])
def test_padding_of_vectors_is_not_read(options, place, device, rng):
    model = SequenceClassifier(3, 2, 4, dtype="float64", rng=1, **options)
    x, labels, lengths = rng.standard_normal((3, 5, 2)), np.array([0, 2, 1]), np.array([5, 0, 2])
    expected, grads = model.loss(x, labels, lengths)
    x[np.arange(5) >= lengths[:, None]] = np.nan
    before = x.copy()
    loss, padded = padded_loss(model.to(place), model.prefetch((x, labels, lengths)))
    assert loss == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(padded, grads.flat, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(x, before)


def test_batches_of_few_shapes(rng):
    model = build(attention="additive")
    features, captions = batch(rng, attention="additive")
    shape = model.padded(features, captions).shape
    longer = np.pad(captions, ((0, 0), (0, 30)))
    assert model.padded(features, longer).shape == shape
    assert model.padded(features[:1], captions[:1]).shape != shape


def test_dropout_is_drawn(rng):
    model = build(word_dropout=0.5)
    given = batch(rng)
    plain, noisy = (padded_loss(model, given, rng=r)[0] for r in (None, np.random.default_rng(0)))
    assert plain != noisy
    assert noisy == padded_loss(model, given, rng=np.random.default_rng(0))[0]


def test_counts_are_rounded_up():
    assert [rounded_count(count, 1600) for count in (0, 1, 100, 101, 1501, 1600)] == [
        100,
        100,
        100,
        200,
        1600,
        1600,
    ]
    assert [rounded_count(count, 100) for count in (0, 64, 65, 100)] == [64, 64, 100, 100]
    assert rounded_count(3, 8) == 8


def test_no_place_is_scored_twice(rng):
    model = build()
    padded = model.padded(*batch(rng)).arrays
    assert len(np.unique(padded["target_rows"])) == len(padded["target_rows"]) <= padded["mask"].size
    scored = padded["weights"] > 0
    assert (padded["targets"][scored] != model.null_token).all()
    assert (padded["targets"][~scored] == model.null_token).all()


def test_lengths_are_rounded_up():
    assert [rounded_up(length) for length in (0, 1, 8, 9, 17)] == [8, 8, 8, 16, 24]
    np.testing.assert_array_equal(padded_tokens(np.array([[3, 4, 0]]), 2, 0), [[3, 4]])
    np.testing.assert_array_equal(padded_tokens(np.array([[3]]), 3, 9), [[3, 9, 9]])
    np.testing.assert_array_equal(real_steps(np.array([0, 2]), 3, float), [[0, 0, 0], [1, 1, 0]])


@pytest.mark.parametrize("spoil", [lambda f, c: (f[:1], c), lambda f, c: (f, c + 1000)])
def test_what_does_not_fit_is_refused(spoil, rng):
    with pytest.raises((ValueError, IndexError), match=r"CaptioningRNN\.padded: "):
        build().padded(*spoil(*batch(rng)))


@pytest.mark.parametrize("lengths", [[3, 1], [3, -1, 2], [3, 1, 99]])
def test_lengths_that_do_not_fit(lengths):
    model, (x, labels, *_) = case_called("SequenceClassifier lstm last")
    for function in (model.loss, model.padded):
        with pytest.raises(ValueError, match="lengths holds|lengths has shape"):
            function(x, labels, np.array(lengths))
