"""Captioned images whose training examples are images with several of their captions each.

A model encodes (and reviews) an image once for all of its captions in a batch. Jiang, Ma and Lu (2020) train
on batches of 10 images with 5 captions each.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rnnlab.data.by_image import CaptionedImages
from rnnlab.data.captions import CaptionData
from rnnlab.data.fingerprint import Fingerprint
from rnnlab.data.split_data import batches
from rnnlab.options import Count, check_option


class CaptionGroups(CaptionedImages):
    """The same data with an example for each training image: the image with S of its captions.

    The captions are drawn anew in every epoch. Of an image with S captions or more, S different ones are
    drawn. Of an image with fewer, all are taken, and the others are drawn from them again, with replacement.
    An epoch over images with S captions each has every caption once.

    Parameters
    ----------
    data : CaptionData
    captions_per_image : int
        S.

    Raises
    ------
    ValueError
        If ``captions_per_image`` is no integer of at least 1.
    TypeError
        If ``data`` is not a CaptionData.
    """

    def __init__(self, data: CaptionData, captions_per_image: int) -> None:
        if not isinstance(data, CaptionData):
            raise TypeError(
                f"CaptionGroups: data is of type {type(data).__name__}, expected CaptionData, as open_shapes "
                "and open_annotated return it"
            )
        check_option("CaptionGroups", "captions_per_image", Count, captions_per_image)
        super().__init__(data)
        self.captions_per_image = captions_per_image
        image_idxs = data.split("train").image_idxs
        self._captions = np.argsort(image_idxs, kind="stable")  # those of an image follow each other
        _, self._firsts, self._counts = np.unique(
            image_idxs[self._captions], return_index=True, return_counts=True
        )

    def epoch(self, split: str, batch_size: int, rng: np.random.Generator | None = None) -> list[np.ndarray]:
        """The examples of one pass over ``split``, a batch at a time; the last batch may be smaller.

        Parameters
        ----------
        split : str
        batch_size : int
            Number of images. A batch of another split has S times as many captions.
        rng : Generator, optional
            Shuffles the images and draws their captions. Without it both are in their order.

        Returns
        -------
        list of (N, S) int
            Of the training split, the captions of each image. Of other splits, as :meth:`CaptionData.epoch`.
        """
        if split != "train":
            return self._data.epoch(split, batch_size * self.captions_per_image, rng)
        order = self._order(rng)
        return batches(self._drawn(rng)[order], batch_size)

    def batch(self, split: str, indices: np.ndarray) -> tuple[Any, np.ndarray]:
        """Of the training split, features (N, ..., D) and captions (N, S, L), of ``indices`` (N, S).

        Of other splits, features and captions as :meth:`CaptionData.batch`.
        """
        if split != "train":
            return self._data.batch(split, indices)
        chosen = self._data.split("train")
        return chosen.features_at(chosen.image_idxs[indices[:, 0]]), chosen.captions[indices]

    @staticmethod
    def num_examples(batch: tuple[Any, np.ndarray]) -> int:
        """The number of captions in ``batch``, which its loss is averaged over."""
        return int(np.prod(batch[1].shape[:-1]))

    def fingerprint(self) -> Fingerprint:
        """That of the data, and S: a run resumes with the same."""
        return super().fingerprint() | {"captions per image": str(self.captions_per_image)}

    def _drawn(self, rng: np.random.Generator | None) -> np.ndarray:
        """S captions of each training image, (num_examples, S)."""
        places, counts = np.arange(self.captions_per_image), self._counts[:, None]
        captions, again = self._captions, places % counts
        if rng is not None:
            # Sorted by image and a random number, the captions of an image are in random order.
            images = np.repeat(np.arange(len(self._counts)), self._counts)
            captions = captions[np.lexsort((rng.random(len(captions)), images))]
            again = np.where(places < counts, places, rng.integers(counts, size=again.shape))
        return captions[self._firsts[:, None] + again]
