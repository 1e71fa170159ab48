import numpy as np
import pytest

from rnnlab.metrics import accuracy, confusion_matrix

LABELS, PREDICTIONS = np.array([0, 2, 2, 1, 2]), np.array([0, 2, 1, 1, 0])


def test_by_hand():
    assert accuracy(LABELS, PREDICTIONS) == 0.6
    np.testing.assert_array_equal(
        confusion_matrix(LABELS, PREDICTIONS, 4), [[1, 0, 0, 0], [0, 1, 0, 0], [1, 1, 1, 0], [0, 0, 0, 0]]
    )


def test_the_diagonal_is_the_accuracy(rng):
    labels, predictions = rng.integers(0, 7, (2, 300))
    confusion = confusion_matrix(labels, predictions, 7)
    assert confusion.trace() / 300 == accuracy(labels, predictions)
    np.testing.assert_array_equal(confusion.sum(axis=1), np.bincount(labels, minlength=7))
    np.testing.assert_array_equal(confusion.sum(axis=0), np.bincount(predictions, minlength=7))


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint64])
def test_labels_of_any_dtype(dtype, rng):
    """37 x 100 does not fit eight bits."""
    labels, predictions = rng.integers(0, 100, (2, 500))
    narrow = confusion_matrix(labels.astype(dtype), predictions.astype(dtype), 100)
    np.testing.assert_array_equal(narrow, confusion_matrix(labels, predictions, 100))
    assert narrow[labels[0], predictions[0]] > 0


def test_errors():
    with pytest.raises(TypeError, match="accuracy: predictions has dtype float64, expected integers"):
        accuracy(LABELS, PREDICTIONS / 2)
    with pytest.raises(ValueError, match=r"accuracy: labels has shape \(5,\) and predictions \(4,\)"):
        accuracy(LABELS, PREDICTIONS[:4])
    with pytest.raises(ValueError, match=r"expected \(N,\) of both with N of at least 1"):
        confusion_matrix(LABELS[:0], PREDICTIONS[:0], 3)
    with pytest.raises(IndexError, match="predictions are from 0 to 2, expected from 0 to 1"):
        confusion_matrix(np.array([0, 1, 1]), np.array([0, 2, 1]), 2)
