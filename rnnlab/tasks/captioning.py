"""Captions of images: the data, the model and the scores of a recipe."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any

import numpy as np

from rnnlab.data import CaptionData, open_annotated, open_shapes, read_coco, read_karpathy, tokenize
from rnnlab.decoding import Hypothesis
from rnnlab.metrics import CAPTION_SCORERS, CaptionScores, perplexity, ptb_tokenizer, score_captions
from rnnlab.models import CaptioningRNN
from rnnlab.recipes.recipe import (
    CocoData,
    Config,
    CourseData,
    DecodingConfig,
    EvaluationConfig,
    KarpathyData,
    ShapesData,
    TrainingConfig,
)
from rnnlab.tasks.search import decode
from rnnlab.training import validation_loss

TABLES = (ShapesData, CourseData, KarpathyData, CocoData)


@dataclass(frozen=True)
class Evaluation:
    """The captions of a split and how good they are.

    Attributes
    ----------
    names : tuple of str
        The images.
    captions : list of list of Hypothesis
        Best first, one list an image.
    sentences : list of str
        The best caption of each image.
    references : list of list of str
        What people wrote.
    perplexity : float
        Of what people wrote of these images, under the model.
    scores : CaptionScores
    """

    names: tuple[str, ...]
    captions: list[list[Hypothesis]]
    sentences: list[str]
    references: list[list[str]]
    perplexity: float
    scores: CaptionScores


def open_data(table: ShapesData | CourseData | KarpathyData | CocoData) -> CaptionData:
    """The data that a recipe's table ``[data]`` names."""
    options = asdict(table)
    kind = options.pop("kind")
    if kind == "shapes":
        return open_shapes(**options)
    if kind == "course":
        return CaptionData.from_course(options.pop("directory"), **options)
    if kind == "karpathy":
        return open_annotated(read_karpathy(options.pop("annotations")), **options)
    splits = ("train", "val")
    return open_annotated(
        read_coco({split: options.pop(f"annotations_{split}") for split in splits}), **options
    )


def new_model(config: Config, data: CaptionData) -> CaptioningRNN:
    """A model as the recipe describes it, its parameters drawn from the recipe's seed."""
    return CaptioningRNN(
        data.vocabulary.word_to_idx,
        data.num_features,
        **asdict(config.model),
        global_dim=data.num_global_features,
        rng=np.random.default_rng(config.training.seed),
    )


def evaluate(
    training: TrainingConfig,
    data: CaptionData,
    model: CaptioningRNN,
    split: str,
    *,
    decoding: DecodingConfig,
    evaluation: EvaluationConfig,
) -> Evaluation:
    """Caption a split and score the captions against its references.

    Raises
    ------
    ImportError
        If the extra ``eval`` is not installed.
    KeyError
        If the data have no such split.
    ValueError
        If its first ``max_images`` images have no captions.
    """
    CAPTION_SCORERS.require()
    images = data.split(split)
    count = min(evaluation.max_images or images.num_images, images.num_images)
    captions_perplexity = _perplexity(data, model, split, count, training.batch_size)
    captions = decode(model, images.features_at(slice(count)), decoding, rng=training.seed)
    sentences = written(captions, data)
    references = images.references[:count]
    tokenizer: Callable[[str], Sequence[str]] = tokenize
    if evaluation.tokenizer == "ptb":
        tokenizer = ptb_tokenizer([*sentences, *chain.from_iterable(references)])
    return Evaluation(
        images.names[:count],
        captions,
        sentences,
        references,
        captions_perplexity,
        score_captions(sentences, references, tokenize=tokenizer, metrics=evaluation.metrics),
    )


def _perplexity(data: CaptionData, model: CaptioningRNN, split: str, count: int, size: int) -> float:
    """That of the captions of the first ``count`` images of a split."""
    captions = np.flatnonzero(data.split(split).image_idxs < count)
    if not captions.size:
        raise ValueError(
            f"max_images: found no captions of the first {count} images of {split}, expected some"
        )
    batches = np.split(captions, range(size, captions.size, size))
    totals = [model.nll(*data.batch(split, indices)) for indices in batches]
    return perplexity(sum(nats for nats, _ in totals), sum(tokens for _, tokens in totals))


def written(captions: Sequence[Sequence[Hypothesis]], data: CaptionData) -> list[str]:
    """The best caption of each image in words."""
    return [data.vocabulary.decode(best.tokens) for best, *_ in captions]


def epoch_scores(config: Config, data: CaptionData) -> Any:
    """The function that the solver calls after every epoch; None for its own, which needs no captions."""
    metrics = config.evaluation.each_epoch
    if not metrics:
        return None
    CAPTION_SCORERS.require()
    images = data.split("val")
    count = min(config.evaluation.max_images or images.num_images, images.num_images)

    def scores(model: CaptioningRNN) -> dict[str, float]:
        captions = decode(model, images.features_at(slice(count)), config.decoding, rng=config.training.seed)
        scored = score_captions(
            written(captions, data), images.references[:count], tokenize=tokenize, metrics=metrics
        )
        return validation_loss(model, data, config.training.batch_size) | scored.corpus

    return scores
