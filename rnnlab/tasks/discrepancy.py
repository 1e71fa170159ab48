"""The teacher-forced and the free-running last states of a split, and their distances."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rnnlab.data import CaptionData, ParallelData
from rnnlab.data.split_data import batches
from rnnlab.decoding.token_rows import token_rows
from rnnlab.errors import InputError
from rnnlab.metrics import mean_centroid_distance, pointwise_distance
from rnnlab.models import CaptioningRNN, Seq2Seq
from rnnlab.options import Count, check_option
from rnnlab.recipes.recipe import CaptioningRecipe, TranslationRecipe
from rnnlab.tasks import task_of
from rnnlab.tasks.search import decode
from rnnlab.training.distributed import ALONE, Communicator, in_shares
from rnnlab.types import Array


@dataclass(frozen=True)
class Discrepancy:
    """The result of :func:`discrepancy`.

    Attributes
    ----------
    teacher_forced : (N, H)
        The states that predict the last token of the human sentences.
    free_running : (N, H)
        The states that predict the last token of the model's sentences for the same sources.
    mean_centroid, pointwise : float
        d_mc and d_pw of :mod:`rnnlab.metrics.discrepancy`.
    """

    teacher_forced: Array
    free_running: Array
    mean_centroid: float
    pointwise: float


def discrepancy(
    recipe: CaptioningRecipe | TranslationRecipe,
    data: CaptionData | ParallelData,
    model: CaptioningRNN | Seq2Seq,
    split: str,
    *,
    first: int | None = None,
    communicator: Communicator = ALONE,
) -> Discrepancy:
    """Compare the teacher-forced last states of a split with those of greedy decoding, both without dropout.

    The first caption of each image is used. The free-running sentences are decoded greedily, with the other
    options of the recipe's table ``[decoding]``, such as its maximum length.

    Parameters
    ----------
    recipe : CaptioningRecipe or TranslationRecipe
    data, model
        Those of the recipe.
    split : str
    first : int, optional
        Only the first images or pairs.
    communicator : Communicator
        Ranks that share the work. All of them return the same.

    Raises
    ------
    KeyError
        If the data have no such split.
    ValueError
        If the split is empty, or ``first`` is less than 1.
    """
    check_option("discrepancy", "first", Count | None, first)
    indices = task_of(recipe).one_sentence_each(data, split)[:first]
    if not indices.size:
        raise InputError(f"discrepancy: {split} is empty, expected at least one sentence")
    options = recipe.decoding.changed(method="greedy")

    def states(some: np.ndarray) -> tuple[Array, Array]:
        source, sentences = data.batch(split, some)
        found = [best for best, *_ in decode(model, source, options)]
        decoded, _ = token_rows(model, found, start=True)
        return model.last_states(source, sentences), model.last_states(source, decoded)

    shares = batches(indices, recipe.training.batch_size)
    u, v = map(np.concatenate, zip(*in_shares(communicator, shares, states), strict=True))
    return Discrepancy(u, v, mean_centroid_distance(u, v), pointwise_distance(u, v))
