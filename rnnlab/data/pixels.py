"""Labelled images as sequences of pixels, one number per step, with epochs and batches for the solver.

sequential    the pixels row by row, from the top left
permuted      in an order that is drawn once from a seed and is the same for all images (Le et al. 2015), by
              which neighbours in the image become far apart in the sequence

Images may be reduced first: with ``pool`` P, a step reads the mean of P x P pixels, and a sequence is P**2
times shorter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from rnnlab.data.fingerprint import Fingerprint, array_hash, sample_hash
from rnnlab.data.split_data import SplitData, as_rows, drawn
from rnnlab.errors import InputError, InputTypeError
from rnnlab.options import Count, Natural, check_options
from rnnlab.reading import mismatch
from rnnlab.types import Indices

Labelled = tuple[np.ndarray, np.ndarray]  # images (N, height, width) uint8 and labels (N,) integers


def pooled(images: np.ndarray, pool: int) -> np.ndarray:
    """The means of blocks of ``pool`` x ``pool`` pixels, rounded to bytes.

    Parameters
    ----------
    images : (N, height, width) uint8
    pool : int
        Divides height and width.

    Returns
    -------
    (N, height / pool, width / pool) uint8
    """
    if pool == 1:
        return images
    N, height, width = images.shape
    blocks = images.reshape(N, height // pool, pool, width // pool, pool)
    sums = blocks.sum(axis=(2, 4), dtype=np.int32)
    return ((2 * sums + pool**2) // (2 * pool**2)).astype(np.uint8)  # a half is rounded up


@dataclass(frozen=True, eq=False)
class PixelInputs:
    """The preprocessing of new images for a classifier, from a checkpoint.

    Attributes
    ----------
    white : int
        The byte that becomes 1.0.
    image_shape : (height, width)
        The shape before pooling.
    permutation : (T,) integers
        The pixel, counted row by row, that is read at each step.
    pool : int
        A pixel that is read is the mean of ``pool`` x ``pool`` pixels of the image.
    """

    white: int
    image_shape: tuple[int, ...]
    permutation: np.ndarray
    pool: int = 1

    @classmethod
    def from_saved(cls, preprocessing: Mapping[str, Any]) -> Self:
        """From the field ``preprocessing`` of a checkpoint."""
        shape = tuple(preprocessing["image_shape"])
        pool = preprocessing.get("pool", 1)
        return cls(preprocessing["white"], shape, preprocessing["permutation"], pool)

    def sequences(self, images: np.ndarray) -> np.ndarray:
        """Images (N, height, width) uint8 as sequences of pixels (N, T, 1) float32 in [0, 1].

        Raises
        ------
        ValueError
            If they have another shape or dtype, or a byte is above ``white``.
        """
        if images.dtype != np.uint8 or images.shape[1:] != self.image_shape:
            expected = f"uint8 (N, {', '.join(map(str, self.image_shape))})"
            raise mismatch("PixelInputs: images", f"{images.dtype} {images.shape}", expected)
        if images.size and images.max() > self.white:
            raise mismatch("PixelInputs: images", f"the byte {images.max()}", f"at most {self.white}")
        T = len(self.permutation)  # not -1, which NumPy cannot infer from no images
        pixels = pooled(images, self.pool).reshape(len(images), T)[:, self.permutation]
        return pixels[:, :, None] / np.float32(self.white)


@dataclass(frozen=True, eq=False)
class PixelSplit:
    """One split.

    Attributes
    ----------
    pixels : (N, T) uint8
        In the order in which the model reads them.
    labels : (N,) int64
    """

    pixels: np.ndarray
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)


class PixelData(SplitData[PixelSplit]):
    """Labelled images, by splits, as sequences of pixels in [0, 1].

    Parameters
    ----------
    images : mapping of str to (images (N, height, width) uint8, labels (N,) integers)
        The splits. ``train`` is required; ``val`` is for validation.
    name : str
        Used in messages.
    num_classes : int
    white : int
        The byte that becomes 1.0.
    permute_seed : int, optional
        The seed of the order of the pixels. By default they are read row by row.
    pool : int
        Read the means of blocks of ``pool`` x ``pool`` pixels, rounded to bytes, instead of the pixels. Must
        divide height and width.
    max_train : int, optional
        Use only this number of training images, drawn with seed 0.

    Attributes
    ----------
    splits : dict of str to PixelSplit
    permutation : (T,) integers
        The pixel, counted row by row, that is read at each step.

    Raises
    ------
    ValueError
        If an option is out of range, there is no training image, or the images or labels of a split have a
        wrong shape, dtype or value. The message names it.
    TypeError
        If the images or labels of a split are not an array.
    """

    in_memory = True  # a batch is a copy of rows

    def __init__(
        self,
        images: Mapping[str, Labelled],
        *,
        name: str = "images",
        num_classes: Count = 10,
        white: Count = 255,
        permute_seed: Natural | None = None,
        pool: Count = 1,
        max_train: Count | None = None,
    ) -> None:
        self.name, self.num_classes, self.white = name, num_classes, white
        self.permute_seed, self.pool = permute_seed, pool
        options = {
            "num_classes": num_classes,
            "white": white,
            "permute_seed": permute_seed,
            "pool": pool,
            "max_train": max_train,
        }
        check_options("PixelData", PixelData, options)
        for split, arrays in images.items():
            for what, array in zip(("images", "labels"), arrays, strict=True):
                if not isinstance(array, np.ndarray):
                    found = f"a {type(array).__name__}"
                    raise InputTypeError(f"PixelData: {split}: {what} are {found}, expected an array")
        if "train" not in images or not len(images["train"][0]):
            found = ", ".join(f"{split} {len(some)}" for split, (some, _) in images.items()) or "no split"
            raise InputError(f"PixelData: {name}: found {found}, expected images of a split train")
        self.image_shape: tuple[int, ...] = images["train"][0].shape[1:]
        for split, (some, labels) in images.items():
            self._check(split, some, labels)
        if any(size % pool for size in self.image_shape):
            sizes = " x ".join(map(str, self.image_shape))
            raise InputError(f"PixelData: pool is {pool}, expected a common divisor of the sizes {sizes}")
        T = int(np.prod(self.image_shape)) // pool**2
        self.permutation = np.arange(T)
        if permute_seed is not None:
            self.permutation = np.random.default_rng(permute_seed).permutation(T)
        self.splits = {
            split: PixelSplit(
                pooled(some, pool).reshape(len(some), T)[:, self.permutation], labels.astype(np.int64)
            )
            for split, (some, labels) in images.items()
        }
        train = self.splits["train"]
        if max_train is not None:
            kept = drawn(len(train), max_train)
            self.splits["train"] = PixelSplit(train.pixels[kept], train.labels[kept])

    def batch(self, split: str, indices: Indices) -> tuple[np.ndarray, np.ndarray]:
        """The pixels (N, T, 1) float32 in [0, 1] and the labels (N,) of the images ``indices`` (N,)."""
        chosen, rows = self.split(split), as_rows(self, indices)
        return chosen.pixels[rows, :, None] / np.float32(self.white), chosen.labels[rows]

    @staticmethod
    def num_tokens(batch: tuple[np.ndarray, np.ndarray]) -> int:
        """The number of labels that a model predicts in ``batch``: one per image."""
        return len(batch[1])

    def preprocessing(self) -> dict[str, Any]:
        """The entries that a checkpoint saves for new images: white, shape, order of the pixels, pooling."""
        saved = {
            "white": self.white,
            "image_shape": list(self.image_shape),
            "permutation": self.permutation.astype(np.int64),
        }
        return saved if self.pool == 1 else saved | {"pool": self.pool}

    def fingerprint(self) -> Fingerprint:
        """Sizes and hashes of the labels and of a sample of the images, for :meth:`Solver.resume`."""
        return {
            name: f"{len(split)} {array_hash(split.labels)} {sample_hash(split.pixels)}"
            for name, split in self.splits.items()
        }

    def describe(self) -> str:
        """A summary: the sequences, and the number of images of each class in each split."""
        height, width = (size // self.pool for size in self.image_shape)
        order = "row by row" if self.permute_seed is None else f"permuted with seed {self.permute_seed}"
        means = "" if self.pool == 1 else f" of means of {self.pool} x {self.pool} pixels"
        lines = [f"{self.name}: {height} x {width} images{means}, {height * width} pixels each, {order}"]
        lines.append(f"{'split':<8}{'images':>9}" + "".join(f"{c:>8}" for c in range(self.num_classes)))
        for name, split in self.splits.items():
            counts = np.bincount(split.labels, minlength=self.num_classes)
            lines.append(f"{name:<8}{len(split):>9,}" + "".join(f"{count:>8,}" for count in counts))
        return "\n".join(lines)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name} {len(split):,} images" for name, split in self.splits.items())
        return f"PixelData({self.name}: {sizes}; {self.num_classes} classes)"

    def _check(self, split: str, images: np.ndarray, labels: np.ndarray) -> None:
        where = f"PixelData: {self.name}: {split}"
        if images.dtype != np.uint8 or images.ndim != 3 or images.shape[1:] != self.image_shape:
            sizes = self.image_shape if len(self.image_shape) == 2 else ("height", "width")
            expected = f"uint8 (N, {', '.join(map(str, sizes))})"
            raise mismatch(f"{where}: images", f"{images.dtype} {images.shape}", expected)
        if labels.dtype.kind not in "iu" or labels.shape != (len(images),):
            found = f"{labels.dtype} {labels.shape}"
            raise mismatch(f"{where}: labels", found, f"integers, one for each of {len(images)} images")
        if images.size and images.max() > self.white:
            raise mismatch(f"{where}: images", f"the byte {images.max()}", f"at most {self.white}")
        if labels.size and not (labels.min() >= 0 and labels.max() < self.num_classes):
            row = int(np.argmax((labels < 0) | (labels >= self.num_classes)))
            expected = f"classes from 0 to {self.num_classes - 1}"
            raise mismatch(f"{where}: labels", f"{labels[row]} at row {row}", expected)
