"""Captions of images: the data, the model and the scores of a recipe."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain
from typing import Any, ClassVar

import numpy as np

from rnnlab.data import (
    CaptionData,
    CaptionedImages,
    CaptionGroups,
    CaptionSplit,
    open_annotated,
    open_shapes,
    read_coco,
    read_karpathy,
    tokenize,
)
from rnnlab.data.caption_inputs import CaptionInputs
from rnnlab.data.joint import JointCaptionData, JointCaptionInputs
from rnnlab.data.split_data import batches
from rnnlab.decoding import Ensemble, Hypothesis
from rnnlab.decoding.ensemble import Average
from rnnlab.errors import InputError
from rnnlab.metrics import (
    CAPTION_SCORERS,
    METRICS,
    CaptionScores,
    Metric,
    Statistics,
    check_java,
    perplexity,
    ptb_tokenizer,
    score_captions,
)
from rnnlab.models import CaptioningRNN
from rnnlab.options import TokenizerName
from rnnlab.reading import PathLike
from rnnlab.recipes.data import CocoTable, CourseTable, KarpathyTable, ShapesTable
from rnnlab.recipes.recipe import CaptioningRecipe
from rnnlab.recipes.tables import CaptioningEvaluationTable, DecodingTable, SelfCriticalTable
from rnnlab.tasks.ensembles import Combined, Member, check_same_words
from rnnlab.tasks.rewards import cider_d_reward
from rnnlab.tasks.search import decode
from rnnlab.tasks.task import Task, chosen_on, limited
from rnnlab.training import Checkpoint, SelfCritical, validation_loss
from rnnlab.training.distributed import ALONE, Communicator, by_rank_0
from rnnlab.training.validation import total_nll

TOKENIZER_NOTES = {
    "ptb": "PTB, the protocol of the COCO evaluation",
    "simple": "simple (lower case, alphanumeric); published scores use PTB (evaluation.tokenizer)",
}

_NO_WORD = "unknownword"  # a word of letters, which no tokenizer splits, and which no reference has


@dataclass(frozen=True)
class CaptioningEvaluation:
    """The captions of a split and their scores.

    Attributes
    ----------
    split : str
    names : tuple of str
        The images.
    captions : list of list of Hypothesis
        One list per image, best first.
    sentences : list of str
        The best caption of each image.
    references : list of list of str
        The human sentences of each image.
    perplexity : float
        The perplexity of these images' references, each cut to the data's ``max_words``.
    scores : CaptionScores
    tokenizer : "simple" or "ptb"
        The tokenizer of the scores.
    remarks : list of str
        Notes on the split and its references.
    """

    split: str
    names: tuple[str, ...]
    captions: list[list[Hypothesis]]
    sentences: list[str]
    references: list[list[str]]
    perplexity: float
    scores: CaptionScores
    tokenizer: str
    remarks: list[str] = field(default_factory=list)

    def corpus(self) -> dict[str, float]:
        """All scores of the split by name, perplexity first."""
        return {"perplexity": self.perplexity, **self.scores.corpus}

    def rows(self) -> list[tuple[str, str]]:
        """The table of the scores: names and numbers."""
        numbers = [
            (name, f"{score:.{3 if name == 'perplexity' else 4}f}") for name, score in self.corpus().items()
        ]
        return [("images", f"{len(self.names):,}"), *numbers]

    def examples(self) -> tuple[Any, ...]:
        """The images, their references and the tokenizer."""
        return self.names, list(map(list, self.references)), self.tokenizer

    def statistics(self) -> dict[str, Statistics]:
        """The statistics of the scores of captions."""
        return self.scores.statistics()

    def notes(self) -> list[str]:
        """The tokenizer, the remarks, and metrics that could not be computed."""
        return [f"tokenizer: {TOKENIZER_NOTES[self.tokenizer]}", *self.remarks, *self.scores.notes]

    def report(self) -> dict[str, Any]:
        """The scores, and each caption with its references and scores, as JSON values."""
        images = [
            {
                "name": name,
                "caption": sentence,
                "references": references,
                "scores": {metric: values[k] for metric, values in self.scores.images.items()},
            }
            for k, (name, sentence, references) in enumerate(
                zip(self.names, self.sentences, self.references, strict=True)
            )
        ]
        return {
            "corpus": self.corpus(),
            "brevity": self.scores.brevity,
            "tokenizer": self.tokenizer,
            "notes": self.notes(),
            "images": images,
        }


def _open_karpathy(annotations: PathLike, **options: Any) -> CaptionData:
    return open_annotated(read_karpathy(annotations), **options)


def _open_coco(**options: Any) -> CaptionData:
    files = {split: options.pop(f"annotations_{split}") for split in ("train", "val", "test")}
    return open_annotated(
        read_coco({split: path for split, path in files.items() if path is not None}), **options
    )


class CaptioningTask(Task):
    """The task of :class:`rnnlab.recipes.CaptioningRecipe`."""

    recipe_type = CaptioningRecipe
    verb, outputs, command = "captions", "captions", "caption"
    metrics = tuple(METRICS)
    openers: ClassVar = {
        ShapesTable: open_shapes,
        CourseTable: CaptionData.from_course,
        KarpathyTable: _open_karpathy,
        CocoTable: _open_coco,
    }
    not_of_opener = ("kind", "captions_per_image")  # the latter is for training_data

    def one_sentence_each(self, data: CaptionData, split: str) -> np.ndarray:
        """See :meth:`Task.one_sentence_each`: the first caption of each image."""
        return np.unique(data.split(split).image_idxs, return_index=True)[1]

    def new_model(self, recipe: CaptioningRecipe, data: CaptionData) -> CaptioningRNN:
        """See :meth:`Task.new_model`."""
        check_features(recipe, data)
        return CaptioningRNN(
            data.vocabulary.word_to_idx,
            data.num_features,
            **recipe.model.options(),
            global_dim=data.num_global_features,
            rng=np.random.default_rng(recipe.training.seed),
        )

    def training_data(self, recipe: CaptioningRecipe, data: CaptionData) -> CaptionData | CaptionGroups:
        """See :meth:`Task.training_data`: with ``captions_per_image``, images with several captions each."""
        count = recipe.data.captions_per_image
        return data if count is None else CaptionGroups(data, count)

    def inputs(self, recipe: CaptioningRecipe, checkpoint: Checkpoint) -> CaptionInputs:
        """See :meth:`Task.inputs`."""
        reads_grid = recipe.model.attention is not None
        return CaptionInputs.from_saved(
            checkpoint.vocabulary or [], checkpoint.preprocessing, reads_grid=reads_grid
        )

    def check_scorable(self, recipe: CaptioningRecipe, data: CaptionData) -> None:
        """See :meth:`Task.check_scorable`: images to score have references, and val has captions."""
        super().check_scorable(recipe, data)
        evaluation, val = recipe.evaluation, data.splits.get("val")
        _check_references(data.split(evaluation.split), evaluation.max_images)
        if val is not None and not len(val.captions):
            raise InputError(
                f"{val.where('captions')}: the split val has {val.num_images} images and no captions, "
                "expected captions to validate on, or no such split"
            )
        if val is not None and evaluation.each_epoch:
            _check_references(val, evaluation.max_images)
        if any(stage.self_critical is not None for stage in recipe.stages()):
            train = data.split("train")
            train.check_references(np.unique(train.image_idxs))

    def check_ensemble(self, members: Sequence[Member]) -> None:
        """See :meth:`Task.check_ensemble`: captions have one vocabulary."""
        check_same_words(members, "vocabulary", lambda inputs: inputs.vocabulary)

    def combined(self, members: Sequence[Member], average: Average) -> Combined:
        """See :meth:`Task.combined`. Each model reads the features of its own data.

        Without data, all models read the same file of features, each with its own scaling, or the same
        photographs.
        """
        models, first = [member.model for member in members], members[0]
        if all(member.data is first.data for member in members) and first.data is not None:
            return Combined(Ensemble(models, average=average), first.inputs, first.data)
        inputs = JointCaptionInputs({member.name: member.inputs for member in members})
        data = None
        if first.data is not None:
            data = JointCaptionData({member.name: member.data for member in members})
        return Combined(Ensemble(models, average=average, num_arrays=inputs.num_arrays), inputs, data)

    def epoch_scores(
        self, recipe: CaptioningRecipe, data: CaptionData, communicator: Communicator = ALONE
    ) -> Callable[[CaptioningRNN], dict[str, float]] | None:
        """See :meth:`Task.epoch_scores`. Captions are split by the simple tokenizer."""
        metrics = recipe.evaluation.each_epoch
        if not metrics:
            return None
        CAPTION_SCORERS.require()
        if "METEOR" in metrics:
            by_rank_0(communicator, lambda: check_java("METEOR, in evaluation.each_epoch,"))
        images, by_examples = data.split("val"), self.training_data(recipe, data)
        count = limited(recipe.evaluation.max_images, images.num_images)
        is_greedy = recipe.evaluation.each_epoch_greedy
        decoding = recipe.decoding.changed(method="greedy") if is_greedy else recipe.decoding

        def scores(model: CaptioningRNN) -> dict[str, float]:
            captions = decode(
                model,
                images.model_inputs,
                decoding,
                rng=recipe.training.seed,
                first=count,
                communicator=communicator,
            )
            sentences, references = written(captions, data), images.references[:count]
            scored = by_rank_0(communicator, lambda: _scores(sentences, references, metrics))
            if communicator.rank == 0:
                for note in scored.notes:
                    print(f"note: {note}", file=sys.stderr)
            loss = validation_loss(model, by_examples, recipe.training.batch_size, communicator=communicator)
            return loss | scored.corpus

        return scores

    def self_critical(
        self, data: CaptionData, options: SelfCriticalTable
    ) -> tuple[CaptionedImages, SelfCritical]:
        """See :meth:`Task.self_critical`. The reward is CIDEr-D."""
        images = CaptionedImages(data)
        return images, SelfCritical(cider_d_reward(images), **asdict(options))

    def evaluate(
        self,
        recipe: CaptioningRecipe,
        data: CaptionData,
        model: CaptioningRNN,
        split: str,
        *,
        decoding: DecodingTable,
        evaluation: CaptioningEvaluationTable,
        communicator: Communicator = ALONE,
    ) -> CaptioningEvaluation:
        """Caption a split and score the captions against its references.

        Raises
        ------
        ImportError
            If the extra ``eval`` is not installed.
        JavaError
            If the tokenizer is "ptb" and Java is missing. It is raised before anything is decoded.
        KeyError
            If the data have no such split.
        ValueError
            If its first ``max_images`` images have no captions, or one of them has no reference with words.
        """
        CAPTION_SCORERS.require()
        if evaluation.tokenizer == "ptb":
            by_rank_0(communicator, lambda: check_java('evaluation.tokenizer = "ptb"'))
        images, training = data.split(split), recipe.training
        count = limited(evaluation.max_images, images.num_images)
        images.check_references(range(count))
        captions_perplexity = _perplexity(data, model, split, count, _batch_size(recipe), communicator)
        captions = decode(
            model,
            images.model_inputs,
            decoding,
            rng=training.seed,
            first=count,
            communicator=communicator,
        )
        sentences = written(captions, data)
        references = images.references[:count]
        return CaptioningEvaluation(
            split,
            images.names[:count],
            captions,
            sentences,
            references,
            captions_perplexity,
            by_rank_0(
                communicator,
                lambda: _scores(sentences, references, evaluation.metrics, evaluation.tokenizer),
            ),
            evaluation.tokenizer,
            [*chosen_on(split, recipe), *_unknown_words(references)],
        )


def check_features(recipe: CaptioningRecipe, data: CaptionData) -> None:
    """Check that a model that attends has a grid of features for each image, and any other a vector.

    Raises
    ------
    ValueError
        If they do not match. The message names ``model.attention`` and ``data.features``.
    """
    attention, shape = recipe.model.attention, data.feature_shape
    if attention is not None and len(shape) < 2:
        raise InputError(
            f"model.attention is {attention!r}, and data.features has one vector of shape {shape} for each "
            "image, expected a grid (regions, D): set data.features to local ones, or remove model.attention"
        )
    if attention is None and len(shape) > 1:
        raise InputError(
            f"data.features has a grid of shape {shape} for each image, and model.attention is not set, "
            "expected one vector (D,): set model.attention, or data.features to one vector for each image"
        )
    if attention is None and data.num_global_features is not None:
        raise InputError("data.global_features is set, which needs model.attention: set it, or remove these")


def _batch_size(recipe: CaptioningRecipe) -> int:
    """The number of captions in a batch."""
    return recipe.training.batch_size * (recipe.data.captions_per_image or 1)


def _check_references(split: CaptionSplit, most: int | None) -> None:
    split.check_references(range(limited(most, split.num_images)))


def written(captions: Sequence[Sequence[Hypothesis]], data: CaptionData | CaptionInputs) -> list[str]:
    """The best caption of each image in words."""
    return [data.vocabulary.decode(best.tokens) for best, *_ in captions]


def _scores(
    sentences: Sequence[str],
    references: Sequence[Sequence[str]],
    metrics: Sequence[Metric],
    tokenizer: TokenizerName = "simple",
) -> CaptionScores:
    """The scores of captions by the tokenizer and the metrics of a recipe's table [evaluation].

    <UNK> in a caption matches no word, not even <UNK> in a reference.
    """
    sentences = [sentence.replace("<UNK>", _NO_WORD) for sentence in sentences]
    split: Callable[[str], Sequence[str]] = tokenize
    if tokenizer == "ptb":
        split = ptb_tokenizer([*sentences, *chain.from_iterable(references)])
    return score_captions(sentences, references, tokenize=split, metrics=metrics)


def _unknown_words(references: Sequence[Sequence[str]]) -> list[str]:
    """A note if references have <UNK>, as those do that are decoded from tokens."""
    sentences = list(chain.from_iterable(references))
    count = sum("<UNK>" in sentence for sentence in sentences)
    if not count:
        return []
    return [
        f"{count:,} of {len(sentences):,} references have <UNK> for a rare word, which no word of a caption "
        "matches, so the scores are not those of the original sentences"
    ]


def _perplexity(
    data: CaptionData,
    model: CaptioningRNN,
    split: str,
    count: int,
    size: int,
    communicator: Communicator,
) -> float:
    """The perplexity of the captions of the first ``count`` images of a split."""
    captions = np.flatnonzero(data.split(split).image_idxs < count)
    if not captions.size:
        raise InputError(
            f"max_images: found no captions of the first {count} images of {split}, expected at least one"
        )
    return perplexity(*total_nll(model, data, split, batches(captions, size), communicator))
