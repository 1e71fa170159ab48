"""Batches of images with several captions for each image.

A model encodes (and reviews) an image once for all of its captions in a batch. Jiang, Ma and Lu (2020) train
on batches of 10 images with 5 captions each. Validation uses all captions of each image.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rnnlab.data.by_image import CaptionedImages
from rnnlab.data.captions import CaptionData
from rnnlab.data.fingerprint import Fingerprint
from rnnlab.data.split_data import as_rows, batches
from rnnlab.errors import InputTypeError
from rnnlab.layers.checks import check_rng
from rnnlab.options import Count, check_option
from rnnlab.types import Indices


class CaptionGroups(CaptionedImages):
    """Captioned data that is batched by image, with S captions for each training image.

    Each training epoch samples S captions for every image: without replacement if the image has at least S
    captions, otherwise all of them plus further samples with replacement. If every image has exactly S
    captions, an epoch uses each caption once.

    For other splits, an epoch covers each image once, with all of its captions. Images are grouped by their
    number of captions, so that the captions of a batch form one array.

    Parameters
    ----------
    data : CaptionData
    captions_per_image : int
        S.

    Raises
    ------
    ValueError
        If ``captions_per_image`` is not an integer of at least 1.
    TypeError
        If ``data`` is not a CaptionData.
    """

    def __init__(self, data: CaptionData, captions_per_image: int) -> None:
        if not isinstance(data, CaptionData):
            raise InputTypeError(
                f"CaptionGroups: data is of type {type(data).__name__}, expected CaptionData, as open_shapes "
                "and open_annotated return it"
            )
        check_option("CaptionGroups", "captions_per_image", Count, captions_per_image)
        super().__init__(data)
        self.captions_per_image = captions_per_image
        self._captions, self._firsts, self._counts = _by_image(data.split("train").image_idxs)

    def __repr__(self) -> str:
        each = f"{self.captions_per_image} captions of {len(self.images):,} images"
        return f"CaptionGroups({each} of {self._data!r})"

    def epoch(self, split: str, batch_size: int, rng: np.random.Generator | None = None) -> list[np.ndarray]:
        """The examples of one pass over ``split``, a batch at a time; the last batch may be smaller.

        Parameters
        ----------
        split : str
        batch_size : int
            Number of images in a training batch. A batch of another split holds about ``batch_size * S``
            captions; its number of images depends on how many captions each of them has.
        rng : Generator, optional
            Shuffles the images and samples their captions. Without it, both are in the order of the data.

        Returns
        -------
        list of (N, S) int
            The captions of each image. In splits other than "train", S is the number of captions of each
            image of the batch.
        """
        if split != "train":
            return self._all_captions(split, batch_size, rng)
        order = self._data.split("train").epoch_order(self.images, rng)
        return batches(self._drawn(rng)[order], batch_size)

    def batch(self, split: str, indices: Indices) -> tuple[Any, np.ndarray]:
        """Features (N, ..., D), or a tuple with global ones, and captions (N, S, L) of ``indices`` (N, S)."""
        chosen, rows = self._data.split(split), as_rows(self, indices, axes=("N", "S"))
        return chosen.features_at(chosen.image_idxs[rows[:, 0]]), chosen.captions[rows]

    def row_lengths(self, split: str, indices: np.ndarray) -> np.ndarray:
        """The number of tokens that a model predicts in the captions of each image of ``indices`` (N, S)."""
        return self._data.row_lengths(split, indices).sum(axis=1)

    @staticmethod
    def num_examples(batch: tuple[Any, np.ndarray]) -> int:
        """The number of captions in ``batch``, which its loss is averaged over."""
        return int(np.prod(batch[1].shape[:-1]))

    def fingerprint(self) -> Fingerprint:
        """The fingerprint of the data, and S, which must be the same when a run resumes."""
        return super().fingerprint() | {"captions per image": str(self.captions_per_image)}

    def _all_captions(self, split: str, batch_size: int, rng: np.random.Generator | None) -> list[np.ndarray]:
        """All captions of each image, in batches of images with the same number of captions."""
        check_rng("epoch", rng)
        captions, firsts, counts = _by_image(self._data.split(split).image_idxs)
        images = np.arange(len(counts)) if rng is None else rng.permutation(len(counts))
        found = []
        for count in np.unique(counts):
            chosen = images[counts[images] == count]
            at_once = -(-batch_size * self.captions_per_image // count)  # rounded up: at least one image
            found += batches(captions[firsts[chosen, None] + np.arange(count)], at_once)
        return found if rng is None else [found[k] for k in rng.permutation(len(found))]

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


def _by_image(image_idxs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The captions sorted by image; the index of each image's first caption, and its number of captions.

    Images without a caption are left out.
    """
    captions = np.argsort(image_idxs, kind="stable")
    _, firsts, counts = np.unique(image_idxs[captions], return_index=True, return_counts=True)
    return captions, firsts, counts
