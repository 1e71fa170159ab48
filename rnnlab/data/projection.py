"""Linear projections of feature vectors, as features files and checkpoints record them.

    projected = features components^T + intercept

A file of a projection is HDF5 with ``components`` (K, D) and ``intercept`` (K,), at its root or, as in
features files, in the group ``pca``.
"""

from __future__ import annotations

from typing import NamedTuple

import h5py
import numpy as np

from rnnlab.data.fingerprint import array_hash
from rnnlab.data.hdf5 import read_dataset
from rnnlab.errors import InputError
from rnnlab.hdf5_objects import find_object, open_hdf5
from rnnlab.reading import PathLike, mismatch

GROUP = "pca"


class Projection(NamedTuple):
    """A projection from D to K dimensions."""

    components: np.ndarray  # (K, D) float32
    intercept: np.ndarray  # (K,) float32

    def apply(self, features: np.ndarray) -> np.ndarray:
        """Project features (..., D) to (..., K) float32.

        Raises
        ------
        ValueError
            If the features have another D.
        """
        K, D = self.components.shape
        if features.shape[-1] != D:
            raise InputError(
                f"the PCA projects {D:,} numbers to {K:,}, and the features have {features.shape[-1]:,}: "
                "give the PCA of this encoder"
            )
        return features.astype(np.float32, copy=False) @ self.components.T + self.intercept

    def after(self, first: Projection | None) -> Projection:
        """The projection that applies ``first`` (if there is one), then this one."""
        if first is None:
            return self
        components = np.asarray(self.components, np.float64) @ first.components
        intercept = np.asarray(self.components, np.float64) @ first.intercept + self.intercept
        return Projection(components.astype(np.float32), intercept.astype(np.float32))

    def same_as(self, other: Projection | None) -> bool:
        """Whether another projection has the same matrix and vector."""
        return other is not None and self.fingerprint() == other.fingerprint()

    def fingerprint(self) -> str:
        """A hash of the matrix and the vector."""
        return array_hash(*self)

    def write(self, file: h5py.File) -> None:
        """Add the group ``pca`` to a file."""
        group = file.create_group(GROUP)
        for name, array in self._asdict().items():
            group[name] = np.asarray(array, np.float32)


def read_projection(path: PathLike) -> Projection:
    """Read a file of a projection, or the projection of a features file.

    Raises
    ------
    OSError, KeyError, ValueError
        If the file is missing or invalid. The message names file, field, found and expected.
    """
    with open_hdf5(path) as file:
        return _read(file, "", f"{GROUP}/")


def projection_in(file: h5py.File) -> Projection | None:
    """The projection in the group ``pca`` of an open features file; None if it has none.

    Raises
    ------
    OSError, KeyError, ValueError
        As :func:`read_projection`.
    """
    return None if find_object(file, GROUP) is None else _read(file, f"{GROUP}/")


def _read(file: h5py.File, *places: str) -> Projection:
    """The projection at the first of some places that has it."""
    arrays = {
        name: np.asarray(read_dataset(file, *(f"{place}{name}" for place in places)))
        for name in Projection._fields
    }
    for name, array in arrays.items():
        if array.dtype.kind != "f" or not np.isfinite(array).all():
            found = f"dtype {array.dtype}" if array.dtype.kind != "f" else "NaN or infinity"
            raise mismatch(f"{file.filename}: {name}", found, "finite floating-point numbers")
    components, intercept = arrays.values()
    if components.ndim != 2 or intercept.shape != components.shape[:1]:
        found = f"components {components.shape} and intercept {intercept.shape}"
        raise mismatch(file.filename, found, "(K, D) and (K,)")
    return Projection(components.astype(np.float32), intercept.astype(np.float32))
