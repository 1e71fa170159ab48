"""The work of ``rnnlab data``: annotations and features to the course's files, and descriptions of data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rnnlab.data.annotations import Annotations, open_annotated
from rnnlab.data.captions import CaptionData
from rnnlab.data.course import feature_kinds, write_course
from rnnlab.data.pca import PCA, Projected
from rnnlab.files import check_new_folder
from rnnlab.reading import PathLike


def prepare_annotated(
    annotations: Annotations,
    features: PathLike,
    out: PathLike,
    *,
    min_count: int = 5,
    max_size: int | None = None,
    max_words: int = 15,
    pca: int | None = None,
) -> CaptionData:
    """Write a folder in the course's layout from annotations and an HDF5 file of features.

    Parameters
    ----------
    annotations, features, min_count, max_size
        As in :func:`rnnlab.data.open_annotated`.
    max_words : int
        Longer captions are cut. The course's captions have up to 15 words, those of ``open_annotated`` 20.
    out : path
        The folder. Must not exist.
    pca : int, optional
        Reduce features to this number of principal components, fitted on the training split only. Without it
        the features are written unchanged, to the files of features before PCA.

    Returns
    -------
    CaptionData
        The data that were written, with lazy features.

    Raises
    ------
    FileExistsError
        If ``out`` exists, because files of different sets of captions must not be mixed.
    OSError, KeyError, ValueError
        If a file is missing or invalid, or the folder cannot be written. It is complete or absent.
    """
    check_unprepared("prepare_annotated: out", out)
    data = open_annotated(
        annotations,
        features,
        min_count=min_count,
        max_size=max_size,
        max_words=max_words,
        standardise=False,
        lazy=True,
    )
    if pca is not None:
        fitted = PCA.fit(data.split("train").features, pca)
        for name, split in data.splits.items():
            data.splits[name] = replace(
                split,
                features=Projected(split.features, fitted),
                encodings={
                    field: replace(
                        encoding, projection=fitted.projection().after(encoding.projection), dtype="float32"
                    )
                    for field, encoding in split.encodings.items()
                },
            )
    kind, projection = ("full", None) if pca is None else ("pca", fitted.projection())
    write_course(out, data.vocabulary, data.splits, features=kind, projection=projection)
    return CaptionData.from_course(out, features=kind, standardise=False, lazy=True)


def check_unprepared(argument: str, out: PathLike) -> None:
    """Check, before minutes of work, that :func:`prepare_annotated` can write a folder.

    Raises
    ------
    FileExistsError
        If the folder exists. The message says which features it has, since none can be added.
    OSError
        As :func:`rnnlab.files.check_new_folder`.
    """
    if Path(out).is_dir() and (kinds := feature_kinds(out)):
        raise FileExistsError(
            f"{argument} {out} already exists, with features of kind {', '.join(map(repr, kinds))}, and "
            "others cannot be added: delete it, or choose another folder; to read local and global features, "
            "name both files in a recipe of data.kind 'karpathy' or 'coco'"
        )
    check_new_folder(argument, out)


def describe(directory: PathLike) -> str:
    """A summary of a folder in the course's layout: see :meth:`rnnlab.data.CaptionData.describe`.

    Parameters
    ----------
    directory : path
        With features after PCA, before PCA, or local. The first of these is described.
    """
    kind = next(iter(feature_kinds(directory)), "pca")
    return CaptionData.from_course(directory, features=kind, standardise=False, lazy=True).describe()
