"""How features were made: the encoder and its settings, as features files and checkpoints record them.

A features file has the attribute ``encoder``, with the settings and the sha256 of the ONNX file as JSON; the
attribute ``encoder_path``, the location of that file; and, if a PCA was applied, the group ``pca`` of
:mod:`rnnlab.data.projection`. A checkpoint has the same under ``preprocessing``.
"""

from __future__ import annotations

import json
import os
import reprlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Self

import h5py
import numpy as np

from rnnlab.data.photographs.preprocessing import Preprocessing
from rnnlab.data.projection import Projection, projection_in
from rnnlab.hdf5_objects import open_hdf5, read_attribute
from rnnlab.options import as_plain, check_options
from rnnlab.reading import PathLike, mismatch

_ATTRIBUTE, _PATH = "encoder", "encoder_path"


@dataclass(frozen=True, eq=False)
class ImageEncoding:
    """How a photograph becomes features.

    Attributes
    ----------
    path : str
        The original location of the ONNX file. Files are compared by their hash.
    sha256 : str
        The hash of the ONNX file, including the files of its external weights if it has any.
    layer : str
        The name of the tensor in the graph that is read.
    grid : bool
        Whether the features are vectors of regions rather than one vector of the image.
    preprocessing : Preprocessing
    dtype : "float16" or "float32"
        Features are rounded to it.
    projection : Projection, optional
        The PCA of feature vectors.
    """

    path: str
    sha256: str
    layer: str
    grid: bool
    preprocessing: Preprocessing
    dtype: Literal["float16", "float32"] = "float16"
    projection: Projection | None = None

    def __post_init__(self) -> None:
        checked = ("sha256", "layer", "grid", "dtype")
        check_options("ImageEncoding", ImageEncoding, {name: getattr(self, name) for name in checked})

    def settings(self) -> dict[str, Any]:
        """All fields but ``path`` and ``projection``, as JSON values."""
        fields = asdict(self)
        del fields["path"], fields["projection"]
        return as_plain(fields)

    @classmethod
    def from_settings(
        cls, settings: Mapping[str, Any], path: str, projection: Projection | None, source: str
    ) -> Self:
        """The inverse of :meth:`settings`; errors name ``source``.

        Raises
        ------
        ValueError
            If a setting is missing, unknown or invalid.
        """
        try:
            fields = dict(settings)
            preprocessing = Preprocessing(**fields.pop("preprocessing"))
            return cls(path=path, preprocessing=preprocessing, projection=projection, **fields)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise mismatch(source, f"{settings} ({error})", "the settings of an encoder") from None

    def same_as(self, other: ImageEncoding | None) -> bool:
        """Whether another encoding gives the same features, independent of the location of its file."""
        if other is None or self.settings() != other.settings():
            return False
        if self.projection is None:
            return other.projection is None
        return self.projection.same_as(other.projection)

    def describe(self) -> str:
        """The encoding in a line."""
        of = "a grid" if self.grid else "one vector"
        pca = "" if self.projection is None else f", PCA to {len(self.projection.intercept)}"
        return f"{Path(self.path).name} ({self.sha256[:12]}), layer {self.layer}, {of}{pca}"

    def write(self, file: h5py.File) -> None:
        """Record the encoding in an open features file."""
        file.attrs[_ATTRIBUTE] = np.bytes_(json.dumps(self.settings()))
        file.attrs[_PATH] = np.bytes_(os.fsencode(self.path))
        if self.projection is not None:
            self.projection.write(file)

    def arrays(self, field: str) -> dict[str, Any]:
        """The entries of a checkpoint for the features of ``field``: arrays and JSON."""
        saved: dict[str, Any] = {f"{field}_{_ATTRIBUTE}": self.settings(), f"{field}_{_PATH}": self.path}
        if self.projection is not None:
            saved |= {
                f"{field}_pca_{name}": np.asarray(array) for name, array in self.projection._asdict().items()
            }
        return saved

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any], field: str) -> Self | None:
        """The inverse of :meth:`arrays`; None if there are no such entries."""
        if f"{field}_{_ATTRIBUTE}" not in arrays:
            return None
        projection = None
        if f"{field}_pca_components" in arrays:
            projection = Projection(*(arrays[f"{field}_pca_{name}"] for name in Projection._fields))
        name = f"{field}_{_ATTRIBUTE}"
        return cls.from_settings(arrays[name], arrays[f"{field}_{_PATH}"], projection, name)


def recorded_encodings(files: Mapping[str, PathLike]) -> dict[str, ImageEncoding]:
    """The encodings that the features files of some fields record, by field."""
    found = {field: read_encoding(path) for field, path in files.items()}
    return {field: encoding for field, encoding in found.items() if encoding is not None}


def read_encoding(path: PathLike) -> ImageEncoding | None:
    """The encoding that a features file records; None if it records none.

    Raises
    ------
    OSError, ValueError
        If the file is missing, or the record invalid.
    """
    with open_hdf5(path) as file:
        recorded = read_attribute(file, _ATTRIBUTE)
        if recorded is None:
            return None
        if isinstance(recorded, bytes):
            recorded = recorded.decode(errors="replace")
        where = f"{path}: attribute {_ATTRIBUTE}"
        try:
            settings = json.loads(recorded)
        except (TypeError, ValueError, RecursionError):
            raise mismatch(where, reprlib.repr(recorded), "JSON") from None
        if not isinstance(settings, dict):
            raise mismatch(where, reprlib.repr(settings), "a JSON object")
        location = read_attribute(file, _PATH)
        onnx = os.fsdecode(location) if isinstance(location, bytes) else "encoder.onnx"
        return ImageEncoding.from_settings(settings, onnx, projection_in(file), where)
