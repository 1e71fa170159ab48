"""Tokens and labels enter as any integer dtype and are int64 from there on."""

import numpy as np
import pytest

from rnnlab.models import CaptioningRNN, Seq2Seq, SequenceClassifier
from rnnlab.models.parts.teacher_forcing import check_sentences

V = 1000  # more words than uint8 can count
WORD_TO_IDX = {"<NULL>": 0, "<START>": 1, "<END>": 2} | {f"word{k}": k for k in range(3, V)}
TOKENS = np.array([[1, 5, 200, 255, 2, 0], [1, 30, 2, 0, 0, 0], [1, 7, 9, 11, 13, 2]])
narrow_dtypes = pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint64, ">i4"])


def test_sentences_are_int64():
    found = check_sentences("f", "captions", TOKENS.astype(np.uint8), 3, V)
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, TOKENS)


@narrow_dtypes
@pytest.mark.parametrize("sampling", [0.0, 0.9])
def test_the_dtype_of_captions_changes_no_loss(dtype, sampling, rng):
    model = CaptioningRNN(WORD_TO_IDX, 3, 4, 5, cell_type="gru", dtype=np.float64)
    model.params.flat[...] = rng.standard_normal(model.params.flat.size)
    features = rng.standard_normal((3, 3))

    def loss(captions):
        return model.loss(features, captions, rng=np.random.default_rng(1), sampling=sampling)

    (expected, expected_grads), (found, grads) = loss(TOKENS), loss(TOKENS.astype(dtype))
    assert found == expected
    np.testing.assert_array_equal(grads.flat, expected_grads.flat)
    assert model.nll(features, TOKENS.astype(dtype)) == model.nll(features, TOKENS)


@narrow_dtypes
@pytest.mark.parametrize("sampling", [0.0, 0.9])
def test_the_dtype_of_sentences_changes_no_loss(dtype, sampling, rng):
    model = Seq2Seq(WORD_TO_IDX, WORD_TO_IDX, 4, 5, dtype=np.float64)
    model.params.flat[...] = rng.standard_normal(model.params.flat.size)
    source = TOKENS[:, ::-1].copy()

    def loss(source, target):
        return model.loss(source, target, rng=np.random.default_rng(1), sampling=sampling)[0]

    assert loss(source.astype(dtype), TOKENS.astype(dtype)) == loss(source, TOKENS)


@narrow_dtypes
def test_the_dtype_of_labels_changes_no_loss(dtype, rng):
    model = SequenceClassifier(300, 2, 3, dtype=np.float64)
    x, labels = rng.standard_normal((4, 5, 2)), np.array([0, 255, 7, 128])
    assert model.loss(x, labels.astype(dtype))[0] == model.loss(x, labels)[0]
    assert model.padded(x, labels.astype(dtype)).arrays["labels"].dtype == np.int64


def test_complex_features_are_refused(rng):
    captioner = CaptioningRNN(WORD_TO_IDX, 3, 4, 5)
    with pytest.raises(TypeError, match=r"CaptioningRNN.loss: features has dtype complex128, expected real"):
        captioner.loss(rng.standard_normal((3, 3)) + 0j, TOKENS)
    classifier = SequenceClassifier(3, 2, 3)
    with pytest.raises(TypeError, match=r"SequenceClassifier.scores: x has dtype complex128, expected real"):
        classifier.scores(rng.standard_normal((4, 5, 2)) + 0j)
