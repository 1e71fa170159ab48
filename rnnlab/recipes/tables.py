"""The tables [model], [training], [decoding] and [evaluation] of recipes.

The keys of [model] and [training] are the arguments of the constructors that they are passed to, and files
of initial parameters. An option that is added to a constructor, with its annotation, default and docstring,
is a key of recipes.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields, replace
from typing import Annotated, Any, ClassVar, Literal, Self

from rnnlab.decoding.beam import DIVERSITY
from rnnlab.decoding.method_options import check_needs, unmet_needs
from rnnlab.errors import InputError
from rnnlab.importing import created
from rnnlab.layers.recurrent.cell import cell_for
from rnnlab.layers.recurrent.regularisation import Regularisation
from rnnlab.metrics import METRICS, Metric, TranslationMetric
from rnnlab.models import CaptioningRNN, LanguageModel, Seq2Seq, SequenceClassifier
from rnnlab.models.parts.combinations import check_combinations
from rnnlab.options import (
    Count,
    Natural,
    Normalisation,
    NotNegative,
    Positive,
    Range,
    SearchMethod,
    TokenizerName,
    accepts,
    expectation,
)
from rnnlab.recipes.derived import Table, derived_from
from rnnlab.recipes.schema import EnvPath
from rnnlab.training import Callback, SelfCritical, Solver
from rnnlab.training.callbacks import GradientStatistics, JSONLines, TensorBoard, WeightsAndBiases
from rnnlab.training.options import NOT_OPTIONS, rules_of
from rnnlab.training.registry import Registry
from rnnlab.training.self_critical import check_baseline


class _ModelTable(Table):
    """A table [model].

    Its keys are the arguments of the model's constructor, and the files of initial word vectors in ``files``.
    """

    files: ClassVar[tuple[str, ...]] = ()

    def options(self) -> dict[str, Any]:
        """The keyword arguments of the constructor."""
        return {name: value for name, value in asdict(self).items() if name not in self.files}

    def __post_init__(self) -> None:
        try:
            cell = cell_for("model", self.cell_type, "cell_type")
            check_combinations("model", self.options())
        except (ValueError, TypeError) as error:  # make it begin with the key, like all errors of tables
            raise type(error)(str(error).removeprefix("model: ")) from error
        try:
            Regularisation(**asdict(self.regularisation)).check("model", cell)
        except (ValueError, TypeError) as error:
            raise type(error)(str(error).replace("model: ", "regularisation.", 1)) from error


@derived_from(CaptioningRNN, without=("word_to_idx", "input_dim", "global_dim", "rng", "device"))
class CaptioningModelTable(_ModelTable):
    """Keyword arguments of :class:`rnnlab.models.CaptioningRNN`, and initial word vectors.

    Attributes
    ----------
    word_vectors
        File of pretrained word vectors of size wordvec_dim, of GloVe or word2vec: the initial W_embed. Words
        that it lacks keep random vectors.
    """

    word_vectors: EnvPath | None = None
    files = ("word_vectors",)


@derived_from(Seq2Seq, without=("source_word_to_idx", "word_to_idx", "rng", "device"))
class TranslationModelTable(_ModelTable):
    """Keyword arguments of :class:`rnnlab.models.Seq2Seq`, and initial word vectors.

    Attributes
    ----------
    word_vectors
        File of pretrained word vectors of size wordvec_dim, of GloVe or word2vec, for the target's words: the
        initial W_embed. Words that it lacks keep random vectors.
    source_word_vectors
        The same for the source's words, W_source.
    """

    word_vectors: EnvPath | None = None
    source_word_vectors: EnvPath | None = None
    files = ("word_vectors", "source_word_vectors")


@derived_from(LanguageModel, without=("word_to_idx", "rng", "device"))
class LanguageModelTable(_ModelTable):
    """Keyword arguments of :class:`rnnlab.models.LanguageModel`, and initial word vectors.

    Attributes
    ----------
    word_vectors
        File of pretrained word vectors of size wordvec_dim, of GloVe or word2vec: the initial W_embed. Words
        that it lacks keep random vectors.
    """

    word_vectors: EnvPath | None = None
    files = ("word_vectors",)


@derived_from(SequenceClassifier, without=("num_classes", "input_dim", "rng", "device"))
class ClassificationModelTable(_ModelTable):
    """Keyword arguments of :class:`rnnlab.models.SequenceClassifier`."""


# Arguments of the solver that the program or the command line provides.
NOT_IN_RECIPES = (*NOT_OPTIONS, "graphs", "verbose", "print_every", "progress")


@derived_from(Solver, without=NOT_IN_RECIPES)
class TrainingTable(Table):
    """Keyword arguments of :class:`rnnlab.training.Solver`, and the initial parameters.

    Attributes
    ----------
    warm_start
        A run or a checkpoint from which parameters of the same names are copied before training.
    """

    ELSEWHERE: ClassVar = {  # names that a user may expect here but that are not keys, with a hint for each
        "device": "it is the option --device of the command",
        "learning_rate": "it is optim_config.learning_rate",
        "lr": "the learning rate is optim_config.learning_rate",
        "graphs": "it is the option --graphs or --no-graphs of the command",
        "progress": "it is the option --no-progress of the command",
        "run_dir": "it is the option --out of the command",
    }

    warm_start: EnvPath | None = None

    def check(self) -> None:
        """Check the update rule, the schedules and their options, and import those of other packages.

        Raises
        ------
        ValueError, TypeError
            If there is no such rule or schedule, it has no such option, or keys are incompatible. The error
            begins with the key.
        """
        rules_of(self)


@derived_from(SelfCritical, without=("reward",))
class SelfCriticalTable(Table):
    """Keyword arguments of :class:`rnnlab.training.SelfCritical`; the reward is CIDEr-D."""

    def __post_init__(self) -> None:
        check_baseline(self.baseline, self.samples)


_WANDB_PROJECT, _EVERY = "rnnlab", 10  # the defaults


_OWN: Registry[Callback] = Registry("callbacks.own", Callback, {})


@dataclass(frozen=True)
class CallbacksTable:
    """The records that a run writes to its directory while it trains, and your own callbacks.

    Attributes
    ----------
    json_lines
        Write log.jsonl: a line for every n-th iteration and for every epoch.
    tensorboard
        Write curves for TensorBoard to the folder tensorboard; needs the extra "tensorboard".
    wandb
        Send curves to Weights & Biases; needs the extra "wandb".
    wandb_project
        The project of Weights & Biases.
    gradients
        Draw the norm and the distribution of each parameter's gradient, gradients.png.
    every
        Iterations between two records.
    own
        Your own callbacks: subclasses of rnnlab.training.Callback that are created without arguments,
        "package.module:Class" each.
    """

    json_lines: bool = False
    tensorboard: bool = False
    wandb: bool = False
    wandb_project: str = _WANDB_PROJECT
    gradients: bool = False
    every: Count = _EVERY
    own: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        for name in self.own:
            if ":" not in name:
                raise InputError(f"own has {name!r}, expected 'package.module:Class'")
        if self.wandb_project != _WANDB_PROJECT and not self.wandb:
            raise InputError(f"wandb_project is {self.wandb_project!r}, which needs wandb = true")
        if self.every != _EVERY and not (self.json_lines or self.tensorboard or self.wandb or self.gradients):
            raise InputError(
                f"every is {self.every}, which needs json_lines, tensorboard, wandb or gradients to be true"
            )

    def callbacks(self) -> list[Callback]:
        """The callbacks of these keys. Each call creates new ones, because each stage of a run has its own.

        Your own come first, so that the logs have the columns that they add to the history.

        Raises
        ------
        ImportError
            If an extra is not installed.
        ValueError, TypeError
            If a callback of your own cannot be imported, or is no such class.
        """
        made: list[Callback] = [created("callbacks.own", name, _OWN.find(name)) for name in self.own]
        if self.json_lines:
            made.append(JSONLines(every=self.every))
        if self.tensorboard:
            made.append(TensorBoard(every=self.every))
        if self.wandb:
            made.append(WeightsAndBiases(self.wandb_project, every=self.every))
        if self.gradients:
            made.append(GradientStatistics(every=self.every))
        return made


@dataclass(frozen=True)
class DecodingTable:
    """How sentences are searched for. Keys that have no effect beside the others have their defaults.

    Attributes
    ----------
    method
        The search.
    max_length
        The maximum number of words in a sentence.
    min_length
        The minimum number of words in a sentence.
    no_repeat_ngram
        No sequence of this many words occurs twice in a sentence; 0 allows all.
    forbid_unknown
        Never generate <UNK>.
    beam_size
        Beam search: partial sentences kept at each step.
    n_best
        Beam search: number of sentences for each source.
    length_penalty
        Beam search: A in the rank, log-probability / (words + 1)^A.
    normalisation
        Beam search: "power", as above, or "gnmt", log-probability / ((words + 6) / 6)^A.
    num_groups
        Beam search: number of diverse groups that the beam is divided into.
    diversity
        Beam search: penalty, in nats, for a word that an earlier group chose at the same step.
    temperature
        Sampling: below 1 likely words become more likely, above 1 less likely.
    top_k
        Sampling: draw from the k most likely words; 0 means all.
    top_p
        Sampling: draw from the most likely words that together have this probability.
    """

    method: SearchMethod = "beam"
    max_length: Count = 30
    min_length: Natural = 0
    no_repeat_ngram: Natural = 0
    forbid_unknown: bool = True
    beam_size: Count = 3
    n_best: Count = 1
    length_penalty: NotNegative = 0.0
    normalisation: Normalisation = "power"
    num_groups: Count = 1
    diversity: NotNegative = DIVERSITY
    temperature: Positive = 1.0
    top_k: Natural = 0
    top_p: Annotated[float, Range("(0, 1]")] = 1.0

    def __post_init__(self) -> None:
        if self.method == "beam" and self.n_best > self.beam_size:
            raise InputError(
                f"n_best is {self.n_best}, expected at most {self.beam_size}, beam_size: increase beam_size"
            )
        if self.method != "beam" and self.n_best > 1:
            raise InputError(f"n_best is {self.n_best}, expected 1 with method {self.method!r}")
        if self.min_length > self.max_length:
            raise InputError(
                f"min_length is {self.min_length}, expected at most {self.max_length}, max_length"
            )
        if self.num_groups < 1 or self.beam_size % self.num_groups:
            raise InputError(
                f"num_groups is {self.num_groups}, expected a divisor of {self.beam_size}, beam_size"
            )
        check_needs("", asdict(self), _defaults(self))

    def changed(self, **changes: Any) -> Self:
        """A copy with other values of some keys; other keys that have no effect then get their defaults."""
        defaults, idle = _defaults(self), unmet_needs(asdict(self) | changes)
        return replace(self, **({key: defaults[key] for key in idle} | changes))


def _defaults(table: DecodingTable) -> dict[str, Any]:
    return {each.name: each.default for each in fields(table)}


class _EvaluationTable:
    """A table [evaluation]. The key that ``limit`` names is the number of images or sentences to score."""

    limit: ClassVar[str] = "max_images"

    def __post_init__(self) -> None:
        count = getattr(self, self.limit)
        if not accepts(Count | None, count):
            raise InputError(f"{self.limit} is {count!r}, expected {expectation(Count | None)}")

    def of_first(self, count: int) -> Self:
        """The same table for the first ``count`` images or sentences."""
        return replace(self, **{self.limit: count})  # type: ignore[type-var]


@dataclass(frozen=True)
class CaptioningEvaluationTable(_EvaluationTable):
    """Which captions are scored, and how.

    Attributes
    ----------
    split
        The split that is captioned and scored after training, one of the data's.
    metrics
        Scores to compute.
    each_epoch
        Scores of the validation split after every epoch, for training.monitor.
    each_epoch_greedy
        Whether the captions for these scores are generated greedily, not as [decoding] says.
    tokenizer
        Tokenizer for the scores: "simple", or "ptb", that of the COCO evaluation, which needs Java.
    max_images
        Number of images to caption and score; all if left out.
    """

    split: str = "test"
    metrics: list[Metric] = field(default_factory=lambda: list(METRICS))
    each_epoch: list[Metric] = field(default_factory=list)
    each_epoch_greedy: bool = False
    tokenizer: TokenizerName = "simple"
    max_images: Count | None = None


@dataclass(frozen=True)
class TranslationEvaluationTable(_EvaluationTable):
    """Which translations are scored, and how. Perplexity is always computed.

    Attributes
    ----------
    split
        The split that is translated and scored after training, one of the data's.
    metrics
        Scores to compute: "BLEU" of the translations, "CS-k" for the keystrokes that completion saves.
    each_epoch
        Scores of greedy translations of the validation split after every epoch, for training.monitor.
    max_sentences
        Number of sentences to translate and score; all if left out.
    """

    limit: ClassVar[str] = "max_sentences"

    split: str = "test"
    metrics: list[TranslationMetric] = field(default_factory=lambda: ["BLEU"])
    each_epoch: list[Literal["BLEU"]] = field(default_factory=list)
    max_sentences: Count | None = None


@dataclass(frozen=True)
class LanguageEvaluationTable(_EvaluationTable):
    """Which sentences are scored. The score is their perplexity.

    Attributes
    ----------
    split
        The split that is scored after training, one of the data's.
    max_sentences
        Number of sentences to score; all if left out.
    """

    limit: ClassVar[str] = "max_sentences"

    split: str = "test"
    max_sentences: Count | None = None


@dataclass(frozen=True)
class ClassificationEvaluationTable(_EvaluationTable):
    """Which sequences are classified, and compared with their labels.

    Attributes
    ----------
    split
        The split that is classified after training.
    max_images
        Number of images to classify; all if left out.
    """

    split: Literal["train", "val", "test"] = "test"
    max_images: Count | None = None


EvaluationTable = (
    CaptioningEvaluationTable
    | TranslationEvaluationTable
    | LanguageEvaluationTable
    | ClassificationEvaluationTable
)
