"""Principal components, fitted chunk by chunk to features larger than memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from rnnlab.data.projection import Projection
from rnnlab.errors import InputError
from rnnlab.types import Array

_ROWS = 4096  # features in memory at a time


@dataclass(frozen=True)
class PCA:
    """Principal components: z = (x - mean) components.

    Attributes
    ----------
    mean : (D,) float64
    components : (D, K) float64
        Orthonormal columns by decreasing variance. The largest entry in magnitude of each column is positive.
    variances : (K,) float64
    explained : float
        The share of the variance that the components explain.
    """

    mean: np.ndarray
    components: np.ndarray
    variances: np.ndarray
    explained: float

    @classmethod
    def fit(cls, features: Array, dims: int) -> PCA:
        """Fit ``dims`` components to features (N, D), or to all regions of features (N, regions, D), exactly.

        Raises
        ------
        ValueError
            If there are fewer than ``dims`` numbers in a feature vector, or fewer vectors, or no features; or
            if a number is not finite.
        """
        if len(features.shape) < 2 or 0 in features.shape:
            raise InputError(
                f"PCA: features have shape {features.shape}, expected (N, D) or (N, regions, D) without 0"
            )
        *regions, D = features.shape[1:]
        rows = max(1, _ROWS // math.prod(regions))

        def read() -> Iterator[np.ndarray]:
            for start in range(0, len(features), rows):
                yield features[start : start + rows].reshape(-1, D)

        return cls.fit_chunks(read, dims)

    @classmethod
    def fit_chunks(cls, read: Callable[[], Iterable[np.ndarray]], dims: int) -> PCA:
        """Fit ``dims`` components to features that ``read()`` yields in chunks (n, D). It is called twice.

        Raises
        ------
        ValueError
            As :meth:`fit`.
        """
        totals, count = np.zeros(0), 0
        for chunk in read():
            totals = chunk.sum(axis=0, dtype=np.float64) + (totals if count else 0)
            count += len(chunk)
        D = len(totals)
        if not 1 <= dims <= min(count, D):
            raise InputError(
                f"PCA: dims is {dims}, expected 1 to {min(count, D)} for features of shape {(count, D)}"
            )
        if not np.isfinite(totals).all():
            raise InputError("PCA: features hold NaN or infinity, expected finite numbers")
        mean = totals / count
        covariance = np.zeros((D, D))
        for chunk in read():
            centred = chunk - mean
            covariance += centred.T @ centred
        values, vectors = np.linalg.eigh(covariance / count)
        order = np.argsort(-values)[:dims]
        components = vectors[:, order]
        components *= np.sign(components[np.abs(components).argmax(axis=0), np.arange(dims)])
        return cls(mean, components, values[order], float(values[order].sum() / max(values.sum(), 1e-300)))

    def projection(self) -> Projection:
        """The same transformation as one matrix and one vector, for files."""
        components = self.components.T
        return Projection(components.astype(np.float32), (-components @ self.mean).astype(np.float32))

    def transform(self, features: np.ndarray) -> np.ndarray:
        """Project features (..., D) to (..., K) float32."""
        return ((features - self.mean) @ self.components).astype(np.float32)


class Projected:
    """Lazy features (N, ..., K): rows are projected when they are read."""

    dtype = np.dtype(np.float32)

    def __init__(self, features: Array, pca: PCA) -> None:
        self._features, self._pca = features, pca
        self.shape = (*features.shape[:-1], pca.components.shape[1])

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice | np.ndarray) -> np.ndarray:
        return self._pca.transform(self._features[rows])
