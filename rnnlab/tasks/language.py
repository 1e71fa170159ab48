"""Language models: the data, the model, its sentences and its perplexity, of a recipe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from rnnlab.data import TextData, open_text
from rnnlab.data.split_data import batches
from rnnlab.data.text import TextSplit
from rnnlab.data.text_inputs import TextInputs
from rnnlab.decoding import Ensemble, Hypothesis
from rnnlab.decoding.ensemble import Average
from rnnlab.metrics import Statistics, perplexity
from rnnlab.models import LanguageModel
from rnnlab.reading import PathLike
from rnnlab.recipes.data import TextTable
from rnnlab.recipes.recipe import LanguageRecipe
from rnnlab.recipes.tables import DecodingTable, LanguageEvaluationTable
from rnnlab.tasks.ensembles import Combined, Member, check_same, check_same_splits, check_same_words
from rnnlab.tasks.search import decode
from rnnlab.tasks.task import Task, chosen_on, limited
from rnnlab.training import Checkpoint
from rnnlab.training.distributed import ALONE, Communicator
from rnnlab.training.validation import total_nll


@dataclass(frozen=True)
class LanguageEvaluation:
    """The perplexity of a split.

    Attributes
    ----------
    split : str
    sentences : int
        Their number.
    tokens : int
        The number of words and <END> that are predicted.
    perplexity : float
        A word that the vocabulary lacks counts as <UNK>.
    remarks : list of str
        Notes on the split.
    """

    split: str
    sentences: int
    tokens: int
    perplexity: float
    remarks: list[str] = field(default_factory=list)

    def corpus(self) -> dict[str, float]:
        """The perplexity."""
        return {"perplexity": self.perplexity}

    def rows(self) -> list[tuple[str, str]]:
        """The table of the scores: names and numbers."""
        counts = [("sentences", f"{self.sentences:,}"), ("tokens", f"{self.tokens:,}")]
        return [*counts, ("perplexity", f"{self.perplexity:.3f}")]

    def examples(self) -> tuple[int, int]:
        """The numbers of sentences and of tokens."""
        return self.sentences, self.tokens

    def statistics(self) -> dict[str, Statistics]:
        """None: perplexity is not a mean over sentences."""
        return {}

    def notes(self) -> list[str]:
        """The remarks."""
        return list(self.remarks)

    def report(self) -> dict[str, Any]:
        """The perplexity and the counts as JSON values."""
        return {
            "corpus": self.corpus(),
            "notes": self.notes(),
            "sentences": self.sentences,
            "tokens": self.tokens,
        }


def _open_text(train: PathLike, val: PathLike | None, test: PathLike | None, **options: Any) -> TextData:
    files = {"train": train, "val": val, "test": test}
    return open_text({split: path for split, path in files.items() if path is not None}, **options)


class LanguageTask(Task):
    """The task of :class:`rnnlab.recipes.LanguageRecipe`."""

    recipe_type = LanguageRecipe
    verb, outputs, command = "writes sentences", "sentences", "write"
    scores_sentences = False
    openers: ClassVar = {TextTable: _open_text}

    def new_model(self, recipe: LanguageRecipe, data: TextData) -> LanguageModel:
        """See :meth:`Task.new_model`."""
        return LanguageModel(
            data.vocabulary.word_to_idx,
            **recipe.model.options(),
            rng=np.random.default_rng(recipe.training.seed),
        )

    def inputs(self, recipe: LanguageRecipe, checkpoint: Checkpoint) -> TextInputs:
        """See :meth:`Task.inputs`."""
        return TextInputs.from_saved(checkpoint.vocabulary or [], checkpoint.preprocessing)

    def check_ensemble(self, members: Sequence[Member]) -> None:
        """See :meth:`Task.check_ensemble`: the vocabulary and the tokenizer are the same."""
        check_same_words(members, "vocabulary", lambda inputs: inputs.vocabulary)
        check_same(members, "tokenizer", lambda inputs: inputs.tokenizer)

    def combined(self, members: Sequence[Member], average: Average) -> Combined:
        """See :meth:`Task.combined`. The data are those of the first run."""
        check_same_splits(members, "sentences", _same_sentences)
        model = Ensemble([member.model for member in members], average=average)
        return Combined(model, members[0].inputs, members[0].data)

    def epoch_scores(
        self, recipe: LanguageRecipe, data: TextData, communicator: Communicator = ALONE
    ) -> None:
        """See :meth:`Task.epoch_scores`: the loss only."""

    def evaluate(
        self,
        recipe: LanguageRecipe,
        data: TextData,
        model: LanguageModel,
        split: str,
        *,
        evaluation: LanguageEvaluationTable,
        communicator: Communicator = ALONE,
    ) -> LanguageEvaluation:
        """The perplexity of a split.

        Raises
        ------
        KeyError
            If the data have no such split.
        """
        count = limited(evaluation.max_sentences, len(data.split(split)))
        of_batches = batches(np.arange(count), recipe.training.batch_size)
        nats, tokens = total_nll(model, data, split, of_batches, communicator)
        remarks = chosen_on(split, recipe)
        if data.inputs.tokenizer == "characters":
            remarks.append("perplexity: of a character, so not comparable with that of words")
        return LanguageEvaluation(split, count, tokens, perplexity(nats, tokens), remarks)


def _same_sentences(one: TextSplit, other: TextSplit) -> bool:
    return one.sentences == other.sentences


def write(
    model: LanguageModel,
    prompt: np.ndarray,
    options: DecodingTable,
    *,
    count: int = 1,
    rng: np.random.Generator | int = 0,
) -> list[Hypothesis]:
    """Continue a prompt by the options of a recipe's table ``[decoding]``.

    Parameters
    ----------
    model : LanguageModel
    prompt : (1, P) integers
        <START> and any words.
    options : DecodingTable
    count : int
        The number of sentences that are drawn. A search finds ``options.n_best``.
    rng : numpy Generator or seed
        For ``method = "sample"``.
    """
    rows = count if options.method == "sample" else 1
    found = decode(model, np.repeat(prompt, rows, axis=0), options, rng=rng)
    return [each for some in found for each in some]
