"""Recipes: TOML files that describe an experiment.

    [data]        the data                                    -> rnnlab.data
    [model]       options of the model                        -> rnnlab.models
    [training]    options of the solver                       -> rnnlab.training.Solver
    [[stage]]     what differs in a stage, if there are any   -> rnnlab.recipes.stages
    [callbacks]   what is recorded while it trains            -> rnnlab.training.callbacks
    [decoding]    how sentences are searched for              -> rnnlab.decoding
    [evaluation]  what is scored, and how                     -> rnnlab.metrics

The ``kind`` of the data decides the kind of recipe: :class:`CaptioningRecipe` for captions of images,
:class:`TranslationRecipe` for sentence pairs, :class:`LanguageRecipe` for text alone,
:class:`ClassificationRecipe` for labelled sequences, which has no [decoding]. :mod:`rnnlab.recipes.data` has
their tables [data], :mod:`rnnlab.recipes.tables` the others; the fields of these dataclasses are the keys,
and :mod:`rnnlab.recipes.schema` checks them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, get_args

from rnnlab.data.subwords import SUBWORDS
from rnnlab.errors import InputError
from rnnlab.metrics import METRICS
from rnnlab.models.parts.combinations import has_dropout
from rnnlab.options import annotations_of
from rnnlab.recipes.data import (
    CocoTable,
    CourseTable,
    DigitsTable,
    HabeasTable,
    KarpathyTable,
    MnistTable,
    ParallelTable,
    RunningTextTable,
    ShapesTable,
    TextTable,
)
from rnnlab.recipes.overrides import with_overrides
from rnnlab.recipes.schema import Place, RecipeError, from_table, kind_of, to_table
from rnnlab.recipes.shipped import find
from rnnlab.recipes.stages import Stage, StageTable, check_losses, check_reach, stages_of
from rnnlab.recipes.tables import (
    CallbacksTable,
    CaptioningEvaluationTable,
    CaptioningModelTable,
    ClassificationEvaluationTable,
    ClassificationModelTable,
    DecodingTable,
    LanguageEvaluationTable,
    LanguageModelTable,
    TrainingTable,
    TranslationEvaluationTable,
    TranslationModelTable,
)
from rnnlab.recipes.toml_text import check_depth, read_toml
from rnnlab.training.validation import DEFAULT_METRICS

__all__ = [
    "RECIPES",
    "CaptioningRecipe",
    "ClassificationRecipe",
    "LanguageRecipe",
    "Recipe",
    "RecipeError",
    "TranslationRecipe",
    "data_tables",
    "kinds_of",
    "load_recipe",
    "recipe_from_dict",
    "recipes_by_kind",
]


class _Tables:
    """The parts that all kinds of recipes have."""

    # Keys of [training] and [[stage]] that this kind does not have, and the models that they are for.
    REFUSED: ClassVar[Mapping[str, str]] = {}
    training: TrainingTable
    stage: list[StageTable]
    callbacks: CallbacksTable

    def stages(self) -> list[Stage]:
        """The stages of the training in their order; one if the recipe has no tables [[stage]]."""
        return stages_of(self.training, self.stage)

    def trainings(self) -> dict[str, TrainingTable]:
        """The training of each stage by its table: "training", or "stage.1", "stage.2" and so on."""
        return {
            f"stage.{stage.number}" if self.stage else "training": stage.training for stage in self.stages()
        }

    def check_training(self) -> None:
        """Check the update rules and schedules, which only training needs; see :meth:`TrainingTable.check`.

        Raises
        ------
        ValueError, TypeError
            As :meth:`TrainingTable.check`; the message begins with the table, such as stage.2, and the key.
        """
        for name, training in ({"training": self.training} | self.trainings()).items():
            try:
                training.check()
            except (ValueError, TypeError) as error:
                raise type(error)(f"{name}.{error}") from error

    def to_dict(self) -> dict[str, Any]:
        """Tables that JSON can hold, with every key and with paths as they were written."""
        return to_table(self)


@dataclass(frozen=True)
class CaptioningRecipe(_Tables):
    """A recipe for captions of images."""

    data: ShapesTable | CourseTable | KarpathyTable | CocoTable
    model: CaptioningModelTable = field(default_factory=CaptioningModelTable)
    training: TrainingTable = field(default_factory=TrainingTable)
    stage: list[StageTable] = field(default_factory=list)
    callbacks: CallbacksTable = field(default_factory=CallbacksTable)
    decoding: DecodingTable = field(default_factory=DecodingTable)
    evaluation: CaptioningEvaluationTable = field(default_factory=CaptioningEvaluationTable)

    def __post_init__(self) -> None:
        scores = [score for metric in self.evaluation.each_epoch for score in METRICS[metric]]
        _check_monitors(self, [*DEFAULT_METRICS, *scores], _MORE)
        if self.evaluation.each_epoch_greedy and not scores:
            raise InputError(
                "evaluation.each_epoch_greedy is True, which needs scores in evaluation.each_epoch"
            )
        _check_word_vectors(self)
        _check_features(self)
        check_losses(self.stages(), self.model.options())
        for stage in self.stages():
            if stage.self_critical is None:
                continue
            if stage.training.monitor in DEFAULT_METRICS:
                raise InputError(
                    f"stage.{stage.number}.monitor is {stage.training.monitor!r}, expected a score such as "
                    "CIDEr with self_critical: the likelihood falls while the reward rises" + _MORE
                )
            if stage.self_critical.dropout and not has_dropout(self.model.options()):
                raise InputError(
                    f"stage.{stage.number}.self_critical.dropout is True, which needs dropout or zoneout in "
                    "[model]"
                )


@dataclass(frozen=True)
class TranslationRecipe(_Tables):
    """A recipe for sentences from sentences: another language's, or comments of code."""

    REFUSED: ClassVar = {"self_critical": "models that caption images"}
    data: ParallelTable | HabeasTable
    model: TranslationModelTable = field(default_factory=TranslationModelTable)
    training: TrainingTable = field(default_factory=TrainingTable)
    stage: list[StageTable] = field(default_factory=list)
    callbacks: CallbacksTable = field(default_factory=CallbacksTable)
    decoding: DecodingTable = field(default_factory=DecodingTable)
    evaluation: TranslationEvaluationTable = field(default_factory=TranslationEvaluationTable)

    def __post_init__(self) -> None:
        _check_monitors(self, [*DEFAULT_METRICS, *self.evaluation.each_epoch], _MORE)
        check_translation_metrics(self.data, self.evaluation)
        _check_word_vectors(self)
        check_losses(self.stages(), self.model.options())
        _check_refused(self)


