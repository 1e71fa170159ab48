"""Language models of sentences and of running text: the data, the model, what it writes, its perplexity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from rnnlab.data import RunningSplit, RunningText, TextData, TextSplit, open_running_text, open_text
from rnnlab.data.split_data import batches
from rnnlab.data.text_inputs import TextInputs
from rnnlab.decoding import Ensemble, Hypothesis
from rnnlab.decoding.ensemble import Average
from rnnlab.errors import InputError
from rnnlab.metrics import Statistics, perplexity
from rnnlab.models import LanguageModel
from rnnlab.reading import PathLike
from rnnlab.recipes.data import RunningTextTable, TextTable
from rnnlab.recipes.recipe import LanguageRecipe
from rnnlab.recipes.tables import DecodingTable, LanguageEvaluationTable
from rnnlab.tasks.ensembles import Combined, Member, check_same, check_same_splits, check_same_words
from rnnlab.tasks.search import decode
from rnnlab.tasks.task import Task, chosen_on, limited
from rnnlab.training import Checkpoint
from rnnlab.training.distributed import ALONE, Communicator, by_rank_0
from rnnlab.training.validation import total_nll


@dataclass(frozen=True)
class LanguageEvaluation:
    """The perplexity of a split.

    Attributes
    ----------
    split : str
    sentences : int
        Their number; of running text, the number of lines.
    tokens : int
        The number of words and <END> that are predicted; of running text, of words and ends of lines.
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
    unit: str = "sentences"  # or "lines"

    def corpus(self) -> dict[str, float]:
        """The perplexity."""
        return {"perplexity": self.perplexity}

    def rows(self) -> list[tuple[str, str]]:
        """The table of the scores: names and numbers."""
        counts = [(self.unit, f"{self.sentences:,}"), ("tokens", f"{self.tokens:,}")]
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
            self.unit: self.sentences,
            "tokens": self.tokens,
        }


def _files(train: PathLike, val: PathLike | None, test: PathLike | None) -> dict[str, PathLike]:
    files = {"train": train, "val": val, "test": test}
    return {split: path for split, path in files.items() if path is not None}


def _open_text(train: PathLike, val: PathLike | None, test: PathLike | None, **options: Any) -> TextData:
    return open_text(_files(train, val, test), **options)


def _open_running_text(
    train: PathLike, val: PathLike | None, test: PathLike | None, **options: Any
) -> RunningText:
    return open_running_text(_files(train, val, test), **options)


class LanguageTask(Task):
    """The task of :class:`rnnlab.recipes.LanguageRecipe`."""

    recipe_type = LanguageRecipe
    verb, outputs, command = "writes sentences", "sentences", "write"
    scores_sentences = False
    openers: ClassVar = {TextTable: _open_text, RunningTextTable: _open_running_text}

    def new_model(self, recipe: LanguageRecipe, data: TextData | RunningText) -> LanguageModel:
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
        """See :meth:`Task.check_ensemble`: vocabulary, tokenizer and kind of text are the same."""
        check_same_words(members, "vocabulary", lambda inputs: inputs.vocabulary)
        check_same(members, "tokenizer", lambda inputs: inputs.tokenizer)
        check_same(members, "running text", lambda inputs: inputs.running)

    def combined(self, members: Sequence[Member], average: Average) -> Combined:
        """See :meth:`Task.combined`. The data are those of the first run."""
        check_same_splits(members, "sentences", _same_sentences)
        model = Ensemble([member.model for member in members], average=average)
        return Combined(model, members[0].inputs, members[0].data)

    def epoch_scores(
        self, recipe: LanguageRecipe, data: TextData | RunningText, communicator: Communicator = ALONE
    ) -> None:
        """See :meth:`Task.epoch_scores`: the loss only."""

    def evaluate(
        self,
        recipe: LanguageRecipe,
        data: TextData | RunningText,
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
        ValueError
            If ``evaluation.max_sentences`` is given for running text.
        """
        count = limited(evaluation.max_sentences, len(data.split(split).sentences))
        batch_size, unit = recipe.training.batch_size, "sentences"
        if isinstance(data, TextData):
            of_batches = batches(np.arange(count), batch_size)
            nats, tokens = total_nll(model, data, split, of_batches, communicator)
        else:
            unit = "lines"
            if evaluation.max_sentences is not None:
                raise InputError(
                    f"max_sentences is {evaluation.max_sentences}, expected none: {split} is a running text, "
                    "which is scored whole"
                )
            nats, tokens = _nll_of_running_text(model, data, split, batch_size, communicator)
        remarks = chosen_on(split, recipe)
        if data.inputs.tokenizer == "characters":
            remarks.append("perplexity: of a character, so not comparable with that of words")
        return LanguageEvaluation(split, count, tokens, perplexity(nats, tokens), remarks, unit)


def _nll_of_running_text(
    model: Any, data: RunningText, split: str, streams: int, communicator: Communicator
) -> tuple[float, int]:
    """The negative log-likelihood of a text in streams, and its number of tokens.

    An ensemble reads each stream token by token, so its memory does not depend on the length of streams.
    """
    if isinstance(model, Ensemble):
        return by_rank_0(communicator, lambda: model.nll(data.streams(split, streams)))
    return total_nll(model, data, split, data.epoch(split, streams), communicator)


def _same_sentences(one: TextSplit | RunningSplit, other: TextSplit | RunningSplit) -> bool:
    if isinstance(one, RunningSplit) and isinstance(other, RunningSplit):
        return np.array_equal(one.tokens, other.tokens)  # the vocabulary is the same, and a line may be long
    return one.sentences == other.sentences


def write(
    model: LanguageModel,
    inputs: TextInputs,
    prompt: str,
    options: DecodingTable,
    *,
    count: int = 1,
    rng: np.random.Generator | int = 0,
) -> list[Hypothesis]:
    """Continue a prompt by the options of a recipe's table ``[decoding]``.

    A running text has no end, so it continues for ``max_length`` words.

    Parameters
    ----------
    model : LanguageModel
    inputs : TextInputs
    prompt : str
        As :meth:`TextInputs.prompt` takes it.
    options : DecodingTable
    count : int
        The number of sentences that are drawn. A search finds ``options.n_best``.
    rng : numpy Generator or seed
        For ``method = "sample"``.
    """
    rows, forbid = count if options.method == "sample" else 1, [model.end_token] if inputs.running else []
    found = decode(model, np.repeat(inputs.prompt(prompt), rows, axis=0), options, rng=rng, forbid=forbid)
    return [each for some in found for each in some]
