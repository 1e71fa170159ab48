"""Classes of sequences: the data, the model and the scores of a recipe."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np

from rnnlab.data import PixelData, open_digits, open_mnist
from rnnlab.layers import softmax_loss
from rnnlab.metrics import accuracy, confusion_matrix
from rnnlab.models import SequenceClassifier
from rnnlab.ops import ops_for
from rnnlab.recipes.data import DigitsTable, MnistTable
from rnnlab.recipes.recipe import ClassificationConfig, ClassificationEvaluationConfig, TrainingConfig

TABLES = (MnistTable, DigitsTable)


@dataclass(frozen=True)
class Evaluation:
    """What a model makes of a split.

    Attributes
    ----------
    labels, predictions : (N,) integers
        The true class of each sequence, and the likeliest one.
    loss : float
        The mean cross-entropy, in nats.
    accuracy : float
        The share of sequences that are classified rightly, from 0 to 1.
    confusion : (C, C) integers
        How often each class was taken for each class: rows are the true ones.
    """

    labels: np.ndarray
    predictions: np.ndarray
    loss: float
    accuracy: float
    confusion: np.ndarray


def open_data(table: MnistTable | DigitsTable) -> PixelData:
    """The data that a recipe's table ``[data]`` names."""
    options = asdict(table)
    kind = options.pop("kind")
    return open_mnist(options.pop("directory"), **options) if kind == "mnist" else open_digits(**options)


def new_model(config: ClassificationConfig, data: PixelData) -> SequenceClassifier:
    """A model as the recipe describes it, its parameters drawn from the recipe's seed."""
    return SequenceClassifier(
        data.num_classes, 1, **asdict(config.model), rng=np.random.default_rng(config.training.seed)
    )


def evaluate(
    training: TrainingConfig,
    data: PixelData,
    model: SequenceClassifier,
    split: str,
    *,
    evaluation: ClassificationEvaluationConfig,
) -> Evaluation:
    """Classify a split and compare with its labels.

    Raises
    ------
    KeyError
        If the data have no such split.
    ValueError
        If it has no images.
    """
    count, size = len(data.split(split)), training.batch_size
    indices = np.arange(min(evaluation.max_images or count, count))
    predictions, nats = np.empty(len(indices), np.int64), 0.0
    for rows in np.split(indices, range(size, len(indices), size)):
        x, labels = data.batch(split, rows)
        scores = model.scores(x)
        scores = ops_for(scores).asnumpy(scores)
        predictions[rows] = scores.argmax(axis=1)
        nats += softmax_loss(scores, labels, divisor=1.0)[0]
    labels = data.split(split).labels[indices]
    return Evaluation(
        labels,
        predictions,
        nats / max(1, len(indices)),
        accuracy(labels, predictions),
        confusion_matrix(labels, predictions, data.num_classes),
    )


def epoch_scores(
    config: ClassificationConfig, data: PixelData
) -> Callable[[SequenceClassifier], dict[str, float]]:
    """The function that the solver calls after every epoch: loss and accuracy of the split ``val``."""

    def scores(model: SequenceClassifier) -> dict[str, float]:
        found = evaluate(config.training, data, model, "val", evaluation=ClassificationEvaluationConfig())
        return {"val_loss": found.loss, "val_accuracy": found.accuracy}

    return scores