@dataclass(frozen=True)
class LanguageRecipe(_Tables):
    """A recipe for a language model of sentences, or of running text."""

    REFUSED: ClassVar = TranslationRecipe.REFUSED
    data: TextTable | RunningTextTable
    model: LanguageModelTable = field(default_factory=LanguageModelTable)
    training: TrainingTable = field(default_factory=TrainingTable)
    stage: list[StageTable] = field(default_factory=list)
    callbacks: CallbacksTable = field(default_factory=CallbacksTable)
    decoding: DecodingTable = field(default_factory=DecodingTable)
    evaluation: LanguageEvaluationTable = field(default_factory=LanguageEvaluationTable)

    def __post_init__(self) -> None:
        _check_monitors(self, DEFAULT_METRICS)
        _check_word_vectors(self)
        check_losses(self.stages(), self.model.options())
        _check_refused(self)
        if isinstance(self.data, RunningTextTable):
            _check_running_text(self)


@dataclass(frozen=True)
class ClassificationRecipe(_Tables):
    """A recipe for classes of sequences, such as the pixels of images."""

    REFUSED: ClassVar = {**TranslationRecipe.REFUSED, "scheduled_sampling": "models that write sentences"}
    data: MnistTable | DigitsTable
    model: ClassificationModelTable = field(default_factory=ClassificationModelTable)
    training: TrainingTable = field(default_factory=TrainingTable)
    stage: list[StageTable] = field(default_factory=list)
    callbacks: CallbacksTable = field(default_factory=CallbacksTable)
    evaluation: ClassificationEvaluationTable = field(default_factory=ClassificationEvaluationTable)

    def __post_init__(self) -> None:
        _check_monitors(self, ["val_loss", "val_accuracy"])
        check_losses(self.stages(), self.model.options())
        _check_refused(self)


Recipe = CaptioningRecipe | TranslationRecipe | LanguageRecipe | ClassificationRecipe

RECIPES: tuple[type[Recipe], ...] = (
    CaptioningRecipe,
    TranslationRecipe,
    LanguageRecipe,
    ClassificationRecipe,
)

# How a recipe for sentences can monitor further metrics.
_MORE = "; evaluation.each_epoch adds scores"


def recipe_from_dict(
    tables: Mapping[str, Any],
    source: str = "config",
    overrides: Sequence[str] = (),
    *,
    to_train: bool = True,
) -> Recipe:
    """The recipe of the kind given by ``data.kind``, from its tables; the inverse of ``to_dict``.

    Parameters
    ----------
    tables : mapping
    source, overrides
        Where the tables are from, for errors, and changes of them; see :func:`load_recipe`.
    to_train : bool
        Whether to import and check update rules and schedules. The recipe of a trained model is read without
        them, because the modules that define them may be missing.

    Raises
    ------
    RecipeError
        As :func:`load_recipe`.
    """
    check_depth(tables, source)
    overridden, keys = with_overrides(tables, overrides)
    place = Place(source, overrides=keys)
    data = overridden.get("data")
    kinds = recipes_by_kind()
    kind = data.get("kind") if isinstance(data, Mapping) else next(iter(kinds))
    if not isinstance(kind, str) or kind not in kinds:
        found = "missing" if kind is None else repr(kind)
        expected = ", ".join(map(repr, kinds))
        raise RecipeError(f"{place / 'data' / 'kind'} is {found}, expected one of {expected}")
    recipe = from_table(kinds[kind], overridden, place)
    check_reach(keys, recipe.stage, recipe.training)
    if to_train:
        try:
            recipe.check_training()
        except (ValueError, TypeError) as error:
            raise RecipeError(place.message(error)) from error
    return recipe


