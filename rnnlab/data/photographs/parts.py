"""The features of a long command, saved in parts, so that killing the process loses at most one part.

A folder next to the features file has ``encoder.json``, the settings, and ``part-00000.h5`` and so on, each
with ``features``, ``filenames`` and ``sha256``. The hashes are those of the photographs' files, so that
another photograph of the same name is recognised. Every file is complete or absent.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Container, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rnnlab.data.hdf5 import fixed_length, get_dataset, read_dataset, read_json, read_names
from rnnlab.errors import InputError
from rnnlab.files import atomic_hdf5, write_json
from rnnlab.hdf5_objects import find_object, open_hdf5, read_strings
from rnnlab.reading import mismatch

_SETTINGS = "encoder.json"


class Photograph(NamedTuple):
    """A photograph, independent of the folder of its file."""

    name: str  # name of the file
    sha256: str  # hash of its content


class Parts:
    """The folder of the parts of a features file.

    Parameters
    ----------
    folder : path
        Created if it does not exist.
    settings : dict
        The settings on which the features depend, as JSON values.

    Attributes
    ----------
    photographs : list of Photograph
        The photographs in all parts.

    Raises
    ------
    ValueError
        If the folder has parts that were made with other settings, or that do not record their settings or
        their photographs.
    """

    def __init__(self, folder: str | os.PathLike[str], settings: dict[str, Any]) -> None:
        self.folder = Path(folder)
        file = self.folder / _SETTINGS
        self._paths = sorted(self.folder.glob("part-*.h5"))
        if not self._paths:
            write_json(file, settings)
        elif not file.exists():
            expected = "the settings that made them: delete the folder to begin again"
            raise mismatch(str(self.folder), f"features without {_SETTINGS}", expected)
        else:
            _check_same(self.folder, read_json(file), settings)
        self.photographs = [photograph for path in self._paths for photograph in _photographs_in(path)]

    def add(self, photographs: Sequence[Photograph], features: np.ndarray) -> None:
        """Write another part."""
        number = len(self._paths)
        while (path := self.folder / f"part-{number:05}.h5").exists():  # if a part before it was deleted
            number += 1
        names, hashes = zip(*photographs, strict=True)
        with atomic_hdf5(path) as file:
            file["features"] = features
            file["filenames"], file["sha256"] = fixed_length(names), fixed_length(hashes)
        self._paths.append(path)
        self.photographs += photographs

    def read(self, wanted: Container[Photograph]) -> Iterator[tuple[list[str], np.ndarray]]:
        """The names and features (float32) of each part, of photographs in ``wanted`` only."""
        for path in self._paths:
            photographs = _photographs_in(path)
            chosen = [row for row, photograph in enumerate(photographs) if photograph in wanted]
            if chosen:
                with open_hdf5(path) as file:
                    features = read_dataset(file, "features")[chosen]
                yield [photographs[row].name for row in chosen], features

    def remove(self) -> None:
        """Delete the folder."""
        shutil.rmtree(self.folder)


def _photographs_in(path: Path) -> list[Photograph]:
    with open_hdf5(path) as file:
        names = read_names(file)
        hashes = read_strings(get_dataset(file, "sha256")) if find_object(file, "sha256") else ()
    if len(hashes) != len(names):
        expected = f"one for each of {len(names)} photographs: delete the folder {path.parent} to begin again"
        raise mismatch(f"{path}: sha256", f"{len(hashes)} values", expected)
    return list(map(Photograph, names, hashes))


def _check_same(folder: Path, found: dict[str, Any], expected: dict[str, Any]) -> None:
    differ = [key for key in {**found, **expected} if found.get(key) != expected.get(key)]
    if differ:
        listed = "; ".join(f"{key} {found.get(key)}, not {expected.get(key)}" for key in differ)
        raise InputError(
            f"{folder} has features of an interrupted command with other settings ({listed}): repeat that "
            "command, or delete the folder"
        )
