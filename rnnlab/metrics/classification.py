"""Scores of classes: how many are right, and which are taken for which."""

from __future__ import annotations

import numpy as np


def accuracy(labels: np.ndarray, predictions: np.ndarray) -> float:
    """The share of predictions that are right, from 0 to 1.

    Parameters
    ----------
    labels, predictions : (N,) integers

    Raises
    ------
    ValueError
        If there are none, or not as many of both.
    """
    _check("accuracy", labels, predictions)
    return float(np.mean(labels == predictions))


def confusion_matrix(labels: np.ndarray, predictions: np.ndarray, num_classes: int) -> np.ndarray:
    """How often each class was taken for each class.

    Parameters
    ----------
    labels, predictions : (N,) integers in [0, C)
    num_classes : int
        C.

    Returns
    -------
    (C, C) integers
        A row for each true class, a column for each predicted one.

    Raises
    ------
    ValueError
        If there are none, or not as many of both, or one is out of range.
    """
    _check("confusion_matrix", labels, predictions)
    for name, classes in (("labels", labels), ("predictions", predictions)):
        if classes.min() < 0 or classes.max() >= num_classes:
            raise ValueError(
                f"confusion_matrix: {name} are from {classes.min()} to {classes.max()}, "
                f"expected from 0 to {num_classes - 1}"
            )
    counts = np.bincount(labels * num_classes + predictions, minlength=num_classes**2)
    return counts.reshape(num_classes, num_classes)


def _check(function: str, labels: np.ndarray, predictions: np.ndarray) -> None:
    if not labels.size or labels.shape != predictions.shape:
        raise ValueError(
            f"{function}: labels has shape {labels.shape} and predictions {predictions.shape}, "
            "expected one shape, and at least one of each"
        )
