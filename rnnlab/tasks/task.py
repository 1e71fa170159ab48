"""The interface of tasks, and of their evaluations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, ClassVar, Protocol

import numpy as np

from rnnlab.data import WordCoverage, load_word_vectors
from rnnlab.decoding.ensemble import Average
from rnnlab.errors import MissingDataError
from rnnlab.metrics import Statistics
from rnnlab.recipes.tables import SelfCriticalTable
from rnnlab.tasks.ensembles import Combined, Member
from rnnlab.training import Checkpoint, SelfCritical
from rnnlab.training.distributed import ALONE, Communicator


class Evaluation(Protocol):
    """The results of a model on a split."""

    @property
    def split(self) -> str:
        """The split."""
        ...

    def corpus(self) -> dict[str, float]:
        """All scores of the split by name."""
        ...

    def rows(self) -> list[tuple[str, str]]:
        """The table of the scores: names and numbers. The first is the number of images or sentences."""
        ...

    def examples(self) -> Any:
        """What is scored and by which rules: equal for two models whose scores may be compared in pairs."""
        ...

    def statistics(self) -> dict[str, Statistics]:
        """The statistics of scores by name, for :func:`~rnnlab.metrics.paired_bootstrap`."""
        ...

    def notes(self) -> list[str]:
        """Remarks on the scores for the reader, such as the tokenizer."""
        ...

    def report(self) -> dict[str, Any]:
        """The scores and all results as JSON values."""
        ...


class Task(ABC):
    """One kind of recipe: its data, its model and its scores.

    Attributes
    ----------
    recipe_type : type
        The class of its recipes.
    verb, outputs, command : str
        For messages: what a model of this task does ("captions", "translates"), what it writes ("captions",
        "translations"), and the ``rnnlab`` command for it.
    metrics : tuple of str
        The scores that ``evaluation.metrics`` of a recipe chooses from; empty if there is no choice.
    scores_sentences : bool
        Whether its models write a sentence for each source, which :meth:`evaluate` scores. The table
        [decoding] of a recipe says how they are searched for.
    """

    recipe_type: ClassVar[type[Any]]
    verb: ClassVar[str]
    outputs: ClassVar[str]
    command: ClassVar[str]
    metrics: ClassVar[tuple[str, ...]] = ()
    scores_sentences: ClassVar[bool] = True

    # The function that opens the data of each class of table [data]. Its arguments are the keys of the table,
    # but for those of ``not_of_opener``.
    openers: ClassVar[Mapping[type[Any], Callable[..., Any]]]
    not_of_opener: ClassVar[tuple[str, ...]] = ("kind",)

    def open_data(self, table: Any) -> Any:
        """The data that a recipe's table [data] describes."""
        keys = {key: value for key, value in asdict(table).items() if key not in self.not_of_opener}
        return self.openers[type(table)](**keys)

    def one_sentence_each(self, data: Any, split: str) -> np.ndarray:
        """The indices of one sentence of each image or source of a split, (N,)."""
        return np.arange(len(data.split(split)))

    @abstractmethod
    def new_model(self, recipe: Any, data: Any) -> Any:
        """A model as the recipe describes it, with parameters drawn from the recipe's seed.

        Raises
        ------
        ValueError
            If the model does not fit the data. The message names the keys of the recipe.
        """

    def load_word_vectors(self, recipe: Any, model: Any) -> list[WordCoverage]:
        """Set the word vectors of a new model to those of the recipe's files, if it has any.

        Raises
        ------
        OSError, ValueError
            As :func:`rnnlab.data.load_word_vectors`.
        """
        files = {key: getattr(recipe.model, key) for key in recipe.model.files}
        return [
            load_word_vectors(path, model, source=key == "source_word_vectors")
            for key, path in files.items()
            if path is not None
        ]

    def training_data(self, recipe: Any, data: Any) -> Any:
        """The data as the solver reads them: by default the data themselves."""
        return data

    def check_scorable(self, recipe: Any, data: Any) -> None:
        """Check, before training, that the recipe's scores can be computed from the data.

        Raises
        ------
        MissingDataError
            If they lack the split of the final scores.
        ValueError
            If a split has nothing to score. The message names it.
        """
        split = recipe.evaluation.split
        if split not in data.splits:
            raise MissingDataError(
                f"evaluation.split is {split!r}, and {data.name} has the splits {', '.join(data.splits)}: "
                "set evaluation.split to one of them (scores of val, which chooses the epoch, are not test "
                "scores)"
            )

    @abstractmethod
    def inputs(self, recipe: Any, checkpoint: Checkpoint) -> Any:
        """The preprocessing of new inputs for a trained model, from its checkpoint only."""

    @abstractmethod
    def check_ensemble(self, members: Sequence[Member]) -> None:
        """Compare the inputs that the checkpoints of runs describe, before data are opened.

        Raises
        ------
        ValueError
            If models cannot form an ensemble. The message names two runs and their difference.
        """

    @abstractmethod
    def combined(self, members: Sequence[Member], average: Average) -> Combined:
        """Two or more runs, which :meth:`check_ensemble` has checked, as one model.

        Raises
        ------
        ValueError
            If one ensemble cannot read their data. The message names two runs and their difference.
        """

    @abstractmethod
    def epoch_scores(
        self, recipe: Any, data: Any, communicator: Communicator = ALONE
    ) -> Callable[[Any], dict[str, float]] | None:
        """The function that the solver calls with the model after every epoch; None for the loss only.

        The ranks of the communicator share its work.

        Raises
        ------
        ImportError, JavaError
            If the scores need a package or Java that is not installed. It is raised before training.
        """

    def self_critical(self, data: Any, options: SelfCriticalTable) -> tuple[Any, SelfCritical]:
        """The data and the objective of self-critical training.

        It is not abstract, because only captioning has such an objective: the recipes of the other tasks
        refuse the table ``self_critical`` of a stage.

        Raises
        ------
        ValueError
            If the data have no references.
        """
        raise NotImplementedError(f"{type(self).__name__} has no self-critical training")

    @abstractmethod
    def evaluate(self, *arguments: Any, **options: Any) -> Evaluation:
        """Score a model on a split: ``evaluate(recipe, data, model, split, *, evaluation, **options)``.

        Parameters
        ----------
        recipe : a recipe of the task
        data, model
            Those of :meth:`open_data` and :meth:`new_model`, or of :meth:`combined`.
        split : str
        evaluation : EvaluationTable of the task's kind
        **options
            ``decoding``, a DecodingTable, if the task scores sentences. ``communicator`` holds the ranks
            that share the work; all of them return the same. A task may have further options.
        """


def chosen_on(split: str, recipe: Any) -> list[str]:
    """The note on scores of the split on which the epoch was chosen, if it was chosen at all."""
    if split != "val" or not recipe.stages()[-1].training.restore_best:
        return []
    return ["the best epoch was chosen on val: publish the scores of another split, such as test"]


def limited(wanted: int | None, count: int) -> int:
    """The number of examples to score: ``wanted``, at most ``count``; all if it is None."""
    return count if wanted is None else min(wanted, count)
