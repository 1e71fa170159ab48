"""Photographs, or pictures of a run's data, to captions with the attention of each word."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rnnlab.data.images import named_image
from rnnlab.data.photograph_inputs import frame_of, unlike_training
from rnnlab.errors import InputError
from rnnlab.reading import PathLike
from rnnlab.recipes.tables import DecodingTable
from rnnlab.reporting.captions import attended_words
from rnnlab.runs import Run
from rnnlab.serving.answerer import Answerer
from rnnlab.tasks.search import decode
from rnnlab.types import Array


class Attention(NamedTuple):
    """The attention of the words of a caption to a picture."""

    picture: np.ndarray  # (h, w, 3) uint8, the part that the model attends to
    words: list[str]
    weights: Array  # (words, regions) of a square grid


class Captioned(NamedTuple):
    """The captions of a picture."""

    captions: list[tuple[str, float]]  # with their scores, best first
    attention: Attention | None = None  # attention of the best caption
    references: Sequence[str] = ()
    notes: Sequence[str] = ()  # remarks for the reader


class PhotographCaptioner(Answerer):
    """Captions of photographs, by a run whose encoders are known.

    Raises
    ------
    OSError, ValueError
        As :meth:`rnnlab.data.caption_inputs.CaptionInputs.open_encoders`.
    """

    def __init__(self, run: Run, decoding: DecodingTable, device: str = "cpu") -> None:
        super().__init__(run, decoding, device)
        self._encode = run.inputs.open_encoders()

    def caption(self, photograph: PathLike, beam_size: int) -> Captioned:
        """The captions of a photograph in a file.

        Raises
        ------
        OSError
            If it is not an image, damaged, or too large. The message begins with the path.
        ValueError
            As :meth:`Answerer.search`.
        """
        features = self._encode([photograph])
        found = _captioned(self, features, beam_size, lambda: frame_of(self.run.inputs, photograph))
        far = unlike_training([Path(photograph).name], features)
        return found._replace(notes=[*far, *found.notes])


class PictureCaptioner(Answerer):
    """Captions of the pictures of a run's data, whose features were not computed by an encoder.

    Attributes
    ----------
    splits : dict of str to sequence of str
        The names of the pictures of each split that has any; ``train`` is included only if it is the only
        one.
    """

    def __init__(self, run: Run, decoding: DecodingTable, device: str = "cpu") -> None:
        super().__init__(run, decoding, device)
        names = {split: found for split in run.data.splits if (found := run.data.split(split).names)}
        held_out = {split: each for split, each in names.items() if split != "train"}
        self.splits: dict[str, Sequence[str]] = held_out or names

    def picture(self, name: str) -> np.ndarray:
        """A picture, (h, w, 3) uint8; a placeholder if its file is missing."""
        return named_image(name, self.run.data.image_dir)

    def caption(self, split: str, number: int, beam_size: int) -> Captioned:
        """The captions of a picture, given by its split and its index in the split.

        Raises
        ------
        ValueError
            If there is no such split or picture; as :meth:`Answerer.search`.
        """
        if split not in self.splits:
            raise InputError(f"split is {split!r}, expected one of {', '.join(self.splits)}")
        N = len(self.splits[split])
        if not isinstance(number, int) or not 0 <= number < N:
            raise InputError(f"number is {number!r}, expected a picture of {split}, from 0 to {N - 1}")
        images = self.run.data.split(split)
        features = images.features_at(slice(number, number + 1))
        found = _captioned(self, features, beam_size, lambda: self.picture(images.names[number]))
        return found._replace(references=images.references[number])


def _captioned(
    answerer: Answerer, features: Any, beam_size: int, picture: Callable[[], np.ndarray]
) -> Captioned:
    """The captions for the features of one image. ``picture`` returns the part that the model attends to."""
    model, inputs = answerer.run.model, answerer.run.inputs
    (found,) = answerer.search(
        lambda options: decode(model, features, options, return_alignments=answerer.attends), beam_size
    )
    captions = [(inputs.vocabulary.decode(each.tokens), each.score) for each in found]
    if not answerer.attends:
        return Captioned(captions)
    words, weights = attended_words(found[0], inputs)
    if math.isqrt(weights.shape[1]) ** 2 != weights.shape[1]:
        return Captioned(
            captions, notes=["The regions are not a square grid, so there are no attention maps."]
        )
    return Captioned(captions, Attention(picture(), words, weights))
