"""Classes of sequences: the data, the model and the scores of a recipe."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from rnnlab.data import PixelData, open_digits, open_mnist
from rnnlab.data.pixels import PixelInputs, PixelSplit
from rnnlab.data.split_data import batches
from rnnlab.decoding.ensemble import Average
from rnnlab.errors import InputError
from rnnlab.layers import softmax_loss
from rnnlab.metrics import Statistics, accuracy, confusion_matrix, mean_of
from rnnlab.models import ClassifierEnsemble, SequenceClassifier
from rnnlab.ops import ops_for
from rnnlab.recipes.data import DigitsTable, MnistTable
from rnnlab.recipes.recipe import ClassificationRecipe
from rnnlab.recipes.tables import ClassificationEvaluationTable
from rnnlab.tasks.ensembles import Combined, Member, check_same, check_same_splits
from rnnlab.tasks.task import Task, chosen_on, limited
from rnnlab.training import Checkpoint
from rnnlab.training.distributed import ALONE, Communicator, in_shares


@dataclass(frozen=True)
class ClassificationEvaluation:
    """The predicted classes of a split and their scores.

    Attributes
    ----------
    split : str
    labels, predictions : (N,) integers
        The true and the most probable class of each sequence.
    loss : float
        The mean cross-entropy in nats.
    accuracy : float
        The share of correct predictions, in [0, 1].
    confusion : (C, C) integers
        Entry (i, j) is the number of sequences of class i that were predicted as class j.
    remarks : list of str
        Notes on the split.
    """

    split: str
    labels: np.ndarray
    predictions: np.ndarray
    loss: float
    accuracy: float
    confusion: np.ndarray
    remarks: list[str] = field(default_factory=list)

    def corpus(self) -> dict[str, float]:
        """Loss and accuracy."""
        return {"loss": self.loss, "accuracy": self.accuracy}

    def rows(self) -> list[tuple[str, str]]:
        """The table of the scores: names and numbers."""
        scores = [(name, f"{score:.4f}") for name, score in self.corpus().items()]
        return [("images", f"{len(self.labels):,}"), *scores]

    def examples(self) -> list[int]:
        """The true classes."""
        return self.labels.tolist()

    def statistics(self) -> dict[str, Statistics]:
        """Whether each class is correct."""
        return {"accuracy": mean_of(self.labels == self.predictions)}

    def notes(self) -> list[str]:
        """The remarks."""
        return list(self.remarks)

    def report(self) -> dict[str, Any]:
        """The scores, the confusion matrix, labels and predictions as JSON values."""
        arrays = {name: getattr(self, name).tolist() for name in ("confusion", "labels", "predictions")}
        return {"corpus": self.corpus(), "notes": self.notes(), **arrays}


class ClassificationTask(Task):
    """The task of :class:`rnnlab.recipes.ClassificationRecipe`."""

    recipe_type = ClassificationRecipe
    verb, outputs, command = "classifies", "classes", "evaluate"
    scores_sentences = False
    openers: ClassVar = {MnistTable: open_mnist, DigitsTable: open_digits}

    def new_model(self, recipe: ClassificationRecipe, data: PixelData) -> SequenceClassifier:
        """See :meth:`Task.new_model`."""
        return SequenceClassifier(
            data.num_classes, 1, **recipe.model.options(), rng=np.random.default_rng(recipe.training.seed)
        )

    def inputs(self, recipe: ClassificationRecipe, checkpoint: Checkpoint) -> PixelInputs:
        """See :meth:`Task.inputs`."""
        return PixelInputs.from_saved(checkpoint.preprocessing)

    def check_ensemble(self, members: Sequence[Member]) -> None:
        """See :meth:`Task.check_ensemble`: the images have the same size, and their pixels the same order."""
        check_same(members, "size of images", lambda inputs: inputs.image_shape)
        check_same(members, "white", lambda inputs: inputs.white)
        check_same(members, "order of the pixels", lambda inputs: tuple(inputs.permutation.tolist()))

    def combined(self, members: Sequence[Member], average: Average) -> Combined:
        """See :meth:`Task.combined`. The data are those of the first run."""
        check_same_splits(members, "images", _same_images)
        model = ClassifierEnsemble([member.model for member in members], average=average)
        return Combined(model, members[0].inputs, members[0].data)

    def epoch_scores(
        self, recipe: ClassificationRecipe, data: PixelData, communicator: Communicator = ALONE
    ) -> Callable[[SequenceClassifier], dict[str, float]]:
        """See :meth:`Task.epoch_scores`: loss and accuracy of the split ``val``."""

        def scores(model: SequenceClassifier) -> dict[str, float]:
            everything = ClassificationEvaluationTable()
            found = self.evaluate(
                recipe, data, model, "val", evaluation=everything, communicator=communicator
            )
            return {"val_loss": found.loss, "val_accuracy": found.accuracy}

        return scores

    def evaluate(
        self,
        recipe: ClassificationRecipe,
        data: PixelData,
        model: SequenceClassifier,
        split: str,
        *,
        evaluation: ClassificationEvaluationTable,
        communicator: Communicator = ALONE,
    ) -> ClassificationEvaluation:
        """Classify a split and compare the classes with its labels.

        Raises
        ------
        KeyError
            If the data have no such split.
        ValueError
            If it has no images.
        """
        indices = np.arange(limited(evaluation.max_images, len(data.split(split))))
        if not indices.size:
            raise InputError(f"evaluate: {split} is empty, expected at least one image")

        def classified(rows: np.ndarray) -> tuple[np.ndarray, float]:
            x, labels = data.batch(split, rows)
            scores = model.scores(x)
            scores = ops_for(scores).asnumpy(scores)
            return scores.argmax(axis=1), softmax_loss(scores, labels, divisor=1.0)[0]

        of_batches = in_shares(communicator, batches(indices, recipe.training.batch_size), classified)
        predictions = np.concatenate([classes for classes, _ in of_batches])
        nats = sum(nats for _, nats in of_batches)
        labels = data.split(split).labels[indices]
        return ClassificationEvaluation(
            split,
            labels,
            predictions,
            nats / max(1, len(indices)),
            accuracy(labels, predictions),
            confusion_matrix(labels, predictions, data.num_classes),
            chosen_on(split, recipe),
        )


def _same_images(one: PixelSplit, other: PixelSplit) -> bool:
    return np.array_equal(one.labels, other.labels) and np.array_equal(one.pixels, other.pixels)
