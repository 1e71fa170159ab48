"""Last states of a split: under teacher forcing, of a model running free, and how far they are apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rnnlab.data import CaptionData, ParallelData
from rnnlab.data.parallel import pad
from rnnlab.decoding import Hypothesis
from rnnlab.metrics import mean_centroid_distance, pointwise_distance
from rnnlab.models import CaptioningRNN, Seq2Seq
from rnnlab.recipes.recipe import Config, TranslationConfig
from rnnlab.tasks.search import decode
from rnnlab.types import Array


@dataclass(frozen=True)
class Discrepancy:
    """What :func:`discrepancy` returns.

    Attributes
    ----------
    taught : (N, H)
        The states that emit the last token of what people wrote.
    free : (N, H)
        The states that emit the last token of what the model wrote from the same sources.
    mean_centroid, pointwise : float
        d_mc and d_pw of :mod:`rnnlab.metrics.discrepancy`.
    """

    taught: Array
    free: Array
    mean_centroid: float
    pointwise: float


def discrepancy(
    config: Config | TranslationConfig,
    data: CaptionData | ParallelData,
    model: CaptioningRNN | Seq2Seq,
    split: str,
    *,
    first: int | None = None,
) -> Discrepancy:
    """Compare the last states of a split with those of greedy decoding, both without noise.

    Of an image it is the first caption that is taught. The free sentences are as long as the recipe's table
    ``[decoding]`` lets them be, and have what else it asks for but the beam.

    Parameters
    ----------
    config : Config or TranslationConfig
    data, model
        The recipe's.
    split : str
    first : int, optional
        Only so many images or pairs.

    Raises
    ------
    KeyError
        If the data have no such split.
    ValueError
        If the split is empty.
    """
    indices = _examples(data, split)[:first]
    if not indices.size:
        raise ValueError(f"discrepancy: {split} is empty, expected at least one sentence")
    options = replace(config.decoding, method="greedy", n_best=1)
    size, taught, free = config.training.batch_size, [], []
    for some in np.split(indices, range(size, indices.size, size)):
        source, sentences = data.batch(split, some)
        found = [best for best, *_ in decode(model, source, options)]
        taught.append(model.last_states(source, sentences))
        free.append(model.last_states(source, _sentences(model, found)))
    u, v = np.concatenate(taught), np.concatenate(free)
    return Discrepancy(u, v, mean_centroid_distance(u, v), pointwise_distance(u, v))


def _examples(data: CaptionData | ParallelData, split: str) -> np.ndarray:
    """The indices of the pairs, or of the first caption of each image, (N,)."""
    if isinstance(data, ParallelData):
        return np.arange(len(data.split(split)))
    return np.unique(data.split(split).image_idxs, return_index=True)[1]


def _sentences(model: CaptioningRNN | Seq2Seq, found: Sequence[Hypothesis]) -> np.ndarray:
    """Sentences that were found as the model reads them, (N, L)."""
    rows = [[model.start_token, *one.tokens, *([model.end_token] if one.finished else [])] for one in found]
    return pad([np.array(row, np.int32) for row in rows])
