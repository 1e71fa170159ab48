"""Photographs to a features file: ``rnnlab features``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from tqdm import tqdm

from rnnlab.data.hdf5 import fixed_length
from rnnlab.data.names import composed
from rnnlab.data.pca import PCA
from rnnlab.data.photographs.encoder import BATCH_SIZE, ImageEncoder
from rnnlab.data.photographs.encoding import ImageEncoding
from rnnlab.data.photographs.parts import Parts, Photograph
from rnnlab.data.photographs.reading import FORMATS, read_photograph
from rnnlab.errors import InputError
from rnnlab.files import atomic_hdf5
from rnnlab.locks import locked
from rnnlab.reading import PathLike, check_regular, file_hash, mismatch
from rnnlab.signals import deliver_signals

SUFFIXES = frozenset(suffix for suffixes in FORMATS.values() for suffix in suffixes)
PART_SIZE = 256  # photographs per part; at most this many are lost if the process is killed


@dataclass(frozen=True)
class Extracted:
    """The result of :func:`extract_features`.

    Attributes
    ----------
    count : int
        The number of photographs.
    shape : tuple of int
        The shape of each photograph's features.
    encoding : ImageEncoding
    skipped : dict of str to str
        The photographs that could not be read, with the reasons.
    explained : float or None
        The share of the variance that a fitted PCA explains.
    """

    count: int
    shape: tuple[int, ...]
    encoding: ImageEncoding
    skipped: dict[str, str]
    explained: float | None = None


def find_photographs(places: Iterable[PathLike]) -> list[Path]:
    """The photographs in files and folders, including subfolders, sorted by name.

    In a folder, a photograph is any file with a suffix of :data:`~rnnlab.data.photographs.reading.FORMATS`
    that is not hidden. A file that is found twice is used once.

    Raises
    ------
    OSError
        If a place does not exist or is not a regular file, or a folder has no photographs.
    ValueError
        If two photographs have the same name, because features are looked up by the file's name without its
        folder, or if a name is not UTF-8.
    """
    found: list[Path] = []
    for place in map(Path, places):
        if place.is_dir():
            inside = sorted(path for path in place.rglob("*") if _is_photograph(path))
            if not inside:
                raise FileNotFoundError(
                    f"{place}: found no photographs, expected files of a format that is read: "
                    f"{', '.join(FORMATS)}"
                )
            found += inside
        else:
            check_regular(place, "photographs or a folder of them")
            found.append(place)
    paths: dict[str, Path] = {}
    for path in found:
        try:
            path.name.encode()
        except UnicodeEncodeError:
            raise InputError(f"{str(path)!r} has a name that is not UTF-8, expected another name") from None
        other = paths.setdefault(composed(path.name), path)
        if os.path.realpath(other) != os.path.realpath(path):
            raise InputError(
                f"{other} and {path} have the same name, expected different ones: features are found by the "
                "file's name without its folder"
            )
    return list(paths.values())


def _is_photograph(path: Path) -> bool:
    # hidden files are those that macOS adds to each file on some disks
    return path.suffix.lower() in SUFFIXES and not path.name.startswith(".") and not path.is_dir()


def extract_features(
    paths: Sequence[Path],
    out: PathLike,
    encoder: ImageEncoder,
    *,
    pca_components: int | None = None,
    pca_names: AbstractSet[str] | None = None,
    progress: bool = True,
    report: Callable[[str], None] = print,
) -> Extracted:
    """Write the features of photographs, and how they were made, to an HDF5 file.

    Progress is saved in the folder ``OUT.parts``: if the process is killed, the same call resumes.
    Photographs that have changed since, or been replaced under the same name, are encoded again. The file is
    complete or absent.

    Parameters
    ----------
    paths : sequence of Path
        Their names must differ.
    out : path
        Must not exist.
    encoder : ImageEncoder
    pca_components : int, optional
        Fit a PCA of this number of components to these photographs, and apply it.
    pca_names : set of str, optional
        The names of the photographs that the PCA is fitted to, such as those of the training split. It is
        applied to all. By default it is fitted to all, too.
    progress : bool
        Show a progress bar.
    report : callable
        Called with a line for each photograph that is skipped because it cannot be read.

    Raises
    ------
    FileExistsError
        If ``out`` exists.
    InUseError
        If another process writes ``out``.
    ValueError
        If no photograph can be read, or none of ``pca_names``; if features are not finite or do not fit the
        PCA; if ``pca_names`` is given without ``pca_components``; if the parts are from an interrupted call
        with other settings, or do not record their settings or their photographs.
    """
    out, encoding = Path(out), encoder.encoding
    if out.exists():
        raise FileExistsError(f"{out} already exists: delete it, or choose another file with --out")
    D = encoder.shape[-1]
    if pca_names is not None and pca_components is None:
        raise InputError("pca_names is given, which needs pca_components")
    if pca_components is not None and not 1 <= pca_components <= D:
        raise InputError(f"pca_components is {pca_components}, expected 1 to the {D:,} of a feature vector")
    folder = out.with_name(f"{out.name}.parts")
    with locked(folder, f"{out} is in use: another process writes it"):
        parts = Parts(folder, _settings_of_parts(encoding))
        wanted, skipped = _encode_missing(paths, parts, encoder, progress, report)
        if not wanted:
            raise InputError(f"{out}: no photograph of {len(paths):,} can be read")
        explained = None
        project: Callable[[np.ndarray], np.ndarray] = _unchanged
        if pca_components is not None:
            to_fit = {each for each in wanted if pca_names is None or each.name in pca_names}
            if not to_fit:
                raise InputError("pca_names has none of the photographs, expected some of them")
            fitted = PCA.fit_chunks(lambda: _vectors(parts, to_fit), pca_components)
            encoding = replace(encoding, projection=fitted.projection().after(encoding.projection))
            project, explained = fitted.projection().apply, fitted.explained
        shape = (*encoder.shape[:-1], pca_components or D)
        with atomic_hdf5(out) as file:
            dataset = file.create_dataset("features", shape=(len(wanted), *shape), dtype=encoding.dtype)
            names: list[str] = []
            for part_names, features in parts.read(wanted):
                deliver_signals()
                stored = _stored(project(features), part_names, encoding.dtype)
                dataset[len(names) : len(names) + len(part_names)] = stored
                names += part_names
            file["filenames"] = fixed_length(names)
            encoding.write(file)
        parts.remove()
    return Extracted(len(wanted), shape, encoding, skipped, explained)


def _encode_missing(
    paths: Sequence[Path],
    parts: Parts,
    encoder: ImageEncoder,
    progress: bool,
    report: Callable[[str], None],
) -> tuple[set[Photograph], dict[str, str]]:
    """Add the features of photographs that are in no part.

    Returns
    -------
    wanted : set of Photograph
        The photographs of ``paths``, which the parts now have.
    skipped : dict of str to str
        The photographs that cannot be read, with the reasons.
    """
    wanted, skipped = _find_in_parts(paths, parts), {}
    done = {photograph.name for photograph in wanted}
    missing = [path for path in paths if path.name not in done]
    photographs: list[Photograph] = []
    features: list[np.ndarray] = []
    with tqdm(
        total=len(paths), initial=len(paths) - len(missing), unit=" photographs", disable=not progress
    ) as bar:
        for start in range(0, len(missing), BATCH_SIZE):
            batch = missing[start : start + BATCH_SIZE]
            values: dict[Photograph, np.ndarray] = {}
            for path in batch:
                try:
                    # The hash comes first, so that it belongs to no other content if the file changes
                    # meanwhile.
                    photograph = Photograph(path.name, file_hash(path))
                    values[photograph] = encoder.encoding.preprocessing.values(read_photograph(path))
                except OSError as error:
                    skipped[str(path)] = str(error)
                    report(f"skipped: {error}")
            if values:
                features.append(_encode(values, encoder))
                photographs += values
            bar.update(len(batch))
            if photographs and (len(photographs) >= PART_SIZE or start + BATCH_SIZE >= len(missing)):
                parts.add(photographs, np.concatenate(features))
                wanted.update(photographs)
                photographs, features = [], []
    return wanted, skipped


def _find_in_parts(paths: Sequence[Path], parts: Parts) -> set[Photograph]:
    """The photographs in the parts whose files still have the same content."""
    known = set(parts.photographs)
    names = {photograph.name for photograph in known}
    found = set()
    for path in paths:
        if path.name in names:
            with suppress(OSError):  # reported when it is encoded
                found.add(Photograph(path.name, file_hash(path)))
    return found & known


def _encode(values: dict[Photograph, np.ndarray], encoder: ImageEncoder) -> np.ndarray:
    """The features of the inputs of a batch of photographs, checked and in the type of the file."""
    features = encoder.encode_values(np.stack(list(values.values())))
    return _stored(features, [photograph.name for photograph in values], encoder.encoding.dtype)


def _stored(features: np.ndarray, names: Sequence[str], dtype: str) -> np.ndarray:
    """The features of photographs in the type of the file, checked."""
    with np.errstate(over="ignore"):
        stored = features.astype(dtype)
    finite = np.isfinite(stored).reshape(len(stored), -1).all(axis=1)
    if not finite.all():
        name = names[int(np.argmin(finite))]
        hint = ": try --dtype float32" if dtype == "float16" else ""
        raise mismatch(f"the features of {name}", "NaN or infinity", f"finite numbers{hint}")
    return stored


def _settings_of_parts(encoding: ImageEncoding) -> dict[str, object]:
    """The settings on which the features in the parts depend."""
    return encoding.settings() | {"pca": encoding.projection and encoding.projection.fingerprint()}


def _vectors(parts: Parts, wanted: set[Photograph]) -> Iterator[np.ndarray]:
    """All feature vectors (n, D), a part at a time."""
    for _, features in parts.read(wanted):
        yield features.reshape(-1, features.shape[-1])


def _unchanged(features: np.ndarray) -> np.ndarray:
    return features
