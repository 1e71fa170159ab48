"""The features of a long command, part by part, so that a kill at any moment loses one part at most.

A folder beside the features file has ``encoder.json``, the settings, and ``part-00000.h5`` and so on, each
with ``features`` and ``filenames``. Every file is complete or absent.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Container, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rnnlab.data.hdf5 import fixed_length, read_dataset, read_json, read_names
from rnnlab.errors import InputError
from rnnlab.files import atomic_hdf5, atomic_write
from rnnlab.hdf5_objects import open_hdf5

_SETTINGS = "encoder.json"


class Parts:
    """The folder of the parts of a features file.

    Parameters
    ----------
    folder : path
        Created if it does not exist.
    settings : dict
        What the features depend on, as JSON can hold it.

    Attributes
    ----------
    names : list of str
        The photographs in all parts.

    Raises
    ------
    ValueError
        If the folder has parts that were made with other settings.
    """

    def __init__(self, folder: str | os.PathLike[str], settings: dict[str, Any]) -> None:
        self.folder = Path(folder)
        file = self.folder / _SETTINGS
        if file.exists():
            _check_same(self.folder, read_json(file), settings)
        else:
            with atomic_write(file) as temporary:
                temporary.write_text(json.dumps(settings), encoding="utf8")
        self._paths = sorted(self.folder.glob("part-*.h5"))
        self.names = [name for path in self._paths for name in _names_in(path)]

    def add(self, names: Sequence[str], features: np.ndarray) -> None:
        """Write another part."""
        path = self.folder / f"part-{len(self._paths):05}.h5"
        with atomic_hdf5(path) as file:
            file["features"], file["filenames"] = features, fixed_length(names)
        self._paths.append(path)
        self.names += names

    def read(self, wanted: Container[str]) -> Iterator[tuple[list[str], np.ndarray]]:
        """The names and features (float32) of each part, of photographs in ``wanted`` only."""
        for path in self._paths:
            names = _names_in(path)
            chosen = [row for row, name in enumerate(names) if name in wanted]
            if chosen:
                with open_hdf5(path) as file:
                    features = read_dataset(file, "features")[chosen]
                yield [names[row] for row in chosen], features

    def remove(self) -> None:
        """Delete the folder."""
        shutil.rmtree(self.folder)


def _names_in(path: Path) -> tuple[str, ...]:
    with open_hdf5(path) as file:
        return read_names(file)


def _check_same(folder: Path, found: dict[str, Any], expected: dict[str, Any]) -> None:
    differ = [key for key in {**found, **expected} if found.get(key) != expected.get(key)]
    if differ:
        listed = "; ".join(f"{key} {found.get(key)}, not {expected.get(key)}" for key in differ)
        raise InputError(
            f"{folder} has features of an interrupted command with other settings ({listed}): repeat that "
            "command, or delete the folder"
        )
