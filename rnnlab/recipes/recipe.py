"""Recipes: TOML files that describe an experiment, and the schema that they follow.

    [data]        what is trained on                          -> rnnlab.data
    [model]       options of the model                        -> rnnlab.models
    [training]    options of the solver                       -> rnnlab.training.Solver
    [[stage]]     what differs in a stage, if there are any   -> rnnlab.recipes.stages
    [decoding]    how sentences are searched for              -> rnnlab.decoding
    [evaluation]  what is scored, and how                     -> rnnlab.metrics

The ``kind`` of the data says what kind of recipe it is: :class:`Config` for captions of images,
:class:`TranslationConfig` for sentence pairs, :class:`ClassificationConfig` for labelled sequences, which has
no [decoding]. Each has its own tables [data], of :mod:`rnnlab.recipes.data`, [model] and [evaluation]. The
fields are the keys, their annotations are what is checked, and :mod:`rnnlab.recipes.schema` checks it.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args, get_type_hints

from rnnlab.metrics import METRICS, Metric
from rnnlab.recipes.data import (
    CocoData,
    CourseData,
    DigitsTable,
    HabeasTable,
    KarpathyData,
    MnistTable,
    ParallelTable,
    ShapesData,
)
from rnnlab.recipes.overrides import check_reach, with_overrides
from rnnlab.recipes.schema import (
    ConfigError,
    Count,
    Fraction,
    Interval,
    Natural,
    NotNegative,
    Place,
    Positive,
    from_table,
    to_table,
)
from rnnlab.recipes.stages import Stage, StageConfig, stages_of
from rnnlab.recipes.training import TrainingConfig


@dataclass(frozen=True)
class RegularisationConfig:
    """Noise in a recurrence, :class:`rnnlab.layers.Regularisation`."""

    zoneout_h: Fraction = 0.0  # probability that a unit of the hidden state stays as it was,
    zoneout_c: Fraction = 0.0  # or one of an LSTM's cell state
    recurrent_dropout: Fraction = 0.0  # probability of dropping a unit
    # of what the recurrent products read, one mask a sequence; or of what is added to the state, one a step
    recurrent_dropout_on: Literal["state", "candidate"] = "state"
    weight_dropout: Fraction = 0.0  # probability of dropping a recurrent weight, one mask a batch


@dataclass(frozen=True)
class ModelConfig:
    """Keyword arguments of :class:`rnnlab.models.CaptioningRNN`."""

    cell_type: Literal["rnn", "lstm", "gru", "simplified_gru"] = "lstm"
    # The image enters as the initial state, before the first word, beside every word, or into layer 2 of 2.
    image_input: Literal["initial_state", "first_input", "every_step", "second_layer"] = "initial_state"
    wordvec_dim: Count = 256  # numbers in a word vector
    hidden_dim: Count = 512  # units of a recurrent layer
    state_activation: Literal["none", "tanh"] = "none"  # of the initial state, a projection of the image
    project_cell: bool = False  # an LSTM's cell state starts at a projection of its own, not at zero
    feature_dropout: Fraction = 0.0  # probability of dropping a feature of the image,
    word_dropout: Fraction = 0.0  # a number of a word vector,
    output_dropout: Fraction = 0.0  # a hidden unit on its way to the scores
    # Attend to the image's regions, with scores of this kind; the data's features are then a grid of vectors.
    attention: Literal["additive", "dot", "bilinear"] | None = None
    attention_dim: Count | None = None  # units of additive scores; hidden_dim if left out
    selector: bool = False  # a gate scales what the attention reads
    target_attention: bool = False  # attend to the decoder's own past as well
    output: Literal["linear", "deep"] = "linear"  # scores from the hidden state; or from context and word too
    doubly_stochastic: NotNegative = 0.0  # weight of the loss: look everywhere
    reconstruction: NotNegative = 0.0  # weight of ARNet's loss: a hidden state tells the one before it
    # Units of ARNet; hidden_dim if left out. Given, there is an ARNet even where its weight is 0.
    reconstructor_dim: Count | None = None
    detach_target: bool = False  # what ARNet reconstructs gets no gradient from it
    label_smoothing: Fraction = 0.0  # share of a token's probability that is spread over all words
    loss_average: Literal["batch", "token"] = (
        "batch"  # a batch's summed loss is over its captions or its tokens
    )
    # Weights from N(0, 1) / sqrt(fan-in) and word vectors from N(0, 1) / 100, or all from U(+-init_scale).
    initialisation: Literal["course", "uniform"] = "course"
    init_scale: Positive = 0.08
    regularisation: RegularisationConfig = field(default_factory=RegularisationConfig)
    dtype: Literal["float32", "float64"] = "float32"


@dataclass(frozen=True)
class Seq2SeqConfig:
    """Keyword arguments of :class:`rnnlab.models.Seq2Seq`."""

    cell_type: Literal["rnn", "lstm", "gru", "simplified_gru"] = "gru"  # of encoder and decoder
    wordvec_dim: Count = 256  # numbers in a word vector, of the source and of the target
    hidden_dim: Count = 512  # units of the decoder
    encoder_dim: Count | None = None  # units of each direction of the encoder; hidden_dim if left out
    num_layers: Count = 1  # of the encoder
    bidirectional: bool = True  # whether the encoder reads in both directions
    # Scores of the attention to the source; "none" leaves only the initial state between encoder and decoder.
    attention: Literal["additive", "dot", "bilinear", "none"] = "additive"
    attention_dim: Count | None = None  # units of additive scores; hidden_dim if left out
    target_attention: bool = False  # attend to the decoder's own past as well
    output: Literal["deep", "linear"] = "deep"  # scores from state, contexts and word, or from the state
    word_dropout: Fraction = 0.0  # probability of dropping a number of a word vector,
    layer_dropout: Fraction = 0.0  # a unit between two layers of the encoder,
    output_dropout: Fraction = 0.0  # a unit of what is scored
    reconstruction: NotNegative = 0.0  # weight of ARNet's loss: a hidden state tells the one before it
    # Units of ARNet; hidden_dim if left out. Given, there is an ARNet even where its weight is 0.
    reconstructor_dim: Count | None = None
    encoder_reconstruction: NotNegative = 0.0  # the same of the encoder's top layer, in each direction
    encoder_reconstructor_dim: Count | None = None  # encoder_dim if left out
    detach_target: bool = False  # what ARNet reconstructs gets no gradient from it
    label_smoothing: Fraction = 0.0  # share of a token's probability that is spread over all words
    loss_average: Literal["batch", "token"] = "token"  # a batch's summed loss is over its pairs or its tokens
    initialisation: Literal["course", "uniform"] = "course"
    init_scale: Positive = 0.08
    regularisation: RegularisationConfig = field(default_factory=RegularisationConfig)
    dtype: Literal["float32", "float64"] = "float32"


@dataclass(frozen=True)
class ClassifierConfig:
    """Keyword arguments of :class:`rnnlab.models.SequenceClassifier`."""

    cell_type: Literal["rnn", "lstm", "gru", "simplified_gru"] = "lstm"
    hidden_dim: Count = 128  # units of a recurrent layer
    num_layers: Count = 1
    readout: Literal["last", "mean"] = "last"  # classify the last state, or the mean of all
    output_dropout: Fraction = 0.0  # probability of dropping a unit of what is classified
    forget_bias: float = 0.0  # where the biases of an LSTM's forget gates start
    label_smoothing: Fraction = 0.0  # share of a class's probability that is spread over all classes
    reconstruction: NotNegative = 0.0  # weight of ARNet's loss: a hidden state tells the one before it
    # Units of ARNet; hidden_dim if left out. Given, there is an ARNet even where its weight is 0.
    reconstructor_dim: Count | None = None
    detach_target: bool = False  # what ARNet reconstructs gets no gradient from it
    initialisation: Literal["course", "uniform"] = "course"
    init_scale: Positive = 0.08
    regularisation: RegularisationConfig = field(default_factory=RegularisationConfig)
    dtype: Literal["float32", "float64"] = "float32"


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
    no_repeat_ngram: Natural = 0  # so many words in a row come no second time; 0 lets them
    forbid_unknown: bool = True  # never write <UNK>
    # Of beam search:
    beam_size: Count = 3
    n_best: Count = 1  # sentences for each source
    length_penalty: NotNegative = 0.0  # A: rank by log-probability / (words + 1)^A,
    normalisation: Literal["power", "gnmt"] = "power"  # or, with gnmt, / ((words + 6) / 6)^A
    num_groups: Count = 1  # the beam is divided into so many diverse groups
    diversity: NotNegative = 0.5  # what earlier groups chose has so much less log-probability, in nats
    # Of sampling:
    temperature: Positive = 1.0  # below 1 likely words gain, above 1 the others
    top_k: Natural = 0  # draw from the k likeliest words; 0 is all
    top_p: Annotated[float, Interval("(0, 1]")] = 1.0  # draw from the likeliest of so much probability

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

    split: Literal["train", "val", "test"] = "val"
    metrics: list[Metric] = field(default_factory=lambda: list(METRICS))
    each_epoch: list[Metric] = field(default_factory=list)  # scored on the validation split after every epoch
    tokenizer: Literal["simple", "ptb"] = "simple"  # ptb is the COCO evaluation's, and needs Java
    max_images: Count | None = None  # caption and score only the first so many


@dataclass(frozen=True)
class TranslationEvaluationConfig:
    """Which translations are scored, by BLEU and perplexity."""

    split: str = "val"  # one of the data's
    each_epoch: list[Literal["BLEU"]] = field(default_factory=list)  # of greedy translations of ``val``
    max_sentences: Count | None = None  # translate and score only the first so many


@dataclass(frozen=True)
class ClassificationEvaluationConfig:
    """Which sequences are classified, and compared with their labels."""

    split: Literal["train", "val", "test"] = "val"
    max_images: Count | None = None  # only the first so many


class _Tables:
    """What recipes of all kinds can do."""

    training: TrainingConfig
    stage: list[StageConfig]

    def stages(self) -> list[Stage]:
        """The stages of the training in their order; one if the recipe has no tables [[stage]]."""
        return stages_of(self.training, self.stage)

    def to_dict(self) -> dict[str, Any]:
        """Tables that JSON can hold, with every key; paths as they were written."""
        return to_table(self)

    @classmethod
    def from_dict(
        cls, tables: Mapping[str, Any], source: str = "config", overrides: Sequence[str] = ()
    ) -> Self:
        """The inverse of :meth:`to_dict`; see :func:`load_config`."""
        tables, keys = with_overrides(tables, overrides)
        return from_table(cls, tables, Place(source, overrides=keys))


@dataclass(frozen=True)
class Config(_Tables):
    """A recipe for captions of images."""

    data: ShapesData | CourseData | KarpathyData | CocoData
    model: ModelConfig = field(default_factory=ModelConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    stage: list[StageConfig] = field(default_factory=list)
    decoding: DecodingConfig = field(default_factory=DecodingConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)

    def __post_init__(self) -> None:
        scores = [score for metric in self.evaluation.each_epoch for score in METRICS[metric]]
        _check_monitors(self, [*_OF_SENTENCES, *scores], _MORE)


@dataclass(frozen=True)
class TranslationConfig(_Tables):
    """A recipe for sentences from sentences: another language's, or comments of code."""

    data: ParallelTable | HabeasTable
    model: Seq2SeqConfig = field(default_factory=Seq2SeqConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    stage: list[StageConfig] = field(default_factory=list)
    decoding: DecodingConfig = field(default_factory=DecodingConfig)
    evaluation: TranslationEvaluationConfig = field(default_factory=TranslationEvaluationConfig)

    def __post_init__(self) -> None:
        _check_monitors(self, [*_OF_SENTENCES, *self.evaluation.each_epoch], _MORE)


@dataclass(frozen=True)
class ClassificationConfig(_Tables):
    """A recipe for classes of sequences, such as the pixels of images."""

    data: MnistTable | DigitsTable
    model: ClassifierConfig = field(default_factory=ClassifierConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    stage: list[StageConfig] = field(default_factory=list)
    evaluation: ClassificationEvaluationConfig = field(default_factory=ClassificationEvaluationConfig)

    def __post_init__(self) -> None:
        _check_monitors(self, ["val_loss", "val_accuracy"])


Recipe = Config | TranslationConfig | ClassificationConfig

_RECIPES: tuple[type[Recipe], ...] = (Config, TranslationConfig, ClassificationConfig)

# The metrics of every epoch of recipes for sentences, and how there are more.
_OF_SENTENCES = ("val_loss", "val_perplexity")
_MORE = "; evaluation.each_epoch adds scores"


def recipe_from_dict(
    tables: Mapping[str, Any], source: str = "config", overrides: Sequence[str] = ()
) -> Recipe:
    """The recipe that tables are of, by their ``data.kind``; the inverse of ``to_dict``."""
    overridden, keys = with_overrides(tables, overrides)
    data = overridden.get("data")
    kinds = {kind: recipe for recipe in _RECIPES for kind in _kinds(recipe)}
    kind = data.get("kind") if isinstance(data, Mapping) else next(iter(kinds))
    if not isinstance(kind, str) or kind not in kinds:
        found = "missing" if kind is None else repr(kind)
        place = Place(source, overrides=keys) / "data" / "kind"
        raise ConfigError(f"{place} is {found}, expected one of {', '.join(map(repr, kinds))}")
    check_reach(keys, overridden.get("stage"))
    return from_table(kinds[kind], overridden, Place(source, overrides=keys))


def _kinds(recipe: type[Recipe]) -> list[str]:
    """The kinds of data that are of this kind of recipe."""
    return [get_args(get_type_hints(table)["kind"])[0] for table in get_args(get_type_hints(recipe)["data"])]


def _check_monitors(recipe: Any, metrics: Sequence[str], hint: str = "") -> None:
    for stage in recipe.stages():
        if stage.training.monitor not in metrics:
            table = f"stage.{stage.number}" if recipe.stage else "training"
            raise ValueError(
                f"{table}.monitor is {stage.training.monitor!r}, expected one of {', '.join(metrics)}{hint}"
            )


def load_config(path: str | os.PathLike[str], overrides: Sequence[str] = ()) -> Recipe:
    """Read a recipe.

    Parameters
    ----------
    path : path
        A TOML file.
    overrides : sequence of str
        ``key.sub=value`` each. The value is a TOML literal, or a string without its quotation marks.

    Raises
    ------
    OSError
        If the file cannot be read.
    ConfigError
        If it is not TOML, or a key is unknown or missing, or a value is not what the schema expects. The
        message names the file (or ``--set``), the key, what was found and what was expected.
    """
    try:
        tables = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not a TOML file: {error}") from error
    return recipe_from_dict(tables, str(path), overrides)
