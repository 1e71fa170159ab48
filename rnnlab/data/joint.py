"""Several captioned data sets as one: the same images and captions, with different features.

They are the data of an ensemble whose members read different features. The ensemble's input is a tuple of the
arrays of all data sets, in their order: one array each, or two if a data set has local and global features.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from rnnlab.data.caption_inputs import CaptionInputs
from rnnlab.data.captions import CaptionData
from rnnlab.data.photographs.encoding import ImageEncoding
from rnnlab.data.split_data import as_rows
from rnnlab.data.splits import CaptionSplit
from rnnlab.errors import InputError
from rnnlab.reading import PathLike
from rnnlab.types import Indices


class JointSplit:
    """One split: the images and captions of the first data set, the features of all.

    Parameters
    ----------
    splits : sequence of CaptionSplit
        With the same names, references and captions.
    """

    def __init__(self, splits: Sequence[CaptionSplit]) -> None:
        self._splits, first = tuple(splits), splits[0]
        self.names, self.references, self.num_images = first.names, first.references, first.num_images
        self.check_references = first.check_references
        self.captions, self.image_idxs = first.captions, first.image_idxs

    @property
    def model_inputs(self) -> tuple[Any, ...]:
        """The features of all data sets, lazy or in memory."""
        return _flat(split.model_inputs for split in self._splits)

    def features_at(self, images: np.ndarray | slice) -> tuple[Any, ...]:
        """The features of images."""
        return _flat(split.features_at(images) for split in self._splits)


class JointCaptionData:
    """The images of several data sets, each with the features of all of them.

    Parameters
    ----------
    data : mapping of str to CaptionData
        The data sets by the names of the runs that read them, which errors use. All have the same vocabulary.

    Attributes
    ----------
    num_arrays : list of int
        The number of arrays of each data set.
    splits : list of str
        The names of the splits that all data sets have.
    vocabulary, image_dir, name
        As in the first data set.
    """

    def __init__(self, data: Mapping[str, CaptionData]) -> None:
        self._data, first = dict(data), next(iter(data.values()))
        self.vocabulary, self.image_dir, self.name = first.vocabulary, first.image_dir, first.name
        self.num_arrays = [num_arrays(each) for each in data.values()]
        self._joint: dict[str, JointSplit] = {}
        self.splits = [name for name in first.splits if all(name in each.splits for each in data.values())]

    def split(self, name: str) -> JointSplit:
        """The split of that name.

        Raises
        ------
        KeyError
            If a data set has none.
        ValueError
            If the data sets differ in its images or captions. The message names both runs.
        """
        if name not in self._joint:
            splits = {run: each.split(name) for run, each in self._data.items()}
            (first, expected), *others = splits.items()
            for run, found in others:
                _check_same(f"{run}: split {name}", found, f"{first}", expected)
            self._joint[name] = JointSplit(list(splits.values()))
        return self._joint[name]

    def batch(self, split: str, indices: Indices) -> tuple[tuple[Any, ...], np.ndarray]:
        """The features and the captions (N, L) of the captions ``indices``."""
        chosen, rows = self.split(split), as_rows(self, indices)
        return chosen.features_at(chosen.image_idxs[rows]), chosen.captions[rows]

    def features_of(self, names: Sequence[str]) -> tuple[Any, ...]:
        """The features of images of any split, by name; see :meth:`CaptionData.features_of`.

        Raises
        ------
        KeyError, ValueError
            As :meth:`CaptionData.features_of`. The message names the run.
        """
        return _flat(_for_each(self._data, lambda each: each.features_of(names)).values())


class JointCaptionInputs:
    """The inputs of several models without their data, each with its own scaling of the same features.

    Parameters
    ----------
    inputs : mapping of str to CaptionInputs
        The inputs by the names of the runs, which errors use.
    """

    def __init__(self, inputs: Mapping[str, CaptionInputs]) -> None:
        self._inputs, first = dict(inputs), next(iter(inputs.values()))
        self.vocabulary, self.image_dir = first.vocabulary, first.image_dir
        self.num_global_features = first.num_global_features
        self.num_arrays = [num_arrays(each) for each in inputs.values()]

    def standardise(self, features: Any, source: str = "features") -> tuple[Any, ...]:
        """Scale features for each model; see :meth:`FeatureScaling.standardise`.

        Raises
        ------
        ValueError, TypeError
            If the features do not fit a model. The message names its run.
        """
        self._check_same_kind()
        scaled: list[tuple[CaptionInputs, Any]] = []
        for run, each in self._inputs.items():
            same = next((arrays for other, arrays in scaled if _same_scaling(each, other)), None)
            if same is None:
                same = each.standardise(features, f"{source}, for {run}")
            scaled.append((each, same))
        return _flat(arrays for _, arrays in scaled)

    def check_files(self, files: Mapping[str, Any]) -> None:
        """Call :meth:`CaptionInputs.check_files` for each model; an error names its run."""
        _for_each(self._inputs, lambda each: each.check_files(files))

    def _check_same_kind(self) -> None:
        """Check that the models read the same kind of features, which one file can have."""
        (first, expected), *others = self._inputs.items()
        for run, found in others:
            if (found.reads_grid, num_arrays(found)) != (expected.reads_grid, num_arrays(expected)):
                raise InputError(
                    f"{run} reads {found.reads}, and {first} {expected.reads}: one file of features does not "
                    "serve both; name a split or images instead, of which each run has its own features"
                )

    @property
    def knows_encoders(self) -> bool:
        """Whether it is known how the features of all models are made."""
        return all(each.knows_encoders for each in self._inputs.values())

    @property
    def encodings(self) -> dict[str, ImageEncoding]:
        """How the features of each model are made, by run and field."""
        return {
            f"{run}: {field}": encoding
            for run, each in self._inputs.items()
            for field, encoding in each.encodings.items()
        }

    def with_encoder(
        self, path: PathLike, pca: PathLike | None = None, **settings: Any
    ) -> JointCaptionInputs:
        """See :meth:`CaptionInputs.with_encoder`: one encoder for all models."""
        return JointCaptionInputs(
            _for_each(self._inputs, lambda each: each.with_encoder(path, pca, **settings))
        )

    def encode(self, photographs: Sequence[PathLike]) -> tuple[Any, ...]:
        """The features of photographs for each model; see :meth:`CaptionInputs.encode`."""
        return self.open_encoders()(photographs)

    def open_encoders(self) -> Callable[[Sequence[PathLike]], tuple[Any, ...]]:
        """The function from photographs to features; see :meth:`CaptionInputs.open_encoders`."""
        encoders = _for_each(self._inputs, lambda each: each.open_encoders())
        return lambda photographs: _flat(_for_each(encoders, lambda encode: encode(photographs)).values())


def num_arrays(inputs: CaptionData | CaptionInputs) -> int:
    """The number of feature arrays that a model reads: two if it has local and global features."""
    return 1 if inputs.num_global_features is None else 2


def _for_each(things: Mapping[str, Any], act: Callable[[Any], Any]) -> dict[str, Any]:
    """The results of ``act`` by run; an error names the run."""
    found = {}
    for run, each in things.items():
        try:
            found[run] = act(each)
        except ValueError as error:
            kind = type(error) if isinstance(error, InputError) else InputError
            raise kind(f"{run}: {error}") from None
    return found


def _same_scaling(one: CaptionInputs, other: CaptionInputs) -> bool:
    ours, theirs = one.scaling.arrays(), other.scaling.arrays()
    return ours.keys() == theirs.keys() and all(np.array_equal(ours[name], theirs[name]) for name in ours)


def _flat(features: Iterable[Any]) -> tuple[Any, ...]:
    """Arrays and tuples of arrays as one tuple of arrays."""
    return tuple(array for part in features for array in (part if isinstance(part, tuple) else (part,)))


def _check_same(where: str, found: CaptionSplit, other: str, expected: CaptionSplit) -> None:
    """Check that two splits have the same images, references and captions."""
    for noun, ours, theirs in (
        ("images", found.names, expected.names),
        ("references", found.references, expected.references),
    ):
        if len(ours) != len(theirs):
            raise InputError(f"{where}: found {len(ours):,} {noun}, expected the {len(theirs):,} of {other}")
        differ = next((k for k, (a, b) in enumerate(zip(ours, theirs, strict=True)) if a != b), None)
        if differ is not None:
            raise InputError(
                f"{where}: {noun} {differ}: found {ours[differ]!r}, expected {theirs[differ]!r} as {other}"
            )
    for name in ("image_idxs", "captions"):
        if not np.array_equal(getattr(found, name), getattr(expected, name)):
            raise InputError(
                f"{where}: found other {name} than those of {other}, expected data of the same captions "
                "with the same maximum length"
            )
