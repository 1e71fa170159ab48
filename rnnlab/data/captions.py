"""Captioned images as the solver wants them: epochs of batches of features and captions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rnnlab.data.blocks import feature_statistics
from rnnlab.data.course import IMAGE_FOLDER, read_course, write_course
from rnnlab.data.hdf5 import PathLike, mismatch
from rnnlab.data.lazy import LazyFeatures
from rnnlab.data.splits import CaptionSplit, with_decoded_references
from rnnlab.data.vocabulary import NULL, Vocabulary


class CaptionData:
    """A captioned data set, by splits. Every caption is an example of its own.

    Parameters
    ----------
    vocabulary : Vocabulary
    splits : mapping of str to CaptionSplit
        Of the usual names ``train``, ``val`` and ``test``, one or more.
    image_dir : Path, optional
        Where the pictures are.
    name : str
        For people.
    standardise : bool
        Whether to shift and scale every feature to mean 0 and standard deviation 1 over the training split.
        The features of all splits are then kept so, and new ones are brought there by :meth:`standardise`.
    max_train : int, optional
        Keep only so many training captions, drawn by a seed of 0.

    Attributes
    ----------
    feature_mean, feature_std : (D,) float32
        What :meth:`standardise` subtracts and divides by: zeros and ones where nothing was fitted.

    Raises
    ------
    ValueError
        If a token is outside the vocabulary, or the features of two splits differ in shape.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        splits: Mapping[str, CaptionSplit],
        image_dir: Path | None = None,
        name: str = "captions",
        *,
        standardise: bool = False,
        max_train: int | None = None,
    ) -> None:
        self.vocabulary = vocabulary
        self.splits = dict(splits)
        self.image_dir = image_dir
        self.name = name
        shapes = {split.features.shape[1:] for split in self.splits.values()}
        if len(shapes) != 1:
            found = ", ".join(f"{name} {split.features.shape}" for name, split in self.splits.items())
            raise mismatch(
                f"CaptionData: {self.name}: features", found or "no split", "one shape in all splits"
            )
        for split in self.splits.values():
            split.check_tokens(vocabulary)
        self.feature_mean = np.zeros(shapes.pop()[-1:], np.float32)
        self.feature_std = np.ones_like(self.feature_mean)
        if standardise:
            self._standardise_splits()
        if max_train is not None:
            self.splits["train"] = self.split("train").sample(max_train, np.random.default_rng(0))

    @classmethod
    def from_course(
        cls,
        source: Mapping[str, Any] | PathLike,
        *,
        features: str = "pca",
        splits: Sequence[str] | None = None,
        standardise: bool | None = None,
        max_train: int | None = None,
        name: str | None = None,
        lazy: bool = False,
    ) -> CaptionData:
        """From a folder in the course's layout, or from the dictionary of :func:`load_coco_data`.

        Parameters
        ----------
        source : path or mapping
        features : {"pca", "full", "local"}
            Of a folder: which feature files to read.
        splits : sequence of str, optional
            Of a folder: which splits to read; all if left out.
        standardise : bool, optional
            If left out, the features of a folder are standardised, and those of a dictionary are taken as
            they are, since whoever holds the dictionary will also give its features to the model.
        max_train : int, optional
            As of the constructor.
        name : str, optional
        lazy : bool
            Of a folder: read features from the file as they are asked for, those larger than memory.

        Raises
        ------
        OSError, KeyError, ValueError
            If something is missing or not what it should be; the message says what and where.
        """
        if isinstance(source, Mapping):
            vocabulary, read = _from_dictionary(source)
            return cls(
                vocabulary, read, None, name or "captions", standardise=bool(standardise), max_train=max_train
            )
        directory = Path(source)
        vocabulary, read = read_course(directory, features=features, splits=splits, lazy=lazy)
        images = directory / IMAGE_FOLDER
        return cls(
            vocabulary,
            read,
            images if images.is_dir() else None,
            name or directory.resolve().name,
            standardise=standardise is None or standardise,
            max_train=max_train,
        )

    def to_course(self, directory: PathLike, *, features: str = "pca") -> None:
        """Write a folder in the course's layout, the features as they are now (standardised or not)."""
        write_course(directory, self.vocabulary, self.splits, features=features)

    def epoch(self, split: str, batch_size: int, rng: np.random.Generator | None = None) -> list[np.ndarray]:
        """The captions of one pass over ``split``, a batch at a time; the last batch may be smaller.

        Parameters
        ----------
        split : str
        batch_size : int
        rng : Generator, optional
            Shuffles; without it the captions come in their order.
        """
        if batch_size < 1:
            raise ValueError(f"epoch: batch_size is {batch_size}, expected at least 1")
        chosen = self.split(split)
        if rng is None:
            order = np.arange(len(chosen.captions))
        elif isinstance(chosen.features, LazyFeatures):
            order = chosen.features.epoch_order(chosen.image_idxs, rng)
        else:
            order = rng.permutation(len(chosen.captions))
        return np.split(order, range(batch_size, len(order), batch_size)) if len(order) else []

    def batch(self, split: str, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The features (N, ..., D) and the captions (N, L) of the captions ``indices`` (N,)."""
        chosen = self.split(split)
        return chosen.features[chosen.image_idxs[indices]], chosen.captions[indices]

    @staticmethod
    def num_tokens(batch: tuple[np.ndarray, np.ndarray]) -> int:
        """How many tokens a model has to predict in ``batch``: words and <END>."""
        return int(np.count_nonzero(batch[1][:, 1:] != NULL))

    @property
    def in_memory(self) -> bool:
        """Whether no features are read from files: a batch is then a copy of some rows."""
        return all(isinstance(split.features, np.ndarray) for split in self.splits.values())

    @property
    def num_features(self) -> int:
        """D, the numbers in a feature vector."""
        return self.feature_mean.size

    def features_of(self, names: Sequence[str]) -> np.ndarray:
        """The features (N, ..., D) of images of any split, by file name; folders and addresses do not count.

        Raises
        ------
        KeyError
            If an image is in none of the splits.
        """
        places = {
            Path(name).name: (split, row)
            for split in self.splits.values()
            for row, name in enumerate(split.names)
        }
        for name in names:
            if Path(name).name not in places:
                raise KeyError(
                    f"{self.name} has no image {name!r}, expected one of its {len(places):,} images "
                    f"(or a split: {', '.join(self.splits)})"
                )
        found = [places[Path(name).name] for name in names]
        return np.stack([split.features[row : row + 1][0] for split, row in found])

    def standardise(self, features: np.ndarray) -> np.ndarray:
        """Bring new feature vectors (..., D) to the scale of those of the splits.

        Raises
        ------
        ValueError
            If they have another D.
        """
        if features.shape[-1:] != self.feature_mean.shape:
            raise mismatch(f"{self.name}: features", f"shape {features.shape}", f"(N, {self.num_features})")
        return ((features - self.feature_mean) / self.feature_std).astype(np.float32)

    def __repr__(self) -> str:
        sizes = ", ".join(
            f"{name} {split.num_images:,} images {len(split.captions):,} captions"
            for name, split in self.splits.items()
        )
        return f"CaptionData({self.name}: {sizes}; {len(self.vocabulary):,} words)"

    def split(self, name: str) -> CaptionSplit:
        """The split of that name.

        Raises
        ------
        KeyError
            If there is none.
        """
        try:
            return self.splits[name]
        except KeyError:
            raise KeyError(f"{self.name} has the splits {', '.join(self.splits)}, not {name!r}") from None

    def _standardise_splits(self) -> None:
        self.feature_mean, self.feature_std = feature_statistics(self.split("train").features)
        for name, split in self.splits.items():
            features = split.features
            if isinstance(features, LazyFeatures):
                features = features.standardised(self.feature_mean, self.feature_std)
            else:
                features = self.standardise(features)
            self.splits[name] = replace(split, features=features)


def _from_dictionary(data: Mapping[str, Any]) -> tuple[Vocabulary, dict[str, CaptionSplit]]:
    def get(*fields: str) -> Any:
        for field in fields:
            if field in data:
                return data[field]
        raise KeyError(
            f"from_course: found the keys {', '.join(data) or 'none'}, expected {' or '.join(fields)}"
        )

    vocabulary = Vocabulary(get("idx_to_word"))
    splits = {}
    for split in [key.removesuffix("_captions") for key in data if key.endswith("_captions")]:
        features, captions = get(f"{split}_features"), get(f"{split}_captions")
        image_idxs = get(f"{split}_image_idxes", f"{split}_image_idxs")
        fields = {"captions": f"{split}_captions", "image_idxs": f"{split}_image_idxes"}
        fields |= {"features": f"{split}_features", "names": f"{split}_urls"}
        sources = {name: f"from_course: {key}" for name, key in fields.items()}
        splits[split] = with_decoded_references(
            vocabulary, features, captions, image_idxs, tuple(map(str, get(f"{split}_urls"))), sources
        )
    return vocabulary, splits
