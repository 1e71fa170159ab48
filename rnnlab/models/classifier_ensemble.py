"""Several classifiers as one: their distributions over the classes are averaged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rnnlab.decoding.ensemble import Average, averaged, check_average
from rnnlab.errors import InputError, InputTypeError
from rnnlab.models.classification import SequenceClassifier, most_likely
from rnnlab.ops import ops_for
from rnnlab.types import Array


class ClassifierEnsemble:
    """A classifier whose distribution is the average of its members'.

    Parameters
    ----------
    models : sequence of SequenceClassifier
        At least one. All of them read the same sequences.
    average : "probabilities" or "log_probabilities", keyword only
        What is averaged, as in :class:`rnnlab.decoding.Ensemble`.

    Raises
    ------
    ValueError
        If there is no model, their numbers of classes differ, or ``average`` is invalid.
    """

    def __init__(self, models: Sequence[SequenceClassifier], *, average: Average = "probabilities") -> None:
        if not isinstance(models, Iterable):
            raise InputTypeError(
                f"ClassifierEnsemble: models is a {type(models).__name__}, expected a list of models"
            )
        self.models, self.average = tuple(models), average
        if not self.models:
            raise InputError("ClassifierEnsemble: models is empty, expected at least one")
        for k, model in enumerate(self.models):
            if not hasattr(model, "scores"):
                found = type(model).__name__
                raise InputTypeError(f"ClassifierEnsemble: models[{k}] is a {found}, expected a classifier")
        check_average("ClassifierEnsemble", average)
        for k, model in enumerate(self.models):
            if model.num_classes != self.models[0].num_classes:
                raise InputError(
                    f"ClassifierEnsemble: models[{k}] has {model.num_classes} classes, "
                    f"expected {self.models[0].num_classes} as models[0]"
                )

    def __repr__(self) -> str:
        members = ", ".join(type(model).__name__ for model in self.models)
        return f"ClassifierEnsemble({members}; average={self.average!r})"

    def scores(self, x: Array, lengths: Array | None = None) -> Array:
        """The averaged log-probabilities (N, C) of sequences (N, T, D) of lengths (N,)."""
        scores = [model.scores(x, lengths) for model in self.models]
        return averaged([ops_for(each).log_softmax(each) for each in scores], self.average)

    def predict(self, x: Array, lengths: Array | None = None) -> Array:
        """The most likely class of each sequence, (N,) integers. ValueError if a score is NaN."""
        return most_likely("ClassifierEnsemble.predict", self.scores(x, lengths))
