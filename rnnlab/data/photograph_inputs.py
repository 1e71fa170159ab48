"""Photographs as inputs of a trained captioning model: their visible part, and whether they are unusual."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from rnnlab.data.caption_inputs import CaptionInputs
from rnnlab.data.joint import JointCaptionInputs
from rnnlab.data.photographs import read_photograph
from rnnlab.reading import PathLike

_FAR = 3.0  # root mean square of standardised features above which a photograph is reported as unusual


def frame_of(inputs: CaptionInputs | JointCaptionInputs, photograph: PathLike) -> np.ndarray:
    """The part of a photograph that the encoder of a grid sees, (h, w, 3) uint8.

    Parameters
    ----------
    inputs : CaptionInputs or JointCaptionInputs
        The inputs of a model that attends to regions. If there are several encoders of grids, the first is
        used.
    photograph : path
    """
    grid = next(encoding for encoding in inputs.encodings.values() if encoding.grid)
    return np.asarray(grid.preprocessing.frame(read_photograph(photograph)))


def unlike_training(names: Sequence[str], features: Any) -> Iterator[str]:
    """A sentence about each photograph whose features are far from those of the training images.

    Parameters
    ----------
    names : sequence of N str
    features : (N, ...), or a tuple of such arrays
        As :meth:`CaptionInputs.encode` returns them.
    """
    arrays = features if isinstance(features, tuple) else (features,)
    for name, *rows in zip(names, *arrays, strict=True):
        distance = max(float(np.sqrt(np.square(row).mean())) for row in rows)
        if distance > _FAR:
            yield (
                f"{name}: its features are {distance:.1f} standard deviations from those of the training "
                "images (about 1 is usual): are the encoder, its settings and its PCA right?"
            )
