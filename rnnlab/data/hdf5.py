"""Reading HDF5 and JSON files of others: every error names file, field, found and expected."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from rnnlab.data.errors import MissingDataError

PathLike = str | os.PathLike[str]


def mismatch(where: str, found: object, expected: object) -> ValueError:
    """The error of a check of contents; ``where`` names file and field."""
    return ValueError(f"{where}: found {found}, expected {expected}")


def open_hdf5(path: PathLike) -> h5py.File:
    """Open ``path`` for reading.

    Raises
    ------
    FileNotFoundError, OSError
        If there is no such file, or it is not HDF5, or truncated.
    """
    path = os.fspath(path)
    try:
        return h5py.File(path, "r")
    except FileNotFoundError:
        raise FileNotFoundError(f"{path}: found no such file, expected an HDF5 file") from None
    except OSError as error:
        raise OSError(
            f"{path}: found a file that HDF5 cannot read ({error}), expected a complete HDF5 file"
        ) from error


def get_dataset(file: h5py.File, *fields: str) -> h5py.Dataset:
    """The dataset of the first of ``fields`` that ``file`` has.

    Raises
    ------
    KeyError
        If it has none of them.
    """
    for field in fields:
        if isinstance(file.get(field), h5py.Dataset):
            return file[field]
    raise MissingDataError(
        f"{file.filename}: found the fields {', '.join(file) or 'none'}, expected {' or '.join(fields)}"
    )


def read_dataset(file: h5py.File, *fields: str) -> np.ndarray:
    """All values of :func:`get_dataset`, decoded by :func:`decode_values`."""
    dataset = get_dataset(file, *fields)
    try:
        return decode_values(dataset[()], *affine_of(dataset))
    except OSError as error:
        raise read_error(dataset, error) from error


def read_strings(file: h5py.File, field: str) -> tuple[str, ...]:
    """A one-dimensional dataset of strings."""
    dataset = get_dataset(file, field)
    if h5py.check_string_dtype(dataset.dtype) is None or dataset.ndim != 1:
        raise mismatch(where(dataset), f"{dataset.dtype} {dataset.shape}", "a list of strings")
    return tuple(dataset.asstr()[()])


def affine_of(dataset: h5py.Dataset) -> tuple[np.ndarray | None, np.ndarray | None]:
    """The attributes ``offset`` and ``scale`` of numbers stored as bytes: value = offset + scale * byte."""
    offset, scale = dataset.attrs.get("offset"), dataset.attrs.get("scale")
    if (offset is None) != (scale is None):
        raise mismatch(where(dataset), "only one of the attributes offset and scale", "both or neither")
    for name, value in (("offset", offset), ("scale", scale)):
        if value is not None and np.shape(value) not in ((), dataset.shape[-1:]):
            raise mismatch(f"{where(dataset)}: attribute {name}", np.shape(value), dataset.shape[-1:])
    return offset, scale


def decode_values(raw: np.ndarray, offset: np.ndarray | None, scale: np.ndarray | None) -> np.ndarray:
    """Stored numbers decoded: bytes by their offset and scale, float16 to float32."""
    if offset is not None and scale is not None:
        values = raw.astype(np.float32)
        values *= np.asarray(scale, np.float32)
        values += np.asarray(offset, np.float32)
        return values
    return raw.astype(np.float32) if raw.dtype == np.float16 else raw


def read_error(dataset: h5py.Dataset, error: OSError) -> OSError:
    """The error of a dataset with an unreadable part."""
    return OSError(
        f"{where(dataset)}: found a part that cannot be read ({error}), expected a complete dataset"
    )


def where(dataset: h5py.Dataset) -> str:
    """File and field of ``dataset``, for messages."""
    return f"{dataset.file.filename}: {dataset.name.lstrip('/')}"


def read_json(path: PathLike, *fields: str) -> dict[str, Any]:
    """A JSON file that holds an object with at least ``fields``.

    Raises
    ------
    FileNotFoundError, ValueError, KeyError
        If there is no such file, if it is not JSON or not an object, or if a field is missing.
    """
    path = os.fspath(path)  # a path with an environment variable that is not set raises its own error
    try:
        content = json.loads(Path(path).read_text(encoding="utf8"))
    except FileNotFoundError:
        raise FileNotFoundError(f"{path}: found no such file, expected a JSON file") from None
    except ValueError as error:  # not JSON, or not text
        raise mismatch(str(path), f"text that is not JSON ({error})", "a JSON file") from error
    if not isinstance(content, dict):
        raise mismatch(str(path), f"a JSON {type(content).__name__}", f"an object with {', '.join(fields)}")
    for field in fields:
        if field not in content:
            raise MissingDataError(
                f"{path}: found the fields {', '.join(content) or 'none'}, expected {field}"
            )
    return content
