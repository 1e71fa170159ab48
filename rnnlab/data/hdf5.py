"""Fields of data files: numbers in HDF5, and JSON objects.

Every error names file, field, found and expected. Files are read within the limits of :mod:`rnnlab.reading`
and :mod:`rnnlab.hdf5_objects`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import h5py
import numpy as np

from rnnlab.errors import MissingDataError
from rnnlab.hdf5_objects import find_object, names_in, read_attribute, read_strings, read_values, where
from rnnlab.reading import PathLike, load_json, mismatch, utf8

_LISTED = 12  # maximum number of fields in a message


def get_dataset(file: h5py.File, *fields: str) -> h5py.Dataset:
    """The dataset of the first of ``fields`` that ``file`` has.

    Raises
    ------
    KeyError
        If it has none of them.
    OSError, ValueError
        As :func:`rnnlab.hdf5_objects.find_object`.
    """
    for field in fields:
        if isinstance(found := find_object(file, field), h5py.Dataset):
            return found
    raise MissingDataError(
        f"{file.filename}: found the fields {_listed(names_in(file))}, expected {' or '.join(fields)}"
    )


def read_dataset(file: h5py.File, *fields: str) -> np.ndarray:
    """All values of :func:`get_dataset`, decoded by :func:`decode_values`."""
    dataset = get_dataset(file, *fields)
    return decode_values(read_values(dataset), *affine_of(dataset))


def read_names(file: h5py.File, named: str = "features") -> tuple[str, ...]:
    """The dataset ``filenames``: a name for each row of the dataset ``named``."""
    rows = get_dataset(file, named)
    if not rows.ndim:
        raise mismatch(where(rows), "one value", "a row for each name of filenames")
    names = get_dataset(file, "filenames")
    if names.ndim and len(names) != len(rows):
        raise mismatch(where(names), f"{len(names)} names", f"one for each of {len(rows)} {named}")
    return read_strings(names)


def fixed_length(texts: Sequence[str]) -> np.ndarray:
    """Strings to write to a file, with a fixed length and in UTF-8.

    Strings of variable length are stored in a heap, and HDF5 may loop forever if a byte of it is damaged.

    Raises
    ------
    ValueError
        If a string has a lone surrogate, which UTF-8 cannot encode.
    """
    encoded = np.array([utf8("text to write to HDF5", text) for text in texts], np.bytes_)
    return encoded.astype(h5py.string_dtype("utf-8", encoded.itemsize))


def affine_of(dataset: h5py.Dataset) -> tuple[np.ndarray | None, np.ndarray | None]:
    """The attributes ``offset`` and ``scale`` of numbers stored as bytes: value = offset + scale * byte."""
    offset, scale = (read_attribute(dataset, name) for name in ("offset", "scale"))
    if (offset is None) != (scale is None):
        raise mismatch(where(dataset), "only one of the attributes offset and scale", "both or neither")
    for name, value in (("offset", offset), ("scale", scale)):
        if value is None:
            continue
        place, array = f"{where(dataset)}: attribute {name}", np.asarray(value)
        if array.shape not in ((), dataset.shape[-1:]):
            raise mismatch(place, array.shape, dataset.shape[-1:])
        if array.dtype.kind not in "fiu" or not np.isfinite(array).all():
            raise mismatch(place, value, "finite numbers")
    return offset, scale


def decode_values(raw: np.ndarray, offset: np.ndarray | None, scale: np.ndarray | None) -> np.ndarray:
    """Stored numbers decoded: bytes by their offset and scale, float16 to float32."""
    if offset is not None and scale is not None:
        values = raw.astype(np.float32)
        values *= np.asarray(scale, np.float32)
        values += np.asarray(offset, np.float32)
        return values
    return raw.astype(np.float32) if raw.dtype == np.float16 else raw


def read_json(path: PathLike, *fields: str) -> dict[str, Any]:
    """A JSON file that holds an object with at least ``fields``.

    Raises
    ------
    OSError, ValueError, KeyError
        As :func:`rnnlab.reading.load_json`; also if it holds no object, or a field is missing.
    """
    content, path = load_json(path), os.fspath(path)
    if not isinstance(content, dict):
        expected = f"an object with {', '.join(fields)}" if fields else "an object"
        raise mismatch(path, f"a JSON {type(content).__name__}", expected)
    for field in fields:
        if field not in content:
            raise MissingDataError(f"{path}: found the fields {_listed(list(content))}, expected {field}")
    return content


def _listed(fields: list[str]) -> str:
    more = f" and {len(fields) - _LISTED:,} more" if len(fields) > _LISTED else ""
    return f"{', '.join(fields[:_LISTED]) or 'none'}{more}"
