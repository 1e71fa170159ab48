"""The tables [model], [training], [decoding] and [evaluation] of recipes.

The keys of [model] and [training] are the arguments of the constructors that they are passed to. Add an
option there, with its annotation, default and docstring, and recipes have it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from rnnlab.metrics import METRICS, Metric
from rnnlab.models import CaptioningRNN, Seq2Seq, SequenceClassifier
from rnnlab.models.parts.cells import cell_for
from rnnlab.options import Count, Natural, NotNegative, Positive, Range
from rnnlab.recipes.derived import Table, derived_from
from rnnlab.recipes.schema import EnvPath
from rnnlab.training import Solver
from rnnlab.training.optim import make_update_rule
from rnnlab.training.sampling_schedules import make_sampling_schedule
from rnnlab.training.schedules import make_schedule


class _ModelTable(Table):
    """A table [model]."""

    def __post_init__(self) -> None:
        cell_for(self.cell_type)


@derived_from(CaptioningRNN, without=("word_to_idx", "input_dim", "global_dim", "rng", "device"))
class ModelConfig(_ModelTable):
    """Keyword arguments of :class:`rnnlab.models.CaptioningRNN`."""


@derived_from(Seq2Seq, without=("source_word_to_idx", "word_to_idx", "rng", "device"))
class Seq2SeqConfig(_ModelTable):
    """Keyword arguments of :class:`rnnlab.models.Seq2Seq`."""


@derived_from(SequenceClassifier, without=("num_classes", "input_dim", "rng", "device"))
class ClassifierConfig(_ModelTable):
    """Keyword arguments of :class:`rnnlab.models.SequenceClassifier`."""


# Arguments of the solver that the program or the command line provides.
NOT_IN_RECIPES = (
    "model",
    "data",
    "evaluate",
    "config",
    "device",
    "graphs",
    "run_dir",
    "verbose",
    "print_every",
    "progress",
)


@derived_from(Solver, without=(*NOT_IN_RECIPES, "trains"))
class TrainingConfig(Table):
    """Keyword arguments of :class:`rnnlab.training.Solver`, and where the parameters start."""

    warm_start: EnvPath | None = field(
        default=None,
        metadata={
            "help": "A run or a checkpoint; the parameters of the same names are copied from it at first."
        },
    )

    def __post_init__(self) -> None:
        make_update_rule(self.update_rule, self.optim_config)
        make_schedule(self.schedule)
        if self.scheduled_sampling is not None:
            make_sampling_schedule(self.scheduled_sampling)


# The keys of [decoding] that only one method has, named as the arguments of its function.
SEARCH_KEYS = {
    "greedy": (),
    "beam": ("beam_size", "n_best", "length_penalty", "normalisation", "num_groups", "diversity"),
    "sample": ("temperature", "top_k", "top_p"),
}


@dataclass(frozen=True)
class DecodingConfig:
    """How sentences are searched for."""

    method: Literal["greedy", "beam", "sample"] = "beam"
    max_length: Count = 30  # the most words in a sentence,
    min_length: Natural = 0  # and the fewest
    no_repeat_ngram: Natural = 0  # no sequence of this many words occurs twice; 0 allows all
    forbid_unknown: bool = True  # never write <UNK>
    # Of beam search:
    beam_size: Count = 3
    n_best: Count = 1  # sentences for each source
    length_penalty: NotNegative = 0.0  # A: rank by log-probability / (words + 1)^A,
    normalisation: Literal["power", "gnmt"] = "power"  # or, with gnmt, / ((words + 6) / 6)^A
    num_groups: Count = 1  # diverse groups that the beam is divided into
    diversity: NotNegative = 0.5  # penalty, in nats, of a word that an earlier group chose at this step
    # Of sampling:
    temperature: Positive = 1.0  # below 1 likely words become likelier, above 1 less likely
    top_k: Natural = 0  # draw from the k likeliest words; 0 is all
    top_p: Annotated[float, Range("(0, 1]")] = 1.0  # draw from the likeliest words of this probability

    def __post_init__(self) -> None:
        most = self.beam_size if self.method == "beam" else 1
        if self.n_best > most:
            raise ValueError(f"n_best is {self.n_best}, but {self.method} search finds at most {most}")
        if self.min_length > self.max_length:
            raise ValueError(
                f"min_length is {self.min_length}, expected at most {self.max_length}, max_length"
            )
        if self.beam_size % self.num_groups:
            raise ValueError(
                f"num_groups is {self.num_groups}, expected a divisor of {self.beam_size}, beam_size"
            )


@dataclass(frozen=True)
class EvaluationConfig:
    """Which captions are scored, and how."""

    split: Literal["train", "val", "test"] = "test"
    metrics: list[Metric] = field(default_factory=lambda: list(METRICS))
    each_epoch: list[Metric] = field(default_factory=list)  # scored on the validation split after every epoch
    tokenizer: Literal["simple", "ptb"] = "simple"  # ptb is the COCO evaluation's, and needs Java
    max_images: Count | None = None  # caption and score only the first so many


@dataclass(frozen=True)
class TranslationEvaluationConfig:
    """Which translations are scored, by BLEU and perplexity."""

    split: str = "test"  # one of the data's
    each_epoch: list[Literal["BLEU"]] = field(default_factory=list)  # of greedy translations of ``val``
    max_sentences: Count | None = None  # translate and score only the first so many


@dataclass(frozen=True)
class ClassificationEvaluationConfig:
    """Which sequences are classified, and compared with their labels."""

    split: Literal["train", "val", "test"] = "test"
    max_images: Count | None = None  # only the first so many
