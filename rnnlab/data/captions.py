"""Captioned images by splits, with epochs and batches of features and captions for the solver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from rnnlab.data.blocks import feature_statistics
from rnnlab.data.caption_inputs import CaptionInputs
from rnnlab.data.course import IMAGE_FOLDER, read_course, write_course
from rnnlab.data.fingerprint import Fingerprint, array_hash, sample_hash, word_hash
from rnnlab.data.names import composed
from rnnlab.data.photographs.encoding import ImageEncoding
from rnnlab.data.scaling import FeatureScaling, Scaling
from rnnlab.data.split_data import SplitData, as_rows, batches
from rnnlab.data.splits import CaptionSplit, with_decoded_references
from rnnlab.data.vocabulary import END, NULL, START, UNK, Vocabulary
from rnnlab.errors import InputError, InputTypeError, MissingDataError
from rnnlab.reading import PathLike, mismatch
from rnnlab.types import Indices


class CaptionData(SplitData[CaptionSplit]):
    """A captioned data set, by splits. Every caption is a separate example.

    Parameters
    ----------
    vocabulary : Vocabulary
    splits : mapping of str to CaptionSplit
        One or more, usually ``train``, ``val`` and ``test``.
    image_dir : Path, optional
        The folder of the pictures.
    name : str
        Used in messages.
    standardise : bool
        Whether to scale every feature to mean 0 and standard deviation 1 over the training split. The
        features of all splits are then scaled, and :meth:`standardise` scales new ones.
    max_train : int, optional
        Use only this number of training captions, drawn with seed 0.

    Attributes
    ----------
    scaling : FeatureScaling
        The mean and the standard deviation of each field of features: zeros and ones without ``standardise``.
    encodings : dict of str to ImageEncoding
        How each field of features was made, if the files record it.

    Raises
    ------
    ValueError
        If a token is outside the vocabulary, or the features of two splits differ in shape or in how
        they were made. The error names the files.
    TypeError
        If ``vocabulary`` is not a Vocabulary, or ``splits`` is not a mapping to CaptionSplits.
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
        if not isinstance(vocabulary, Vocabulary):
            raise InputTypeError(
                f"CaptionData: vocabulary is a {type(vocabulary).__name__}, expected a rnnlab.data.Vocabulary"
            )
        if not isinstance(splits, Mapping):
            raise InputTypeError(
                f"CaptionData: splits is a {type(splits).__name__}, expected a dict of CaptionSplits by name"
            )
        for key, each in splits.items():
            if not isinstance(each, CaptionSplit):
                raise InputTypeError(
                    f"CaptionData: splits has a {type(each).__name__} as {key}, expected a CaptionSplit"
                )
        self.vocabulary = vocabulary
        self.splits = dict(splits)
        self.image_dir = image_dir
        self.name = name
        shapes = self._feature_shapes()
        self.scaling = FeatureScaling({field: Scaling.identity(shape[-1]) for field, shape in shapes.items()})
        self.encodings = {field: found for field in shapes if (found := self._encoding_of(field)) is not None}
        for split in self.splits.values():
            split.check_tokens(vocabulary)
        if max_train is not None:
            self.splits["train"] = self.split("train").sample(max_train, np.random.default_rng(0))
        self._fingerprint = self._fingerprint_of_splits()
        if standardise:
            self._standardise_splits()

    @classmethod
    def from_course(
        cls,
        directory: PathLike,
        *,
        features: str = "pca",
        global_features: str | None = None,
        splits: Sequence[str] | None = None,
        standardise: bool = True,
        max_train: int | None = None,
        name: str | None = None,
        lazy: bool = False,
    ) -> CaptionData:
        """From a folder in the course's layout.

        Parameters
        ----------
        directory : path
        features : {"pca", "full", "local"}
            Which feature files to read.
        global_features : {"pca", "full"}, optional
            Which files have a global vector of each image, in addition to local features.
        splits : sequence of str, optional
            Which splits to read; all if left out.
        standardise, max_train
            As in the constructor.
        name : str, optional
            By default that of the folder.
        lazy : bool
            Read features from the file batch by batch, for files larger than memory.

        Raises
        ------
        OSError, KeyError, ValueError
            If a field is missing or invalid. The message names file, field, found and expected.
        """
        if isinstance(directory, Mapping):
            raise InputTypeError(
                "CaptionData.from_course: directory is a dictionary, expected a folder: use from_arrays"
            )
        directory = Path(directory)
        vocabulary, read = read_course(
            directory, features=features, global_features=global_features, splits=splits, lazy=lazy
        )
        images = directory / IMAGE_FOLDER
        return cls(
            vocabulary,
            read,
            images if images.is_dir() else None,
            name or directory.resolve().name,
            standardise=standardise,
            max_train=max_train,
        )

    @classmethod
    def from_arrays(
        cls,
        data: Mapping[str, Any],
        *,
        standardise: bool = False,
        max_train: int | None = None,
        name: str = "captions",
    ) -> CaptionData:
        """From the dictionary of :func:`load_coco_data`.

        By default the features are not standardised, because the course gives the dictionary's own features
        to the model, too.

        Parameters
        ----------
        data : mapping
        standardise, max_train, name
            As in the constructor.

        Raises
        ------
        KeyError, ValueError
            If a field is missing or invalid. The message names field, found and expected.
        """
        vocabulary, splits = _from_dictionary(data)
        return cls(vocabulary, splits, None, name, standardise=standardise, max_train=max_train)

    def to_course(self, directory: PathLike, *, features: str = "pca", global_features: str = "full") -> None:
        """Write a folder in the course's layout, with the features as they are (standardised or not).

        The folder is complete or absent. How features were made is not recorded if they are standardised:
        with ``standardise=False`` the folder has the features that the encoder makes, and its record.

        Parameters
        ----------
        directory : path
            Must not exist.
        features, global_features : {"pca", "full", "local"}
            The feature files to write features and, if there are any, global features to.

        Raises
        ------
        OSError, ValueError
            As :func:`rnnlab.data.course.write_course`; FileExistsError if ``directory`` exists.
        """
        splits = {
            name: replace(split, encodings=self._unscaled_encodings(split))
            for name, split in self.splits.items()
        }
        write_course(directory, self.vocabulary, splits, features=features, global_features=global_features)

    def _unscaled_encodings(self, split: CaptionSplit) -> dict[str, ImageEncoding]:
        """How the features of a split were made, for those fields that are not scaled."""
        return {name: each for name, each in split.encodings.items() if self.scaling[name].is_identity}

    def epoch(self, split: str, batch_size: int, rng: np.random.Generator | None = None) -> list[np.ndarray]:
        """The captions of one pass over ``split``, a batch at a time; the last batch may be smaller.

        Parameters
        ----------
        split : str
        batch_size : int
        rng : Generator, optional
            Shuffles the captions. Without it they are in their original order.
        """
        chosen = self.split(split)
        return batches(chosen.epoch_order(chosen.image_idxs, rng), batch_size)

    def batch(self, split: str, indices: Indices) -> tuple[Any, np.ndarray]:
        """The features (N, ..., D), or a tuple with global ones, and the captions (N, L) of ``indices``."""
        chosen, rows = self.split(split), as_rows(self, indices)
        return chosen.features_at(chosen.image_idxs[rows]), chosen.captions[rows]

    def row_lengths(self, split: str, indices: np.ndarray) -> np.ndarray:
        """The number of tokens that a model predicts in each caption of ``indices`` (N,)."""
        return np.count_nonzero(self.split(split).captions[indices][..., 1:] != NULL, axis=-1)

    @staticmethod
    def num_tokens(batch: tuple[Any, np.ndarray]) -> int:
        """The number of tokens that a model predicts in ``batch``: words and <END>."""
        return int(np.count_nonzero(batch[1][..., 1:] != NULL))

    @property
    def in_memory(self) -> bool:
        """Whether no features are read lazily, so that a batch is a copy of rows."""
        return all(
            isinstance(getattr(split, name), np.ndarray)
            for split in self.splits.values()
            for name in split.feature_fields
        )

    @property
    def feature_shape(self) -> tuple[int, ...]:
        """The shape of an image's features: (D,), or (regions, D) of a grid."""
        return next(iter(self.splits.values())).features.shape[1:]

    @property
    def num_features(self) -> int:
        """D, the size of a feature vector."""
        return self.scaling["features"].mean.size

    @property
    def num_global_features(self) -> int | None:
        """G, the size of a global vector; None if there are none."""
        scaling = self.scaling.get("global_features")
        return None if scaling is None else scaling.mean.size

    def features_of(self, names: Sequence[str]) -> Any:
        """The features of images of any split, by name, or by file name without its folder.

        Returns
        -------
        (N, ..., D), or a tuple of that and the global ones (N, G)

        Raises
        ------
        KeyError
            If an image is in none of the splits.
        ValueError
            If there are no names; if several images have the name; or if none has it, and it is the file name
            of several.
        TypeError
            If ``names`` is a string.
        """
        if isinstance(names, str):
            raise InputTypeError(f"features_of: names is {names!r}, expected a list of names")
        names = list(map(composed, names))
        places: dict[str, list[tuple[str, int]]] = {}
        for key, split in self.splits.items():
            for row, name in enumerate(split.names):
                places.setdefault(composed(name), []).append((key, row))
        by_file: dict[str, list[str]] = {}
        for name in places:
            by_file.setdefault(Path(name).name, []).append(name)
        found = []
        for name in names:
            known = [name] if name in places else by_file.get(Path(name).name, [])
            if not known:
                raise MissingDataError(
                    f"{self.name} has no image {name!r}, expected one of its {len(places):,} images "
                    f"(or a split: {', '.join(self.splits)})"
                )
            if len(known) > 1:
                raise InputError(f"{name!r} may be any of {', '.join(known)}: expected one of these names")
            place, *others = places[known[0]]
            if others:
                listed = ", ".join(f"{key} {row}" for key, row in (place, *others))
                raise InputError(f"{self.name} has several images {name!r}: splits and rows {listed}")
            found.append(place)
        if not found:
            raise InputError("features_of: names is empty, expected at least one image")
        rows = [self.splits[key].features_at(slice(row, row + 1)) for key, row in found]
        if self.num_global_features is None:
            return np.concatenate(rows)
        return tuple(np.concatenate(part) for part in zip(*rows, strict=True))

    def standardise(self, features: Any, source: str = "features") -> Any:
        """Scale new features as those of the splits; see :meth:`FeatureScaling.standardise`."""
        return self.scaling.standardise(features, source)

    @property
    def inputs(self) -> CaptionInputs:
        """Vocabulary, scaling and encodings, without the data."""
        return CaptionInputs(
            self.vocabulary,
            self.scaling,
            self.image_dir,
            encodings=self.encodings,
            reads_grid=len(self.feature_shape) > 1,
        )

    def preprocessing(self) -> dict[str, Any]:
        """The entries that a checkpoint saves for new images: scaling, encodings, name of the tokenizer."""
        saved = {**self.scaling.arrays(), "tokenizer": "alphanumeric"}
        for field, encoding in self.encodings.items():
            saved |= encoding.arrays(field)
        return saved

    def fingerprint(self) -> Fingerprint:
        """Sizes and hashes of vocabulary, captions and features before scaling, for :meth:`Solver.resume`.

        References have a separate hash, because scores compare captions with all of their words, including
        unknown ones.
        """
        return dict(self._fingerprint)

    def describe(self) -> str:
        """A summary: the splits, the vocabulary, the encoders of features, and a caption of each split."""
        lines = [f"{self.name}: {len(self.vocabulary):,} words"]
        lines.append(
            f"{'split':<8}{'images':>9}{'captions':>10}{'words':>8}{'longest':>9}{'<UNK>':>8}  features"
        )
        for name, split in self.splits.items():
            special = np.isin(split.captions, (NULL, START, END))
            words = (~special).sum(axis=1)
            mean = words.sum() / max(1, len(words))
            unknown = (split.captions == UNK).sum() / max(1, words.sum())
            shape = " and ".join(
                " x ".join(map(str, getattr(split, field).shape[1:])) for field in split.feature_fields
            )
            lines.append(
                f"{name:<8}{split.num_images:>9,}{len(split.captions):>10,}{mean:>8.1f}"
                f"{words.max(initial=0):>9}{unknown:>8.1%}  {shape} {np.dtype(split.features.dtype)}"
            )
        for field, encoding in self.encodings.items():
            lines.append(f"{field} by {encoding.describe()}")
        for name, split in self.splits.items():
            if split.names and split.references[0]:
                lines.append(f"{name}: {Path(split.names[0]).name}: {split.references[0][0]}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        sizes = ", ".join(
            f"{name} {split.num_images:,} images {len(split.captions):,} captions"
            for name, split in self.splits.items()
        )
        return f"CaptionData({self.name}: {sizes}; {len(self.vocabulary):,} words)"

    def _feature_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of an image's features, by field, which all splits share."""
        shapes = {}
        for name in ("features", "global_features"):
            of_splits = {key: getattr(split, name) for key, split in self.splits.items()}
            found = {None if features is None else features.shape[1:] for features in of_splits.values()}
            if len(found) != 1:
                listed = ", ".join(
                    f"{getattr(each, 'shape', None)} in {self.splits[key].where(name)} ({key})"
                    for key, each in of_splits.items()
                )
                raise mismatch(
                    f"CaptionData: {self.name}: {name}", listed or "no split", "one shape in all splits"
                )
            (shape,) = found
            if shape is not None:
                shapes[name] = shape
        return shapes

    def _encoding_of(self, field: str) -> ImageEncoding | None:
        """How the features of a field were made, in all splits; None if no file records it."""
        first, *others = self.splits.values()
        expected = first.encodings.get(field)
        for split in others:
            found = split.encodings.get(field)
            if not (found is expected or (found is not None and found.same_as(expected))):
                ours, theirs = (
                    "no recorded encoder" if each is None else each.describe() for each in (found, expected)
                )
                raise mismatch(
                    split.where(field), f"features by {ours}", f"by {theirs}, as {first.where(field)}"
                )
        return expected

    def _fingerprint_of_splits(self) -> Fingerprint:
        found: Fingerprint = {
            "vocabulary": f"{len(self.vocabulary)} {word_hash(self.vocabulary.idx_to_word)}"
        }
        for name, split in self.splits.items():
            found[f"{name} captions"] = (
                f"{len(split.captions)} {array_hash(split.captions, split.image_idxs)}"
            )
            found[f"{name} references"] = word_hash(chain.from_iterable(split.references))
            for field in split.feature_fields:
                features = getattr(split, field)
                found[f"{name} {field}"] = f"{list(features.shape)} {sample_hash(features)}"
        return found

    def _standardise_splits(self) -> None:
        for name in self.scaling:
            scaling = Scaling(*feature_statistics(getattr(self.split("train"), name)))
            self.scaling[name] = scaling
            for key, split in self.splits.items():
                self.splits[key] = replace(split, **{name: scaling.apply(getattr(split, name))})


def _from_dictionary(data: Mapping[str, Any]) -> tuple[Vocabulary, dict[str, CaptionSplit]]:
    def get(*fields: str) -> Any:
        for field in fields:
            if field in data:
                return data[field]
        raise MissingDataError(
            f"from_arrays: found the keys {', '.join(data) or 'none'}, expected {' or '.join(fields)}"
        )

    vocabulary = Vocabulary(get("idx_to_word"))
    splits = {}
    for split in [key.removesuffix("_captions") for key in data if key.endswith("_captions")]:
        features, captions = get(f"{split}_features"), get(f"{split}_captions")
        image_idxs = get(f"{split}_image_idxes", f"{split}_image_idxs")
        fields = {"captions": f"{split}_captions", "image_idxs": f"{split}_image_idxes"}
        fields |= {"features": f"{split}_features", "names": f"{split}_urls"}
        sources = {name: f"from_arrays: {key}" for name, key in fields.items()}
        splits[split] = with_decoded_references(
            vocabulary, features, captions, image_idxs, tuple(map(str, get(f"{split}_urls"))), sources
        )
    return vocabulary, splits
