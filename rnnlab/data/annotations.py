"""Captions in the JSON files of their publishers, joined with features by the file names of the images.

Karpathy's ``dataset_*.json``   images: filename, split, sentences: raw
COCO's ``captions_*.json``      images: id, file_name; annotations: image_id, caption; a file for each split

The features are an HDF5 file with ``features`` (num_images, ..., D) and ``filenames`` (num_images,) in any
order. It may have images without captions. The vocabulary is built from the training split.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rnnlab.data.captions import CaptionData
from rnnlab.data.hdf5 import read_dataset, read_json, read_names
from rnnlab.data.lazy import LazyFeatures, features_in
from rnnlab.data.names import composed
from rnnlab.data.photographs.encoding import recorded_encodings
from rnnlab.data.splits import CaptionSplit
from rnnlab.data.vocabulary import Vocabulary, tokenize
from rnnlab.errors import InputError, InputTypeError, MissingDataError
from rnnlab.hdf5_objects import open_hdf5
from rnnlab.reading import PathLike, mismatch


class AnnotatedImage(NamedTuple):
    """An image and its captions."""

    name: str  # the name of its file
    sentences: list[str]


@dataclass(frozen=True)
class Annotations:
    """Captioned images by split, and the file that they were read from, or one for each split."""

    splits: dict[str, list[AnnotatedImage]]
    source: PathLike
    files: Mapping[str, PathLike] = field(default_factory=dict)

    def file_of(self, split: str) -> PathLike:
        """The file of a split."""
        return self.files.get(split, self.source)


def read_karpathy(path: PathLike) -> Annotations:
    """The images of each split of Karpathy's JSON. Images of ``restval`` are training data.

    Raises
    ------
    OSError, KeyError, ValueError
        If a file is missing or invalid. The message names file, field, found and expected.
    """
    splits: dict[str, list[AnnotatedImage]] = {}
    for number, image in enumerate(_list_of(read_json(path, "images"), "images", path)):
        where = f"{path}: images[{number}]"
        try:
            name, split = image["filename"], image["split"]
            sentences = [sentence["raw"] for sentence in image["sentences"]]
        except (KeyError, TypeError):
            raise mismatch(where, _keys(image), "filename, split and sentences, each with raw") from None
        _check_texts(f"{where}: filename", name)
        _check_texts(f"{where}: split", split)
        _check_texts(f"{where}: sentences", *sentences)
        splits.setdefault("train" if split == "restval" else split, []).append(
            AnnotatedImage(name, sentences)
        )
    _check_apart(splits, path)
    return Annotations(splits, path)


def _check_apart(splits: Mapping[str, Sequence[AnnotatedImage]], path: PathLike) -> None:
    """Raise ValueError if an image is in two splits, or twice in one."""
    split_of: dict[str, str] = {}
    for split, images in splits.items():
        for image in images:
            name = composed(image.name)
            if other := split_of.get(name):
                places = (
                    f"twice in the split {split}" if other == split else f"in the splits {other} and {split}"
                )
                raise mismatch(
                    f"{path}", f"the image {image.name!r} {places}", "every image once, in one split"
                )
            split_of[name] = split


def read_coco(paths: Mapping[str, PathLike]) -> Annotations:
    """The images of COCO's caption files, one file per split: ``{"train": path, "val": path}``.

    Images without a caption are omitted. An image or an annotation may be listed twice, as in files that were
    joined; the annotation then counts once.

    Raises
    ------
    OSError, KeyError, ValueError
        As :func:`read_karpathy`; also if two images or two annotations have the same id, an image is in two
        files, or a file has no captions.
    TypeError
        If ``paths`` is not a mapping.
    """
    if not isinstance(paths, Mapping):
        raise InputTypeError(
            f"read_coco: paths is {paths!r:.60}, expected a mapping of splits to files, such as "
            '{"train": "captions_train.json"}'
        )
    splits = {split: _read_coco_split(path) for split, path in paths.items()}
    _check_apart(splits, " and ".join(map(str, paths.values())))
    return Annotations(splits, next(iter(paths.values()), "read_coco"), paths)


def open_annotated(
    annotations: Annotations,
    features: PathLike,
    *,
    global_features: PathLike | None = None,
    images: PathLike | None = None,
    min_count: int = 5,
    max_size: int | None = None,
    max_words: int = 20,
    standardise: bool = True,
    max_train: int | None = None,
    lazy: bool = False,
) -> CaptionData:
    """Captions with the features of their images from HDF5. Captions without words are left out.

    Parameters
    ----------
    annotations : Annotations
        From :func:`read_karpathy` or :func:`read_coco`.
    features : path
    global_features : path, optional
        A file of the same kind with a global vector of each image, in addition to local features.
    images : path, optional
        The folder of the pictures.
    min_count : int
        The minimum number of occurrences of a vocabulary word in the training captions; at least 1.
    max_size : int, optional
        The maximum number of vocabulary words, the most frequent ones, without the special words; at least 1.
    max_words : int
        Longer captions are cut; at least 1.
    standardise, max_train
        As in :class:`CaptionData`.
    lazy : bool
        Read features batch by batch, for files larger than memory.

    Raises
    ------
    OSError, KeyError, ValueError
        If a file is missing or invalid. The message names file, field, found and expected.
    TypeError
        If ``annotations`` is something else.
    """
    if not isinstance(annotations, Annotations):
        raise InputTypeError(
            f"open_annotated: annotations is a {type(annotations).__name__}, expected what read_karpathy or "
            "read_coco returns"
        )
    source, annotated_splits = annotations.source, annotations.splits
    if max_words < 1:
        raise InputError(f"open_annotated: max_words is {max_words}, expected at least 1")
    if not annotated_splits.get("train"):
        raise mismatch(
            str(source), f"the splits {', '.join(annotated_splits) or 'none'}", "images of a split train"
        )
    tokens = {
        split: [list(filter(None, map(tokenize, image.sentences))) for image in annotated]
        for split, annotated in annotated_splits.items()
    }
    vocabulary = Vocabulary.build(
        (words for image in tokens["train"] for words in image), min_count, max_size
    )
    files = {"features": features}
    if global_features is not None:
        files["global_features"] = global_features
    rows = {field: _rows_by_name(path, _names_in(path)) for field, path in files.items()}
    encodings = recorded_encodings(files)
    splits = {}
    for split, annotated in annotated_splits.items():
        file, names = annotations.file_of(split), tuple(image.name for image in annotated)
        captions = [vocabulary.encode(words, max_words + 2) for image in tokens[split] for words in image]
        image_idxs = np.repeat(np.arange(len(names)), [len(image) for image in tokens[split]])
        read = {
            field: features_in(path, _find(rows[field], names, path, file), lazy=lazy)
            for field, path in files.items()
        }
        splits[split] = CaptionSplit(
            captions=np.array(captions, np.int32).reshape(-1, max_words + 2),
            image_idxs=image_idxs,
            names=names,
            references=[image.sentences for image in annotated],
            sources={field: f"{path}: features" for field, path in files.items()}
            | {"captions": str(file), "references": str(file)},
            encodings=encodings,
            **read,
        )
    return CaptionData(
        vocabulary,
        splits,
        None if images is None else Path(images),
        Path(source).name,
        standardise=standardise,
        max_train=max_train,
    )


def read_features(path: PathLike) -> tuple[tuple[str, ...], np.ndarray]:
    """The file names and the features in an HDF5 file."""
    with open_hdf5(path) as file:
        return read_names(file), read_dataset(file, "features")


def open_features(
    path: PathLike, global_features: PathLike | None = None
) -> tuple[tuple[str, ...], LazyFeatures | tuple[LazyFeatures, LazyFeatures]]:
    """The file names and the features in an HDF5 file; features are read lazily.

    Parameters
    ----------
    path : path
    global_features : path, optional
        A file of the same kind with a global vector of each image, in any order.

    Returns
    -------
    names : tuple of str
    features : LazyFeatures, or a tuple of the local and the global ones

    Raises
    ------
    OSError, KeyError, ValueError
        If a file is missing or invalid, or an image has no global vector. The message names file and field.
    """
    names, features = _names_in(path), LazyFeatures(path)
    _rows_by_name(path, names)  # the names differ
    if global_features is None:
        return names, features
    rows = _find(_rows_by_name(global_features, _names_in(global_features)), names, global_features, path)
    return names, (features, LazyFeatures(global_features, rows=rows))


def _read_coco_split(path: PathLike) -> list[AnnotatedImage]:
    images: dict[int | str, AnnotatedImage] = {}
    content = read_json(path, "images", "annotations")
    for number, image in enumerate(_list_of(content, "images", path)):
        where = f"{path}: images[{number}]"
        try:
            image_id, name = image["id"], image["file_name"]
        except (KeyError, TypeError):
            raise mismatch(where, _keys(image), "id and file_name") from None
        _check_texts(f"{where}: file_name", name)
        if not isinstance(image_id, int | str):
            raise mismatch(f"{where}: id", _shown(image_id), "an integer")
        known = images.setdefault(image_id, AnnotatedImage(name, []))
        if known.name != name:  # the same image may be listed twice, as in files that were joined
            raise mismatch(
                f"{where}: id",
                f"{_shown(image_id)} of {name!r}, which {known.name!r} has",
                "one id for an image",
            )
    known_annotations: dict[int | str, tuple[int | str, str]] = {}
    for number, annotation in enumerate(_list_of(content, "annotations", path)):
        where = f"{path}: annotations[{number}]"
        try:
            image_id, caption = annotation["image_id"], annotation["caption"]
        except (KeyError, TypeError):
            raise mismatch(where, _keys(annotation), "image_id and caption") from None
        _check_texts(f"{where}: caption", caption)
        if not isinstance(image_id, int | str) or image_id not in images:
            raise mismatch(f"{where}: image_id", _shown(image_id), "the id of an image")
        if isinstance(annotation_id := annotation.get("id"), int | str):
            first = known_annotations.get(annotation_id)
            if first == (image_id, caption):
                continue
            if first is not None:
                raise mismatch(
                    f"{where}: id", f"{_shown(annotation_id)}, which another caption has", "one for a caption"
                )
            known_annotations[annotation_id] = image_id, caption
        images[image_id].sentences.append(caption)
    captioned = [image for image in images.values() if image.sentences]
    if not captioned:
        raise mismatch(f"{path}: annotations", "no caption", "at least one")
    return captioned


def _names_in(path: PathLike) -> tuple[str, ...]:
    with open_hdf5(path) as file:
        return read_names(file)


def _rows_by_name(path: PathLike, names: tuple[str, ...]) -> dict[str, int]:
    rows = {composed(name): row for row, name in enumerate(names)}
    if len(rows) != len(names):
        raise mismatch(f"{path}: filenames", f"{len(names) - len(rows)} names twice", "each name once")
    return rows


def _find(
    rows: Mapping[str, int], names: tuple[str, ...], features: PathLike, source: PathLike
) -> np.ndarray:
    for name in names:
        if composed(name) not in rows:
            raise MissingDataError(
                f"{features}: filenames: found no {name!r}, expected all the images of {source}"
            )
    return np.array([rows[composed(name)] for name in names], np.intp)


def _list_of(content: Mapping[str, Any], field: str, path: PathLike) -> list[dict[str, Any]]:
    if not isinstance(content[field], list):
        raise mismatch(f"{path}: {field}", f"a JSON {type(content[field]).__name__}", "a list")
    return content[field]


def _check_texts(where: str, *values: object) -> None:
    for value in values:
        if not isinstance(value, str):
            raise mismatch(where, _shown(value), "a text")


def _keys(value: object) -> str:
    return f"the keys {', '.join(value)[:200]}" if isinstance(value, dict) else _shown(value)


def _shown(value: object) -> str:
    return reprlib.repr(value)  # of limited length and depth
