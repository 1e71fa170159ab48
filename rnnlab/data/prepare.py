"""Annotations and features to the course's files: the work of ``rnnlab data prepare`` and ``info``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from rnnlab.data.annotations import Annotations, open_annotated
from rnnlab.data.captions import CaptionData
from rnnlab.data.course import FEATURE_FILES
from rnnlab.data.hdf5 import PathLike
from rnnlab.data.parallel import ParallelData
from rnnlab.data.pca import PCA, Projected
from rnnlab.data.vocabulary import END, NULL, START, UNK


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
    annotations, features, min_count, max_words
        As of :func:`rnnlab.data.open_annotated`.
    out : path
        The folder.
    pca : int, optional
        Reduce features to so many numbers, by components fitted on the training split alone. Without it the
        features are written as they are, in the files for those before PCA.

    Returns
    -------
    CaptionData
        What was written.

    Raises
    ------
    OSError, KeyError, ValueError
        If a file is missing or is not what it should be; nothing is half-written.
    """
    data = open_annotated(
        annotations, features, min_count=min_count, max_words=max_words, standardise=False, lazy=True
    )
    if pca is not None:
        fitted = PCA.fit(data.split("train").features, pca)
        for name, split in data.splits.items():
            data.splits[name] = replace(split, features=Projected(split.features, fitted))
    kind = "full" if pca is None else "pca"
    data.to_course(out, features=kind)
    return CaptionData.from_course(out, features=kind, standardise=False)


def describe(data: CaptionData | ParallelData | PathLike) -> str:
    """What is in a data set, for people: its splits, its vocabulary, an example of each split.

    Parameters
    ----------
    data : CaptionData, ParallelData or path
        A path is that of a folder in the course's layout, whether its features are those after PCA or before.
    """
    if isinstance(data, ParallelData):
        return data.describe()
    if not isinstance(data, CaptionData):
        reduced = (Path(data) / FEATURE_FILES["pca"].format(split="train")).exists()
        kind = "pca" if reduced else "full"
        data = CaptionData.from_course(data, features=kind, standardise=False, lazy=True)
    lines = [f"{data.name}: {len(data.vocabulary):,} words"]
    lines.append(f"{'split':<8}{'images':>9}{'captions':>10}{'words':>8}{'longest':>9}{'<UNK>':>8}  features")
    for name, split in data.splits.items():
        special = np.isin(split.captions, (NULL, START, END))
        words = (~special).sum(axis=1)
        unknown = (split.captions == UNK).sum() / max(1, words.sum())
        shape = " and ".join(
            " x ".join(map(str, getattr(split, field).shape[1:])) for field in split.feature_fields
        )
        lines.append(
            f"{name:<8}{split.num_images:>9,}{len(split.captions):>10,}{words.mean():>8.1f}"
            f"{words.max(initial=0):>9}{unknown:>8.1%}  {shape} {np.dtype(split.features.dtype)}"
        )
    for name, split in data.splits.items():
        if split.names and split.references[0]:
            lines.append(f"{name}: {Path(split.names[0]).name}: {split.references[0][0]}")
    return "\n".join(lines)
