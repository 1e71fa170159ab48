"""Captions as their collectors publish them, in JSON, joined with features on the file names of the images.

Karpathy's ``dataset_*.json``   images: filename, split, sentences: raw
COCO's ``captions_*.json``      images: id, file_name; annotations: image_id, caption; a file for each split

The features are an HDF5 file with ``features`` (num_images, ..., D) and ``filenames`` (num_images,), in any
order; it may have images that the captions do not have. The vocabulary is that of the training split.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rnnlab.data.captions import CaptionData
from rnnlab.data.hdf5 import PathLike, get_dataset, mismatch, open_hdf5, read_dataset, read_json, read_strings
from rnnlab.data.lazy import LazyFeatures
from rnnlab.data.splits import CaptionSplit, Features
from rnnlab.data.vocabulary import Vocabulary, tokenize


class AnnotatedImage(NamedTuple):
    """An image and what people wrote of it."""

    name: str  # of its file
    sentences: list[str]


@dataclass(frozen=True)
class Annotations:
    """Captioned images by split, and the file they were read from."""

    splits: dict[str, list[AnnotatedImage]]
    source: PathLike


def read_karpathy(path: PathLike) -> Annotations:
    """The images of each split of Karpathy's JSON; its ``restval`` is training data, as he uses it.

    Raises
    ------
    OSError, KeyError, ValueError
        If the file is missing or is not what it should be; the message names file, field, found and expected.
    """
    splits: dict[str, list[AnnotatedImage]] = {}
    for number, image in enumerate(_images(path)):
        try:
            name, split = image["filename"], image["split"]
            sentences = [sentence["raw"] for sentence in image["sentences"]]
        except (KeyError, TypeError):
            raise mismatch(
                f"{path}: images[{number}]", _keys(image), "filename, split and sentences, each with raw"
            ) from None
        splits.setdefault("train" if split == "restval" else split, []).append(
            AnnotatedImage(name, sentences)
        )
    return Annotations(splits, path)


def read_coco(paths: Mapping[str, PathLike]) -> Annotations:
    """The images of COCO's captions files, one file a split: ``{"train": path, "val": path}``.

    Images without a caption are left out.

    Raises
    ------
    OSError, KeyError, ValueError
        As :func:`read_karpathy`.
    """
    splits = {split: _read_coco_split(path) for split, path in paths.items()}
    return Annotations(splits, next(iter(paths.values()), "read_coco"))


def open_annotated(
    annotations: Annotations,
    features: PathLike,
    *,
    global_features: PathLike | None = None,
    images: PathLike | None = None,
    min_count: int = 5,
    max_words: int = 20,
    standardise: bool = True,
    max_train: int | None = None,
    lazy: bool = False,
) -> CaptionData:
    """Captions with the features of their images from HDF5.

    Parameters
    ----------
    annotations : Annotations
        From :func:`read_karpathy` or :func:`read_coco`.
    features : path
    global_features : path, optional
        A file of the same kind with a global vector of each image, beside local features.
    images : path, optional
        The folder of the pictures.
    min_count : int
        A word is in the vocabulary if the training captions have it so often.
    max_words : int
        Longer captions are cut.
    standardise, max_train
        As of :class:`CaptionData`.
    lazy : bool
        Read features as batches need them, for files larger than memory.

    Raises
    ------
    OSError, KeyError, ValueError
        If the file is missing or is not what it should be; the message names file, field, found and expected.
    """
    source, annotated_splits = annotations.source, annotations.splits
    if not annotated_splits.get("train"):
        raise mismatch(
            str(source), f"the splits {', '.join(annotated_splits) or 'none'}", "images of a split train"
        )
    tokens = {
        split: [[tokenize(sentence) for sentence in image.sentences] for image in annotated]
        for split, annotated in annotated_splits.items()
    }
    vocabulary = Vocabulary.build((words for image in tokens["train"] for words in image), min_count)
    files = {"features": features}
    if global_features is not None:
        files["global_features"] = global_features
    rows = {field: _rows_by_name(path) for field, path in files.items()}
    splits = {}
    for split, annotated in annotated_splits.items():
        names = tuple(image.name for image in annotated)
        captions = [vocabulary.encode(words, max_words + 2) for image in tokens[split] for words in image]
        image_idxs = np.repeat(np.arange(len(names)), [len(image) for image in tokens[split]])
        read = {
            field: _read_rows(path, _find(rows[field], names, path, source), lazy)
            for field, path in files.items()
        }
        splits[split] = CaptionSplit(
            captions=np.array(captions, np.int32).reshape(-1, max_words + 2),
            image_idxs=image_idxs,
            names=names,
            references=[image.sentences for image in annotated],
            sources={field: f"{path}: features" for field, path in files.items()} | {"captions": str(source)},
            **read,
        )
    return CaptionData(
        vocabulary,
        splits,
        None if images is None else Path(images),
        Path(source).stem,
        standardise=standardise,
        max_train=max_train,
    )


def read_features(path: PathLike) -> tuple[tuple[str, ...], np.ndarray]:
    """The file names and the features of an HDF5 file of both."""
    with open_hdf5(path) as file:
        names, features = read_strings(file, "filenames"), read_dataset(file, "features")
    if len(names) != len(features):
        raise mismatch(
            f"{path}: filenames", f"{len(names)} names", f"one for each of {len(features)} features"
        )
    return names, features


def _read_coco_split(path: PathLike) -> list[AnnotatedImage]:
    images: dict[int, AnnotatedImage] = {}
    for number, image in enumerate(_images(path)):
        try:
            images[image["id"]] = AnnotatedImage(image["file_name"], [])
        except (KeyError, TypeError):
            raise mismatch(f"{path}: images[{number}]", _keys(image), "id and file_name") from None
    for number, annotation in enumerate(read_json(path, "annotations")["annotations"]):
        where = f"{path}: annotations[{number}]"
        try:
            image_id, caption = annotation["image_id"], annotation["caption"]
        except (KeyError, TypeError):
            raise mismatch(where, _keys(annotation), "image_id and caption") from None
        if image_id not in images:
            raise mismatch(f"{where}: image_id", image_id, "the id of an image")
        images[image_id].sentences.append(caption)
    return [image for image in images.values() if image.sentences]


def _rows_by_name(path: PathLike) -> dict[str, int]:
    with open_hdf5(path) as file:
        names, count = read_strings(file, "filenames"), len(get_dataset(file, "features"))
    if len(names) != count:
        raise mismatch(f"{path}: filenames", f"{len(names)} names", f"one for each of {count} features")
    return {name: row for row, name in enumerate(names)}


def _find(
    rows: Mapping[str, int], names: tuple[str, ...], features: PathLike, source: PathLike
) -> np.ndarray:
    for name in names:
        if name not in rows:
            raise KeyError(f"{features}: filenames: found no {name!r}, expected all the images of {source}")
    return np.array([rows[name] for name in names], np.intp)


def _read_rows(path: PathLike, rows: np.ndarray, lazy: bool) -> Features:
    if lazy:
        return LazyFeatures(path, rows=rows)
    with open_hdf5(path) as file:
        return read_dataset(file, "features")[rows]


def _images(path: PathLike) -> list[dict]:
    images = read_json(path, "images")["images"]
    if not isinstance(images, list):
        raise mismatch(f"{path}: images", f"a JSON {type(images).__name__}", "a list")
    return images


def _keys(value: object) -> str:
    return f"the keys {', '.join(value)}" if isinstance(value, dict) else repr(value)[:60]
