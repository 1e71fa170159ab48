"""The file layout of the cs231n course's captioned images, with a few additions.

coco2014_captions.h5                 {split}_captions (num_captions, L), {split}_image_idxs (num_captions,)
coco2014_vocab.json                  idx_to_word, word_to_idx
{split}2014_vgg16_fc7_pca.h5         features (num_images, D), after PCA
{split}2014_vgg16_fc7.h5             features before PCA (may be absent)
{split}2014_urls.txt                 one address or file name per line, in the order of the features

references.json                      added: the original sentences of each image of each split
{split}2014_local.h5                 added: features (num_images, regions, D), a grid of vectors, row by row
images/                              added: the pictures
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np

from rnnlab.data.blocks import BLOCK_BYTES, Features
from rnnlab.data.hdf5 import get_dataset, read_dataset, read_json
from rnnlab.data.lazy import features_in
from rnnlab.data.photographs.encoding import ImageEncoding, recorded_encodings
from rnnlab.data.projection import Projection
from rnnlab.data.splits import CaptionSplit, with_decoded_references
from rnnlab.data.vocabulary import Vocabulary
from rnnlab.errors import InputError
from rnnlab.files import atomic_folder, atomic_hdf5, atomic_text, write_json
from rnnlab.hdf5_objects import names_in, open_hdf5
from rnnlab.limits import EXPANSION, FREE_BYTES
from rnnlab.reading import PathLike, mismatch, text_lines
from rnnlab.signals import deliver_signals
from rnnlab.special_words import SPECIAL_WORDS

CAPTIONS_FILE = "coco2014_captions.h5"
VOCABULARY_FILE = "coco2014_vocab.json"
REFERENCES_FILE = "references.json"
IMAGE_FOLDER = "images"
FEATURE_FILES = {
    "pca": "{split}2014_vgg16_fc7_pca.h5",
    "full": "{split}2014_vgg16_fc7.h5",
    "local": "{split}2014_local.h5",
}
URLS_FILE = "{split}2014_urls.txt"


def read_course(
    directory: PathLike,
    *,
    features: str = "pca",
    global_features: str | None = None,
    splits: Sequence[str] | None = None,
    lazy: bool = False,
) -> tuple[Vocabulary, dict[str, CaptionSplit]]:
    """Read a folder in the course's layout.

    Parameters
    ----------
    directory : path
    features : {"pca", "full", "local"}
        The feature files to read.
    global_features : {"pca", "full"}, optional
        The files with the global vector of each image, in addition to local features.
    splits : sequence of str, optional
        By default all splits of the captions file.
    lazy : bool
        Read features from the file batch by batch.

    Raises
    ------
    OSError, KeyError, ValueError
        If a file is missing or invalid. The message names file, field, found and expected.
    """
    directory = Path(directory)
    if features not in FEATURE_FILES:
        raise mismatch("read_course: features", repr(features), f"one of {', '.join(FEATURE_FILES)}")
    if global_features is not None and (features != "local" or global_features not in ("pca", "full")):
        found = f"{global_features!r} with features {features!r}"
        raise mismatch("read_course: global_features", found, "'pca' or 'full' with features 'local'")
    vocabulary = read_vocabulary(directory / VOCABULARY_FILE)
    references = _read_references(directory / REFERENCES_FILE)
    with open_hdf5(directory / CAPTIONS_FILE) as file:
        if splits is None:
            splits = _splits_in(file)
        for kind in (features, global_features):
            if kind is not None:
                _check_feature_files(directory, kind, [name for name in splits if f"{name}_captions" in file])
        return vocabulary, {
            split: _with_global_features(
                _read_split(directory, file, split, features, lazy, vocabulary, references.get(split)),
                None
                if global_features is None
                else directory / FEATURE_FILES[global_features].format(split=split),
                lazy,
            )
            for split in splits
        }


def read_vocabulary(path: PathLike) -> Vocabulary:
    """Read ``idx_to_word`` and ``word_to_idx`` from JSON, and check that each is the inverse of the other."""
    content = read_json(path, "idx_to_word", "word_to_idx")
    words = content["idx_to_word"]
    if not isinstance(words, list):
        raise mismatch(f"{path}: idx_to_word", type(words).__name__, "a list of words")
    for token, word in enumerate(words):
        _check_word(str(path), token, word)
    try:
        vocabulary = Vocabulary(words)
    except ValueError as error:
        raise InputError(f"{path}: idx_to_word: {error}") from error
    if len(vocabulary) != len(words):
        raise mismatch(f"{path}: idx_to_word", "no special words", f"{', '.join(SPECIAL_WORDS)} first")
    if content["word_to_idx"] != vocabulary.word_to_idx:
        raise mismatch(f"{path}: word_to_idx", "other words or numbers than in idx_to_word", "its inverse")
    return vocabulary


def write_course(
    directory: PathLike,
    vocabulary: Vocabulary,
    splits: Mapping[str, CaptionSplit],
    *,
    features: str = "pca",
    global_features: str = "full",
    projection: Projection | None = None,
) -> None:
    """Write a folder that :func:`read_course` reads. It is complete or absent.

    Parameters
    ----------
    directory : path
        Must not exist: its files belong together.
    vocabulary : Vocabulary
    splits : mapping of str to CaptionSplit
    features, global_features : {"pca", "full", "local"}
        The feature files to write features and, if there are any, global features to.
    projection : Projection, optional
        The projection applied to ``features``. It is recorded if it is not known how they were made.

    Raises
    ------
    FileExistsError
        If ``directory`` exists.
    OSError
        If it cannot be written.
    ValueError
        If the name of a split cannot be a part of the names of files, that of an image cannot be a line of
        a text file, or a word of the vocabulary is empty or has white space.
    """
    for token, word in enumerate(vocabulary.idx_to_word):
        _check_word("write_course: vocabulary", token, word)
    for name, split in splits.items():
        if not re.fullmatch(r"[\w-]+", name):  # it becomes a part of file names
            raise mismatch("write_course: splits", repr(name), "names of letters, digits, _ and -")
        for image in split.names:
            if re.search(r"[\r\n\ud800-\udfff]", image):
                expected = "names without line breaks, in UTF-8"
                raise mismatch(f"write_course: {name}: names of images", repr(image), expected)
    with atomic_folder("write_course: directory", directory) as folder:
        write_course_files(
            folder,
            vocabulary,
            splits,
            features=features,
            global_features=global_features,
            projection=projection,
        )


def write_course_files(
    directory: Path,
    vocabulary: Vocabulary,
    splits: Mapping[str, CaptionSplit],
    *,
    features: str = "pca",
    global_features: str = "full",
    projection: Projection | None = None,
) -> None:
    """Write the files of :func:`write_course` to an existing folder, not atomically."""
    words = {"idx_to_word": vocabulary.idx_to_word, "word_to_idx": vocabulary.word_to_idx}
    write_json(directory / VOCABULARY_FILE, words)
    write_json(directory / REFERENCES_FILE, {name: split.references for name, split in splits.items()})
    with atomic_hdf5(directory / CAPTIONS_FILE) as file:
        for name, split in splits.items():
            for field in ("captions", "image_idxs"):
                _write_compressed(file, f"{name}_{field}", getattr(split, field))
    for name, split in splits.items():
        for field, kind in zip(split.feature_fields, (features, global_features), strict=False):
            path = directory / FEATURE_FILES[kind].format(split=name)
            encoding, after = split.encodings.get(field), projection if field == "features" else None
            write_features(path, getattr(split, field), encoding=encoding, projection=after)
        with atomic_text(directory / URLS_FILE.format(split=name)) as file:
            file.writelines(f"{name}\n" for name in split.names)


def _write_compressed(file: h5py.File, name: str, array: np.ndarray) -> None:
    """Write a dataset, without compression if it would expand more than readers accept."""
    dataset = file.create_dataset(name, data=array, compression="gzip", shuffle=True)
    file.flush()  # or the stored size would not be known
    if array.nbytes > max(FREE_BYTES, EXPANSION * dataset.id.get_storage_size()):
        del file[name]
        file.create_dataset(name, data=array)


def write_features(
    path: PathLike,
    features: Features,
    *,
    encoding: ImageEncoding | None = None,
    projection: Projection | None = None,
) -> None:
    """Write ``features`` (num_images, ...), which may be larger than memory, and how they were made if known.

    Parameters
    ----------
    path : path
    features : array, or an object that is read as one
    encoding : ImageEncoding, optional
        With the projection of the features, if they have one.
    projection : Projection, optional
        Recorded if there is no ``encoding``.
    """
    with atomic_hdf5(path) as file:
        dataset = file.create_dataset("features", shape=features.shape, dtype=features.dtype)
        rows = max(1, BLOCK_BYTES // max(1, dataset.dtype.itemsize * math.prod(features.shape[1:])))
        for start in range(0, len(features), rows):
            deliver_signals()
            dataset[start : start + rows] = features[start : start + rows]
        if encoding is not None:
            encoding.write(file)
        elif projection is not None:
            projection.write(file)


def feature_kinds(directory: PathLike, split: str = "train") -> list[str]:
    """The kinds of feature files in a folder, those after PCA first."""
    return [
        kind for kind, name in FEATURE_FILES.items() if (Path(directory) / name.format(split=split)).exists()
    ]


def _check_word(where: str, token: int, word: object) -> None:
    if not isinstance(word, str) or len(word.split()) != 1:
        raise mismatch(f"{where}: idx_to_word[{token}]", repr(word), "a word without white space")


def _check_feature_files(directory: Path, kind: str, splits: Sequence[str]) -> None:
    """Raise FileNotFoundError, which lists the existing kinds, if a split has no feature file of a kind."""
    for split in splits:
        path = directory / FEATURE_FILES[kind].format(split=split)
        if not path.exists():
            others = " or ".join(map(repr, feature_kinds(directory, split)))
            remedy = f"set data.features to {others}, which the folder has" if others else "it has none"
            raise FileNotFoundError(
                f"{path}: found no such file, expected features of kind {kind!r}: {remedy}"
            )


def _splits_in(file: h5py.File) -> list[str]:
    found = {name.removesuffix("_captions") for name in names_in(file) if name.endswith("_captions")}
    known = [split for split in ("train", "val", "test") if split in found]
    return known + sorted(found - set(known))


def _read_split(
    directory: Path,
    file: h5py.File,
    split: str,
    kind: str,
    lazy: bool,
    vocabulary: Vocabulary,
    references: list[list[str]] | None,
) -> CaptionSplit:
    captions = read_dataset(file, f"{split}_captions")
    index_fields = (f"{split}_image_idxs", f"{split}_image_idxes")
    image_idxs = read_dataset(file, *index_fields)
    features_path = directory / FEATURE_FILES[kind].format(split=split)
    features = features_in(features_path, lazy=lazy)
    names_path = directory / URLS_FILE.format(split=split)
    sources = {
        "captions": f"{file.filename}: {split}_captions",
        "image_idxs": f"{file.filename}: {get_dataset(file, *index_fields).name.lstrip('/')}",
        "features": f"{features_path}: features",
        "names": str(names_path),
        "references": f"{directory / REFERENCES_FILE}: {split}",
    }
    names = tuple(text_lines(names_path, "a file with one line per image"))
    if references is None:
        read = with_decoded_references(vocabulary, features, captions, image_idxs, names, sources)
    else:
        read = CaptionSplit(features, captions, image_idxs, names, references, sources)
    return replace(read, encodings=recorded_encodings({"features": features_path}))


def _with_global_features(split: CaptionSplit, path: Path | None, lazy: bool) -> CaptionSplit:
    if path is None:
        return split
    features = features_in(path, lazy=lazy)
    sources = {**split.sources, "global_features": f"{path}: features"}
    encodings = {**split.encodings, **recorded_encodings({"global_features": path})}
    return replace(split, global_features=features, sources=sources, encodings=encodings)


def _read_references(path: Path) -> dict[str, list[list[str]]]:
    if not path.exists():
        return {}
    references = read_json(path)
    for split, images in references.items():
        if not isinstance(images, list) or not all(
            isinstance(sentences, list) and all(isinstance(sentence, str) for sentence in sentences)
            for sentences in images
        ):
            raise mismatch(f"{path}: {split}", "other JSON", "a list of sentences for each image")
    return references
