"""One split of a captioned data set: features of images, captions, and the image of each caption."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rnnlab.data.blocks import Features
from rnnlab.data.lazy import LazyFeatures
from rnnlab.data.photographs.encoding import ImageEncoding
from rnnlab.data.vocabulary import END, NULL, START, Vocabulary, tokenize
from rnnlab.errors import InputError, InputTypeError
from rnnlab.layers.checks import check_rng
from rnnlab.options import Count, check_option
from rnnlab.reading import mismatch


@dataclass(frozen=True, eq=False)
class CaptionSplit:
    """Images and their captions, one caption per row. The constructor checks the contents.

    Attributes
    ----------
    features : (num_images, ..., D) array of float, or :class:`~rnnlab.data.LazyFeatures`
        A global vector of each image (D,), or a grid of local ones (regions, D).
    captions : (num_captions, L) int32
        <START>, words, <END>, <NULL> padding. Any other integer dtype is converted.
    image_idxs : (num_captions,) int32
        The row of ``features`` that each caption describes.
    names : tuple of str, num_images long
        File names or URLs, for :func:`rnnlab.data.image_from_url`.
    references : list of list of str, num_images long
        The original sentences of each image: the references for the scores.
    sources : mapping of str to str
        The file and field from which each field was read, for messages.
    global_features : (num_images, G) array of float or LazyFeatures, optional
        A global vector of each image, in addition to local ``features``.
    encodings : mapping of str to ImageEncoding
        How each field of features was made, if its file records it.

    Raises
    ------
    ValueError
        If a field has a wrong dtype, shape or length, a number is not finite, or an index is out of range.
    TypeError
        If features are not arrays, or references are not sentences for each image.
    """

    features: Features
    captions: np.ndarray
    image_idxs: np.ndarray
    names: tuple[str, ...]
    references: list[list[str]]
    sources: Mapping[str, str] = field(default_factory=dict, repr=False)
    global_features: Features | None = None
    encodings: Mapping[str, ImageEncoding] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        shape, dtype = tuple(self.features.shape), self.features.dtype
        sizes = f"{len(self.features):,} images, {len(self.captions):,} captions"
        return f"CaptionSplit({sizes}, features {shape} {dtype})"

    def __post_init__(self) -> None:
        for name, ndim in (("captions", 2), ("image_idxs", 1)):
            object.__setattr__(self, name, self._integers(name, ndim))
        for name in self.feature_fields:
            self._check_features(name)
        if self.global_features is not None and (
            self.global_features.ndim != 2 or len(self.global_features) != len(self.features)
        ):
            found, expected = f"shape {self.global_features.shape}", f"({len(self.features)}, G)"
            raise mismatch(self.where("global_features"), found, expected)
        if len(self.image_idxs) != len(self.captions):
            found = f"{len(self.image_idxs)} numbers"
            raise mismatch(self.where("image_idxs"), found, f"one for each of {len(self.captions)} captions")
        self._check_range("image_idxs", len(self.features), "image index", "features")
        if not isinstance(self.references, Sequence):
            raise self._no_references(self.references)
        for name in ("names", "references"):
            if len(getattr(self, name)) != len(self.features):
                found = f"{len(getattr(self, name))} entries"
                raise mismatch(self.where(name), found, f"one for each of {len(self.features)} images")
        for name in self.feature_fields:
            self._check_finite(name)
        for sentences in self.references:
            if (
                isinstance(sentences, str)
                or not isinstance(sentences, Iterable)
                or not all(isinstance(each, str) for each in sentences)
            ):
                raise self._no_references(sentences)

    def _no_references(self, found: Any) -> InputTypeError:
        return InputTypeError(
            f"{self.where('references')}: found {found!r:.60}, expected a list of sentences for each image"
        )

    @property
    def num_images(self) -> int:
        """The number of images."""
        return len(self.features)

    @property
    def feature_fields(self) -> tuple[str, ...]:
        """The names of the fields that hold features."""
        return ("features",) if self.global_features is None else ("features", "global_features")

    @property
    def model_inputs(self) -> Any:
        """All features as a model reads them: one array or a tuple with global ones, lazy if they are."""
        return self.features if self.global_features is None else (self.features, self.global_features)

    def features_at(self, images: np.ndarray | slice) -> Any:
        """The features of images as a model reads them: an array, or a tuple with global features."""
        if self.global_features is None:
            return self.features[images]
        return self.features[images], self.global_features[images]

    def epoch_order(self, image_idxs: np.ndarray, rng: np.random.Generator | None) -> np.ndarray:
        """The examples, each of which reads the image ``image_idxs`` (N,), in the order of an epoch.

        Without ``rng`` it is the original order. See :meth:`LazyFeatures.epoch_order` for lazy features.
        """
        check_rng("epoch", rng)
        if rng is None:
            return np.arange(len(image_idxs))
        if isinstance(self.features, LazyFeatures):
            return self.features.epoch_order(image_idxs, rng)
        return rng.permutation(len(image_idxs))

    def sample(self, count: int, rng: np.random.Generator) -> CaptionSplit:
        """The split with ``count`` of its captions (all if there are fewer), drawn without replacement.

        Raises
        ------
        ValueError
            If ``count`` is not at least 1.
        """
        check_option("CaptionSplit.sample", "count (max_train)", Count, count)
        chosen = rng.permutation(len(self.captions))[:count]
        return replace(self, captions=self.captions[chosen], image_idxs=self.image_idxs[chosen])

    def where(self, name: str) -> str:
        """The file and field of ``name``, for messages."""
        return self.sources.get(name, f"CaptionSplit: {name}")

    def check_references(self, images: Iterable[int]) -> None:
        """Check that each of these images has a reference with words to be scored against.

        Raises
        ------
        ValueError
            If one has none. The message names it.
        """
        for image in images:
            if not any(map(tokenize, self.references[image])):
                raise InputError(
                    f"{self.where('references')}: image {self.names[image]} has no sentence with words, "
                    "expected at least one for each image that is scored"
                )

    def check_tokens(self, vocabulary: Vocabulary) -> None:
        """Check that every caption is <START>, words of ``vocabulary``, <END>, and <NULL> from there on.

        Raises
        ------
        ValueError
            If one is not. The message has its row.
        """
        self._check_range("captions", len(vocabulary), "token", "words of the vocabulary")
        for token, present in (
            (START, self.captions[:, :1] == START),
            (END, (self.captions == END).any(axis=1, keepdims=True)),
        ):
            if not present.all():
                row = int(np.argmin(present[:, 0]))
                word = vocabulary.idx_to_word[token]
                place = "first" if token == START else "somewhere"
                raise mismatch(
                    self.where("captions"), f"row {row} = {self.captions[row].tolist()}", f"{word} {place}"
                )
        again = np.flatnonzero((self.captions[:, 1:] == START).any(axis=1))
        if again.size:
            found = f"row {again[0]} = {self.captions[again[0]].tolist()}"
            raise mismatch(
                self.where("captions"), found, f"{vocabulary.idx_to_word[START]} in the first place only"
            )
        ends = (self.captions == END).argmax(axis=1)
        after = np.arange(self.captions.shape[1]) > ends[:, None]
        wrong = np.flatnonzero((after != (self.captions == NULL)).any(axis=1))
        if wrong.size:
            row, (null, end) = int(wrong[0]), (vocabulary.idx_to_word[token] for token in (NULL, END))
            found = f"row {row} = {self.captions[row].tolist()}"
            raise mismatch(self.where("captions"), found, f"{null} alone after {end}, and not before it")

    def _integers(self, name: str, ndim: int) -> np.ndarray:
        array = np.asarray(getattr(self, name))
        if array.dtype.kind not in "iu":
            raise mismatch(self.where(name), f"dtype {array.dtype}", "an integer dtype")
        if array.ndim != ndim:
            raise mismatch(self.where(name), f"shape {array.shape}", f"{ndim} dimension{'s' * (ndim > 1)}")
        limits = np.iinfo(np.int32)
        if array.size and not (array.min() >= limits.min and array.max() <= limits.max):
            wide = array.min() if array.min() < limits.min else array.max()
            raise mismatch(self.where(name), wide, "integers of 32 bits")
        return array.astype(np.int32, copy=False)

    def _check_features(self, name: str) -> None:
        features, where = getattr(self, name), self.where(name)
        try:
            shape, dtype = features.shape, np.dtype(features.dtype)
        except (AttributeError, TypeError):
            raise InputTypeError(f"{where}: found a {type(features).__name__}, expected an array") from None
        if dtype.kind != "f":
            raise mismatch(where, f"dtype {dtype}", "a floating-point dtype")
        if len(shape) < 2 or 0 in shape[1:]:
            raise mismatch(where, f"shape {shape}", "(num_images, ..., D), each but the first at least 1")

    def _check_finite(self, name: str) -> None:
        """Check features in memory. Lazy ones are checked when they are read."""
        features = getattr(self, name)
        if not isinstance(features, np.ndarray):
            return
        with np.errstate(over="ignore"):  # models read them in float32
            values = features.astype(np.float32, copy=False)
        finite = np.isfinite(values).all(axis=tuple(range(1, values.ndim)))
        if not finite.all():
            row = int(np.argmin(finite))
            found = f"NaN or infinity in row {row}, {self.names[row]}"
            raise mismatch(self.where(name), found, "finite numbers")

    def _check_range(self, name: str, stop: int, what: str, of: str) -> None:
        array = getattr(self, name)
        if array.size and not (array.min() >= 0 and array.max() < stop):
            row = tuple(np.argwhere((array < 0) | (array >= stop))[0].tolist())
            raise mismatch(
                self.where(name),
                f"{what} {array[row]} at row {row[0]}",
                f"at least 0 and less than the {stop} {of}",
            )


def with_decoded_references(
    vocabulary: Vocabulary,
    features: Features,
    captions: np.ndarray,
    image_idxs: np.ndarray,
    names: tuple[str, ...],
    sources: Mapping[str, str],
) -> CaptionSplit:
    """A split whose references are its decoded captions, for data without raw sentences."""
    references: list[list[str]] = [[] for _ in range(len(features))]
    split = CaptionSplit(features, captions, image_idxs, names, references, sources)
    split.check_tokens(vocabulary)
    for caption, image in zip(split.captions, split.image_idxs, strict=True):
        references[image].append(vocabulary.decode(caption))
    return split
