"""Accuracy and confusion matrix of predicted classes."""

from __future__ import annotations

import numpy as np

from rnnlab.errors import InputError, InputTypeError, OutOfRangeError


def accuracy(labels: np.ndarray, predictions: np.ndarray) -> float:
    """The share of correct predictions, in [0, 1].

    Parameters
    ----------
    labels, predictions : (N,) integers
        N at least 1.

    Raises
    ------
    ValueError
        If N is 0, or the shapes differ.
    TypeError
        If they are not integers.
    """
    labels, predictions = _checked("accuracy", labels, predictions)
    return float(np.mean(labels == predictions))


def confusion_matrix(labels: np.ndarray, predictions: np.ndarray, num_classes: int) -> np.ndarray:
    """Count the pairs of true and predicted class.

    Parameters
    ----------
    labels, predictions : (N,) integers in [0, C)
        N at least 1.
    num_classes : int
        C.

    Returns
    -------
    (C, C) int64
        Entry (i, j) is the number of examples of class i that were predicted as class j.

    Raises
    ------
    ValueError
        If N is 0, or the shapes differ.
    IndexError
        If a class is out of range.
    TypeError
        If they are not integers.
    """
    labels, predictions = _checked("confusion_matrix", labels, predictions)
    for name, classes in (("labels", labels), ("predictions", predictions)):
        if classes.min() < 0 or classes.max() >= num_classes:
            raise OutOfRangeError(
                f"confusion_matrix: {name} are from {classes.min()} to {classes.max()}, "
                f"expected from 0 to {num_classes - 1}"
            )
    counts = np.bincount(labels * num_classes + predictions, minlength=num_classes**2)
    return counts.reshape(num_classes, num_classes)


def _checked(function: str, labels: np.ndarray, predictions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both as int64, because the product with the number of classes may overflow a smaller dtype."""
    labels, predictions = np.asarray(labels), np.asarray(predictions)
    if labels.ndim != 1 or not labels.size or labels.shape != predictions.shape:
        raise InputError(
            f"{function}: labels has shape {labels.shape} and predictions {predictions.shape}, "
            "expected (N,) of both with N of at least 1"
        )
    for name, classes in (("labels", labels), ("predictions", predictions)):
        if classes.dtype.kind not in "iu":
            raise InputTypeError(f"{function}: {name} has dtype {classes.dtype}, expected integers")
    return labels.astype(np.int64), predictions.astype(np.int64)
