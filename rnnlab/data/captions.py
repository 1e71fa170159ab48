"""Captioned images as the solver wants them: epochs of batches of features and captions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from rnnlab.data.blocks import feature_statistics
from rnnlab.data.course import IMAGE_FOLDER, read_course, write_course
from rnnlab.data.errors import MissingDataError
from rnnlab.data.hdf5 import PathLike, mismatch
from rnnlab.data.lazy import LazyFeatures
from rnnlab.data.split_data import SplitData, batches
from rnnlab.data.splits import CaptionSplit, with_decoded_references
from rnnlab.data.vocabulary import NULL, Vocabulary


class Scaling(NamedTuple):
    """What is subtracted from features (..., D), and what they are then divided by."""

    mean: np.ndarray  # (D,) float32
    std: np.ndarray

    @classmethod
    def none(cls, D: int) -> Self:
        """That which changes nothing."""
        return cls(np.zeros(D, np.float32), np.ones(D, np.float32))

    def of(self, features: Any) -> Any:
        """The features, scaled; lazy ones stay so."""
        if isinstance(features, LazyFeatures):
            return features.standardised(*self)
        return ((features - self.mean) / self.std).astype(np.float32)


class CaptionData(SplitData[CaptionSplit]):
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
    scaling : dict of str to Scaling
        By the name of a field of features, what :meth:`standardise` subtracts and divides by: zeros and ones
        where nothing was fitted.

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
        self.scaling = {name: Scaling.none(shape[-1]) for name, shape in self._feature_shapes().items()}
        for split in self.splits.values():
            split.check_tokens(vocabulary)
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
        global_features: str | None = None,
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
        global_features : {"pca", "full"}, optional
            Of a folder: which files have a global vector of each image, beside local features.
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
        vocabulary, read = read_course(
            directory, features=features, global_features=global_features, splits=splits, lazy=lazy
        )
        images = directory / IMAGE_FOLDER
        return cls(
            vocabulary,
            read,
            images if images.is_dir() else None,
            name or directory.resolve().name,
            standardise=standardise is None or standardise,
            max_train=max_train,
        )

    def to_course(self, directory: PathLike, *, features: str = "pca", global_features: str = "full") -> None:
        """Write a folder in the course's layout, the features as they are now (standardised or not)."""
        write_course(
            directory, self.vocabulary, self.splits, features=features, global_features=global_features
        )

    def epoch(self, split: str, batch_size: int, rng: np.random.Generator | None = None) -> list[np.ndarray]:
        """The captions of one pass over ``split``, a batch at a time; the last batch may be smaller.

        Parameters
        ----------
        split : str
        batch_size : int
        rng : Generator, optional
            Shuffles; without it the captions come in their order.
        """
        chosen = self.split(split)
        if rng is None:
            order = np.arange(len(chosen.captions))
        elif isinstance(chosen.features, LazyFeatures):
            order = chosen.features.epoch_order(chosen.image_idxs, rng)
        else:
            order = rng.permutation(len(chosen.captions))
        return batches(order, batch_size)

    def batch(self, split: str, indices: np.ndarray) -> tuple[Any, np.ndarray]:
        """The features (N, ..., D), or a tuple with global ones, and the captions (N, L) of ``indices``."""
        chosen = self.split(split)
        return chosen.features_at(chosen.image_idxs[indices]), chosen.captions[indices]

    @staticmethod
    def num_tokens(batch: tuple[Any, np.ndarray]) -> int:
        """How many tokens a model has to predict in ``batch``: words and <END>."""
        return int(np.count_nonzero(batch[1][:, 1:] != NULL))

    @property
    def in_memory(self) -> bool:
        """Whether no features are read from files: a batch is then a copy of some rows."""
        return all(
            isinstance(getattr(split, name), np.ndarray)
            for split in self.splits.values()
            for name in split.feature_fields
        )

    @property
    def num_features(self) -> int:
        """D, the numbers in a feature vector."""
        return self.scaling["features"].mean.size

    @property
    def num_global_features(self) -> int | None:
        """G, the numbers in a global vector; None if there are none."""
        scaling = self.scaling.get("global_features")
        return None if scaling is None else scaling.mean.size

    def features_of(self, names: Sequence[str]) -> Any:
        """The features of images of any split, by file name; folders and addresses do not count.

        Returns
        -------
        (N, ..., D), or a tuple of that and the global ones (N, G)

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
                raise MissingDataError(
                    f"{self.name} has no image {name!r}, expected one of its {len(places):,} images "
                    f"(or a split: {', '.join(self.splits)})"
                )
        found = [places[Path(name).name] for name in names]
        rows = [split.features_at(slice(row, row + 1)) for split, row in found]
        if self.num_global_features is None:
            return np.concatenate(rows)
        return tuple(np.concatenate(part) for part in zip(*rows, strict=True))

    def standardise(self, features: Any) -> Any:
        """Bring new features to the scale of those of the splits.

        Parameters
        ----------
        features : (..., D), or a tuple of that and (..., G) where the splits have global features

        Returns
        -------
        as ``features``, float32

        Raises
        ------
        ValueError
            If they have another D or G, or there is one of the two too many or too few.
        """
        given = features if isinstance(features, tuple) else (features,)
        if len(given) != len(self.scaling):
            raise mismatch(
                f"{self.name}: features", f"{len(given)} arrays", f"one each of {', '.join(self.scaling)}"
            )
        for part, (name, scaling) in zip(given, self.scaling.items(), strict=True):
            if part.shape[-1:] != scaling.mean.shape:
                raise mismatch(f"{self.name}: {name}", f"shape {part.shape}", f"(..., {scaling.mean.size})")
        scaled = tuple(scaling.of(part) for part, scaling in zip(given, self.scaling.values(), strict=True))
        return scaled if isinstance(features, tuple) else scaled[0]

    def __repr__(self) -> str:
        sizes = ", ".join(
            f"{name} {split.num_images:,} images {len(split.captions):,} captions"
            for name, split in self.splits.items()
        )
        return f"CaptionData({self.name}: {sizes}; {len(self.vocabulary):,} words)"

    def _feature_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of an image's features, by field; it is that of all splits."""
        shapes = {}
        for name in ("features", "global_features"):
            of_splits = {key: getattr(split, name) for key, split in self.splits.items()}
            found = {None if features is None else features.shape[1:] for features in of_splits.values()}
            if len(found) != 1:
                listed = ", ".join(f"{key} {getattr(each, 'shape', None)}" for key, each in of_splits.items())
                raise mismatch(
                    f"CaptionData: {self.name}: {name}", listed or "no split", "one shape in all splits"
                )
            (shape,) = found
            if shape is not None:
                shapes[name] = shape
        return shapes

    def _standardise_splits(self) -> None:
        for name in self.scaling:
            scaling = Scaling(*feature_statistics(getattr(self.split("train"), name)))
            self.scaling[name] = scaling
            for key, split in self.splits.items():
                self.splits[key] = replace(split, **{name: scaling.of(getattr(split, name))})


def _from_dictionary(data: Mapping[str, Any]) -> tuple[Vocabulary, dict[str, CaptionSplit]]:
    def get(*fields: str) -> Any:
        for field in fields:
            if field in data:
                return data[field]
        raise MissingDataError(
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
