"""Teacher forcing: inputs and targets of sentences; tokens of any integer dtype become int64."""

import numpy as np
import pytest

from rnnlab.models import CaptioningRNN, Seq2Seq, SequenceClassifier
from rnnlab.models.parts.teacher_forcing import TeacherForced, check_sentences
from rnnlab.ops import ops_for

V = 1000  # more words than uint8 can count
WORD_TO_IDX = {"<NULL>": 0, "<START>": 1, "<END>": 2} | {f"word{k}": k for k in range(3, V)}
TOKENS = np.array([[1, 5, 200, 255, 2, 0], [1, 30, 2, 0, 0, 0], [1, 7, 9, 11, 13, 2]])
narrow_dtypes = pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint64, ">i4"])


SENTENCES = np.array([[1, 3, 4, 2, 0], [1, 2, 0, 0, 0], [1, 0, 5, 0, 0], [0, 0, 0, 0, 0]])


def test_inputs_and_targets():
    forced = TeacherForced.of(SENTENCES, 0)
    np.testing.assert_array_equal(forced.inputs, SENTENCES[:, :3])  # up to the longest's last target
    np.testing.assert_array_equal(forced.lengths, [3, 1, 2, 0])
    np.testing.assert_array_equal(forced.targets, [3, 4, 2, 2, 5])  # <NULL> is no target
    np.testing.assert_array_equal(forced.target_rows, [0, 1, 2, 3, 7])
    assert forced.num_targets == 5
    assert not forced.is_padded


def test_gather_and_spread_are_inverse(rng):
    forced, x = TeacherForced.of(SENTENCES, 0), rng.standard_normal((4, 3, 2))
    rows = forced.gather(x)
    np.testing.assert_array_equal(rows, x[[0, 0, 0, 1, 2], [0, 1, 2, 0, 1]])
    spread = forced.spread(rows)
    np.testing.assert_array_equal(forced.gather(spread), rows)
    spread[[0, 0, 0, 1, 2], [0, 1, 2, 0, 1]] = 0
    assert not spread.any()


def test_padded_sentences():
    forced = TeacherForced.of(SENTENCES, 0)
    padded = TeacherForced.of_padded(forced.padded(5, 0, np.float64))
    assert padded.is_padded
    assert padded.inputs.shape == padded.mask.shape == (4, 8)
    np.testing.assert_array_equal(padded.lengths, 8)
    np.testing.assert_array_equal(padded.mask.sum(axis=1), forced.lengths)
    real = padded.weights > 0
    np.testing.assert_array_equal(padded.targets[real], forced.targets)
    np.testing.assert_array_equal(padded.weights[real], 1 / 5)
    rows, columns = np.divmod(padded.target_rows[real], 8)
    np.testing.assert_array_equal(SENTENCES[rows, columns + 1], forced.targets)


def test_indices_go_to_the_device(device):
    ops = ops_for(device.zeros(1))
    forced = TeacherForced.of(SENTENCES, 0).on(ops)
    assert type(forced.target_rows) is type(forced.targets) is device.ndarray
    assert type(forced.inputs) is np.ndarray


@pytest.mark.parametrize("shape", [(3,), (2, 4), (3, 1)])
def test_shapes_that_do_not_fit(shape):
    with pytest.raises(
        ValueError, match=r"f: captions has shape .*, expected \(N, L\) with N = 3 as the inputs"
    ):
        check_sentences("f", "captions", np.zeros(shape, int), 3, V)


def test_sentences_are_int64():
    shortest = TOKENS[:, :2]
    found = check_sentences("f", "captions", shortest.astype(np.uint8), 3, V)
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, shortest)


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
