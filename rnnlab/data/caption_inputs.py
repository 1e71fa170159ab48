"""The inputs of a captioning model without its training data: vocabulary and scaling from a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from rnnlab.data.scaling import FeatureScaling
from rnnlab.data.vocabulary import Vocabulary


@dataclass(frozen=True)
class CaptionInputs:
    """What new images need before a model can caption them, and what its captions need to become words.

    Attributes
    ----------
    vocabulary : Vocabulary
    scaling : FeatureScaling
    image_dir : Path, optional
        The folder of the pictures.
    """

    vocabulary: Vocabulary
    scaling: FeatureScaling
    image_dir: Path | None = None

    @classmethod
    def from_saved(cls, vocabulary: list[str], preprocessing: Mapping[str, Any]) -> Self:
        """From the fields ``vocabulary`` and ``preprocessing`` of a checkpoint."""
        return cls(Vocabulary(vocabulary), FeatureScaling.from_arrays(preprocessing))

    @property
    def num_global_features(self) -> int | None:
        """G, the numbers in a global vector of an image; None if the model reads none."""
        scaling = self.scaling.get("global_features")
        return None if scaling is None else scaling.mean.size

    def standardise(self, features: Any, source: str = "features") -> Any:
        """See :meth:`FeatureScaling.standardise`."""
        return self.scaling.standardise(features, source)
