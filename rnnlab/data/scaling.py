"""The scaling of features: every feature of the training split has mean 0 and standard deviation 1.

    scaled = (features - mean) / std

The mean and the standard deviation of the training split are saved with the model, because it can only read
features on this scale.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np

from rnnlab.data.lazy import LazyFeatures
from rnnlab.errors import InputTypeError
from rnnlab.reading import mismatch
from rnnlab.types import Array


class Scaling(NamedTuple):
    """Mean and standard deviation of features (..., D)."""

    mean: np.ndarray  # (D,) float32
    std: np.ndarray  # (D,) float32, above 0

    @classmethod
    def identity(cls, D: int) -> Self:
        """Mean 0 and standard deviation 1, which change nothing."""
        return cls(np.zeros(D, np.float32), np.ones(D, np.float32))

    @property
    def is_identity(self) -> bool:
        """Whether it changes nothing."""
        return not self.mean.any() and bool((self.std == 1).all())

    def apply(self, features: Any) -> Any:
        """The scaled features as float32; lazy features stay lazy."""
        if isinstance(features, LazyFeatures):
            return features.standardised(*self)
        return ((features - self.mean) / self.std).astype(np.float32)


class FeatureScaling(dict[str, Scaling]):
    """The scaling of each field: ``features``, and ``global_features`` if the data have them."""

    def standardise(self, features: Any, source: str = "features") -> Any:
        """Scale new features as those of the training split.

        Parameters
        ----------
        features : (..., D), or a tuple of (..., D) and (..., G) for a model with global features
        source : str
            The origin of the features, such as the path of a file, for the errors.

        Returns
        -------
        as ``features``, float32

        Raises
        ------
        ValueError
            If D or G differs from the training data's, or there are too few or too many arrays.
        TypeError
            If they are not real numbers.
        """
        given = features if isinstance(features, tuple) else (features,)
        given = tuple(part if hasattr(part, "dtype") else np.asarray(part) for part in given)
        if len(given) != len(self):
            plural = "array" if len(given) == 1 else "arrays"
            raise mismatch(source, f"{len(given)} {plural}", f"one each of {', '.join(self)}")
        for part, (name, scaling) in zip(given, self.items(), strict=True):
            if np.dtype(part.dtype).kind not in "fiu":
                raise InputTypeError(f"{source}: {name}: found dtype {part.dtype}, expected real numbers")
            if part.shape[-1:] != scaling.mean.shape:
                expected = f"(..., {scaling.mean.size}) as the features that the model was trained on"
                raise mismatch(f"{source}: {name}", f"shape {part.shape}", expected)
        scaled = tuple(scaling.apply(part) for part, scaling in zip(given, self.values(), strict=True))
        return scaled if isinstance(features, tuple) else scaled[0]

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays to save: ``features_mean``, ``features_std`` and so on."""
        return {f"{name}_{part}": getattr(self[name], part) for name in self for part in Scaling._fields}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> Self:
        """The inverse of :meth:`arrays`; other entries of the mapping are ignored."""
        fields = ("features", "global_features")
        return cls(
            {
                name: Scaling(arrays[f"{name}_mean"], arrays[f"{name}_std"])
                for name in fields
                if f"{name}_mean" in arrays
            }
        )
