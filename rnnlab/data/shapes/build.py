"""The files of the built-in data: the course's layout, references, grid features and pictures.

Two more files describe how they were made:

scenes.json     for each scene of each split: its objects (shape, colour, size, place), the grid cells that
                each object covers, and their relation
shapes.json     the version of the generator, and its arguments
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from rnnlab.data.captions import CaptionData
from rnnlab.data.course import FEATURE_FILES, IMAGE_FOLDER, write_course_files, write_features
from rnnlab.data.folders import cache_folder, folder_named_by
from rnnlab.data.hdf5 import read_json
from rnnlab.data.pca import PCA
from rnnlab.data.shapes.drawing import draw
from rnnlab.data.shapes.features import global_features, local_features, see
from rnnlab.data.shapes.grammar import describe_scene
from rnnlab.data.shapes.scenes import Scene, draw_scene
from rnnlab.data.splits import CaptionSplit
from rnnlab.data.vocabulary import Vocabulary, tokenize
from rnnlab.errors import InputError
from rnnlab.files import atomic_folder, write_json
from rnnlab.options import Count, Natural, check_option
from rnnlab.reading import PathLike, mismatch

GENERATOR = 1  # increased at every change of the generated data; folders of other versions are refused
SIZES = {"train": 4000, "val": 500, "test": 500}
PIXELS = 96  # width and height of a picture
CELLS = 6  # rows and columns of the grid
GLOBAL_DIMS, LOCAL_DIMS = 128, 32
MAX_WORDS = 15
SCENES_FILE = "scenes.json"
ORIGIN_FILE = "shapes.json"

_COVERED = 0.1  # minimum share of a cell that an object must cover
_CHUNK = 100  # pictures in memory at a time


def open_shapes(
    directory: PathLike | None = None,
    *,
    features: str = "pca",
    global_features: str | None = None,
    standardise: bool = False,
    max_train: int | None = None,
) -> CaptionData:
    """The built-in data, generated on first use in about 20 seconds.

    Parameters
    ----------
    directory : path, optional
        By default :func:`shapes_directory`.
    features : {"pca", "local"}
        One vector per image, or one per cell of a 6 x 6 grid, for attention.
    global_features : {"pca"}, optional
        With local features: additionally the vector of each image.
    standardise : bool
        As in :class:`~rnnlab.data.CaptionData`. Off by default, because models learn faster from principal
        components with one common scale.
    max_train : int, optional
        As in :class:`~rnnlab.data.CaptionData`.

    Returns
    -------
    CaptionData
        The splits are train, val and test.

    Raises
    ------
    ValueError
        If the folder was created by another version of the generator, or by another program.
    """
    folder = ensure_shapes(directory)
    return CaptionData.from_course(
        folder,
        features=features,
        global_features=global_features,
        standardise=standardise,
        max_train=max_train,
        name="shapes",
    )


def shapes_directory() -> Path:
    """The folder of the built-in data: ``$RNNLAB_SHAPES``, or one in the checkout or the user's cache."""
    checkout = Path(__file__).resolve().parents[3]
    if directory := folder_named_by("RNNLAB_SHAPES"):
        return directory
    if (checkout / "setup.cfg").exists():
        return checkout / "datasets" / "shapes"
    return cache_folder() / "shapes"


def ensure_shapes(directory: PathLike | None = None) -> Path:
    """The folder of the built-in data, written if missing; ValueError if another version wrote it."""
    folder = shapes_directory() if directory is None else Path(directory)
    if not folder.exists():
        print("rnnlab: drawing the built-in data, once, in about 20 seconds", file=sys.stderr, flush=True)
        try:
            write_shapes(folder)
        except OSError:
            if not folder.exists():  # otherwise another process has written it meanwhile
                raise
    _check_origin(folder)
    return folder


def write_shapes(directory: PathLike, sizes: Mapping[str, int] = SIZES, *, seed: int = 0) -> None:
    """Generate the built-in data: the same bytes for the same sizes and seed.

    Parameters
    ----------
    directory : path
        Must not exist. It is complete or absent: everything is written to a temporary folder and renamed.
    sizes : mapping of str to int
        The number of scenes of each split, including ``train``.
    seed : int
        At least 0.

    Raises
    ------
    FileExistsError
        If ``directory`` exists.
    TypeError, ValueError
        If a size is not a positive integer, there is no split ``train``, or ``seed`` is not a seed.
    """
    check_option("write_shapes", "seed", Natural, seed)
    for split, size in sizes.items():
        check_option("write_shapes", f"sizes[{split!r}]", Count, size)
    if "train" not in sizes:
        raise InputError(f"write_shapes: sizes has {', '.join(sizes) or 'no split'}, expected train as well")
    with atomic_folder("write_shapes: directory", directory) as folder:
        _write(folder, sizes, seed)


