"""The work of ``rnnlab data``: annotations and features to the course's files, and descriptions of data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from rnnlab.data.annotations import Annotations, open_annotated
from rnnlab.data.captions import CaptionData
from rnnlab.data.course import feature_kinds, write_course
from rnnlab.data.parallel import ParallelData
from rnnlab.data.pca import PCA, Projected
from rnnlab.data.pixels import PixelData
from rnnlab.data.vocabulary import END, NULL, START, UNK
from rnnlab.files import check_new_folder
from rnnlab.reading import PathLike


def prepare_annotated(
    annotations: Annotations,
    features: PathLike,
    out: PathLike,
    *,
    min_count: int = 5,
    max_words: int = 15,
    pca: int | None = None,
) -> CaptionData:
    """Write a folder in the course's layout from annotations and an HDF5 file of features.

    Parameters
    ----------
    annotations, features, min_count
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
        annotations, features, min_count=min_count, max_words=max_words, standardise=False, lazy=True
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


def describe(data: CaptionData | ParallelData | PixelData | PathLike) -> str:
    """A summary: the splits of a data set, its vocabulary, and an example of each split.

    Parameters
    ----------
    data : CaptionData, ParallelData, PixelData or path
        A path is a folder in the course's layout, with features after PCA, before PCA, or local.
    """
    if isinstance(data, ParallelData | PixelData):
        return data.describe()
    if not isinstance(data, CaptionData):
        kind = next(iter(feature_kinds(data)), "pca")
        data = CaptionData.from_course(data, features=kind, standardise=False, lazy=True)
    lines = [f"{data.name}: {len(data.vocabulary):,} words"]
    lines.append(f"{'split':<8}{'images':>9}{'captions':>10}{'words':>8}{'longest':>9}{'<UNK>':>8}  features")
    for name, split in data.splits.items():
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
    for field, encoding in data.encodings.items():
        lines.append(f"{field} by {encoding.describe()}")
    for name, split in data.splits.items():
        if split.names and split.references[0]:
            lines.append(f"{name}: {Path(split.names[0]).name}: {split.references[0][0]}")
    return "\n".join(lines)
