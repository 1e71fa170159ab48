"""Captioned images whose training examples are images, for objectives that sample the captions."""

from __future__ import annotations

from typing import Any

import numpy as np

from rnnlab.data.captions import CaptionData
from rnnlab.data.fingerprint import Fingerprint
from rnnlab.data.split_data import as_rows, batches
from rnnlab.data.vocabulary import tokenize
from rnnlab.types import Indices


class CaptionedImages:
    """Captioned data whose training examples are images instead of captions.

    The other splits and the data saved in checkpoints are those of ``data``. Training images without a
    caption are left out; ``max_train`` can remove all captions of an image.

    Parameters
    ----------
    data : CaptionData

    Attributes
    ----------
    images : (num_examples,) int
        The training images, rows of the split's features.
    """

    def __init__(self, data: CaptionData) -> None:
        self._data = data
        self.splits, self.vocabulary, self.in_memory = data.splits, data.vocabulary, data.in_memory
        self.preprocessing, self.num_tokens = data.preprocessing, data.num_tokens
        self.images = np.unique(data.split("train").image_idxs)

    def __repr__(self) -> str:
        return f"CaptionedImages({len(self.images):,} images of {self._data!r})"

    def epoch(self, split: str, batch_size: int, rng: np.random.Generator | None = None) -> list[np.ndarray]:
        """The examples of one pass over ``split``, as :meth:`CaptionData.epoch`."""
        if split != "train":
            return self._data.epoch(split, batch_size, rng)
        return batches(self._data.split("train").epoch_order(self.images, rng), batch_size)

    def batch(self, split: str, indices: Indices) -> tuple[Any, np.ndarray]:
        """Features (N, ..., D) and the numbers (N,) of examples of the training split.

        For other splits, the features and captions of :meth:`CaptionData.batch`.
        """
        if split != "train":
            return self._data.batch(split, indices)
        rows = as_rows(self, indices)
        return self._data.split("train").features_at(self.images[rows]), rows

    def fingerprint(self) -> Fingerprint:
        """See :meth:`CaptionData.fingerprint`."""
        return self._data.fingerprint()

    def references(self) -> list[list[list[str]]]:
        """The words of all reference sentences of each training example.

        Raises
        ------
        ValueError
            If an image has no sentence with words.
        """
        split = self._data.split("train")
        split.check_references(self.images)
        return [
            [words for sentence in split.references[image] if (words := tokenize(sentence))]
            for image in self.images
        ]