def data_tables(recipe: type[Recipe]) -> dict[str, Any]:
    """The class of the table [data] for each kind of data of this kind of recipe."""
    tables = annotations_of(recipe)["data"]
    return {kind_of(table): table for table in get_args(tables) or (tables,)}


def kinds_of(recipe: type[Recipe]) -> list[str]:
    """The kinds of data for this kind of recipe."""
    return list(data_tables(recipe))


def recipes_by_kind() -> dict[str, type[Recipe]]:
    """The class of the recipes for each kind of data."""
    return {kind: recipe for recipe in RECIPES for kind in kinds_of(recipe)}


def _check_monitors(recipe: Any, metrics: Sequence[str], hint: str = "") -> None:
    for table, training in recipe.trainings().items():
        if training.monitor not in metrics:
            raise InputError(
                f"{table}.monitor is {training.monitor!r}, expected one of {', '.join(metrics)}{hint}"
            )


def check_translation_metrics(data: Any, evaluation: TranslationEvaluationTable) -> None:
    """Raise ValueError if a metric is not defined for the data: CS-k needs words, not pieces of words."""
    if "CS-k" in evaluation.metrics and getattr(data, "tokenizer", None) == SUBWORDS:
        raise InputError(
            f"evaluation.metrics has 'CS-k', expected BLEU alone with data.tokenizer {SUBWORDS!r}"
        )


def _check_features(recipe: CaptioningRecipe) -> None:
    """Raise ValueError if a model that attends has no grid of features, or another one has a grid.

    Only the features of shapes are known here; files of other data may have a grid or a vector.
    """
    data, attention = recipe.data, recipe.model.attention
    if not isinstance(data, ShapesTable) or (data.features == "local") == (attention is not None):
        return
    if attention is None:
        raise InputError(
            "data.features is 'local', which needs model.attention 'additive', 'dot' or 'bilinear'"
        )
    raise InputError(
        f"model.attention is {attention!r}, which needs data.features 'local', found {data.features!r}"
    )


def _check_word_vectors(recipe: Any) -> None:
    """Raise ValueError if a warm start would overwrite word vectors from files."""
    given = [key for key in recipe.model.files if getattr(recipe.model, key) is not None]
    if given and recipe.stages()[0].training.warm_start is not None:
        raise InputError(
            f"model.{given[0]} is given, expected 'none' with training.warm_start: the word vectors would be "
            "overwritten by those of the warm start"
        )


def _check_running_text(recipe: LanguageRecipe) -> None:
    """Raise ValueError if a key has no meaning for running text."""
    if recipe.model.target_attention:
        raise InputError(
            "model.target_attention is true, expected false with data.kind 'running_text': the state that is "
            "carried from window to window does not hold all past states"
        )
    if recipe.evaluation.max_sentences is not None:
        raise InputError(
            f"evaluation.max_sentences is {recipe.evaluation.max_sentences}, expected none with data.kind "
            "'running_text', which is one text"
        )


def _check_refused(recipe: Any) -> None:
    """Raise ValueError if a stage has a key that this kind of recipe refuses."""
    for (table, training), stage in zip(recipe.trainings().items(), recipe.stages(), strict=True):
        for key, others in recipe.REFUSED.items():
            if getattr(stage if hasattr(stage, key) else training, key) is not None:
                raise InputError(
                    f"{table}.{key} is for {others}, expected none in a recipe of data.kind "
                    f"{recipe.data.kind!r}"
                )


def load_recipe(recipe: str | os.PathLike[str], overrides: Sequence[str] = ()) -> Recipe:
    """Read a recipe.

    Parameters
    ----------
    recipe : path or str
        A TOML file, or the name of a recipe that comes with rnnlab, such as "shapes".
    overrides : sequence of str
        ``key.sub=value`` each. The value is a TOML literal, or a string without its quotation marks.

    Raises
    ------
    FileNotFoundError
        If there is no such file or name.
    OSError
        If the file cannot be read.
    RecipeError
        If it is not TOML or nested too deeply, or a key is unknown or missing, or a value is not what the
        schema expects. The message names the file (or ``--set``), the key, what was found and what was
        expected.
    """
    path = find(recipe)
    return recipe_from_dict(read_toml(path), str(path), overrides)