def _check_origin(folder: Path) -> None:
    """Check that this version of the generator made ``folder``."""
    origin = folder / ORIGIN_FILE
    found = read_json(origin, "generator")["generator"] if origin.exists() else "no such file"
    if found != GENERATOR:
        expected = (
            f"{GENERATOR}: if these are built-in data, delete the folder {folder}, and they are generated "
            "again; if they are others in the course's layout, set data.kind to 'course'"
        )
        raise mismatch(f"{origin}: generator", found, expected)


def _write(folder: Path, sizes: Mapping[str, int], seed: int) -> None:
    (folder / IMAGE_FOLDER).mkdir()
    streams = np.random.SeedSequence(seed).spawn(len(sizes))
    made = {
        split: _make_split(folder, split, count, np.random.default_rng(stream))
        for (split, count), stream in zip(sizes.items(), streams, strict=True)
    }
    train = made["train"]
    count, dims = train["global"].shape
    whole = PCA.fit(
        train["global"], min(GLOBAL_DIMS, max(1, count - 1), dims)
    )  # further components are arbitrary
    # One scale for all: the first components remain the largest. A single picture has no variance.
    scale = np.sqrt(whole.variances.mean()) or 1.0
    cells = train["local"].reshape(-1, train["local"].shape[-1])
    grid = PCA.fit(cells, min(LOCAL_DIMS, cells.shape[1]))
    vocabulary = Vocabulary.build(
        tokenize(sentence) for sentences in train["references"] for sentence in sentences
    )
    splits = {}
    for split, parts in made.items():
        references = parts["references"]
        captions = [
            vocabulary.encode(tokenize(s), MAX_WORDS + 2) for sentences in references for s in sentences
        ]
        image_idxs = np.repeat(np.arange(len(references)), [len(sentences) for sentences in references])
        features = _rounded(whole.transform(parts["global"]) / scale, 1024)
        splits[split] = CaptionSplit(features, np.array(captions), image_idxs, parts["names"], references)
        local = _rounded(grid.transform(parts["local"]), 256).astype(np.float16)
        write_features(folder / FEATURE_FILES["local"].format(split=split), local)
    write_course_files(folder, vocabulary, splits)
    write_json(folder / SCENES_FILE, {split: parts["scenes"] for split, parts in made.items()})
    write_json(folder / ORIGIN_FILE, {"generator": GENERATOR, "sizes": dict(sizes), "seed": seed})


def _make_split(folder: Path, split: str, count: int, rng: np.random.Generator) -> dict[str, Any]:
    """Draw and describe scenes; write the pictures."""
    scenes = [draw_scene(rng) for _ in range(count)]
    parts: dict[str, Any] = {
        "names": tuple(f"{split}_{number:05}.png" for number in range(count)),
        "references": [describe_scene(scene, rng) for scene in scenes],
        "scenes": [],
    }
    seen: dict[str, list[np.ndarray]] = {"global": [], "local": []}
    for start in range(0, count, _CHUNK):
        pictures = []
        for scene, name in zip(scenes[start : start + _CHUNK], parts["names"][start:], strict=False):
            picture, coverage = draw(scene, PIXELS)
            pictures.append(picture)
            Image.fromarray(picture).save(folder / IMAGE_FOLDER / name, compress_level=1)
            parts["scenes"].append(_record(scene, coverage))
        blobs = see(np.stack(pictures))
        seen["global"].append(_rounded(global_features(blobs), 1024))
        seen["local"].append(_rounded(local_features(blobs, CELLS), 1024))
    return parts | {kind: np.concatenate(chunks) for kind, chunks in seen.items()}


def _rounded(values: np.ndarray, steps: int) -> np.ndarray:
    """``values`` rounded to multiples of 1 / ``steps``, so that the order of summation does not matter."""
    return (np.rint(values * steps) / steps).astype(np.float32)


def _record(scene: Scene, coverage: np.ndarray) -> dict[str, Any]:
    """The scene, with the cells that each object covers."""
    side = PIXELS // CELLS
    shares = (
        coverage.reshape(len(coverage), CELLS, side, CELLS, side).mean(axis=(2, 4)).reshape(len(coverage), -1)
    )
    record = scene.as_dict()
    for thing, share in zip(record["objects"], shares, strict=True):
        thing["cells"] = np.flatnonzero(share > _COVERED).tolist()
    return record
