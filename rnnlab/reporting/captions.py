"""Captions for people: text, images with captions, and maps of attention."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from rnnlab import plots
from rnnlab.data import CaptionData, image_from_url
from rnnlab.data.caption_inputs import CaptionInputs
from rnnlab.decoding import Hypothesis
from rnnlab.files import atomic_write
from rnnlab.tasks.captioning import written


def captions_text(
    names: Sequence[str], captions: Sequence[Sequence[Hypothesis]], data: CaptionData | CaptionInputs
) -> str:
    """One line for each image or, in n-best lists, one line for each caption with its score."""
    lines = []
    for name, found in zip(names, captions, strict=True):
        if len(found) == 1:
            lines.append(f"{name}: {data.vocabulary.decode(found[0].tokens)}")
            continue
        lines.append(f"{name}:")
        lines += [f"  {one.score:8.3f}  {data.vocabulary.decode(one.tokens)}" for one in found]
    return "\n".join(lines)


def captions_picture(
    path: str | os.PathLike[str],
    names: Sequence[str],
    captions: Sequence[Sequence[Hypothesis]],
    data: CaptionData | CaptionInputs,
    *,
    columns: int = 4,
    images: Sequence[np.ndarray] | None = None,
    download: bool = False,
) -> None:
    """Write a PNG of the images with their best captions; see :func:`attention_picture`."""
    if images is None:
        images = _images(names, data, download)
    figure = plots.caption_grid(images, written(captions, data), columns=columns)
    with atomic_write(path) as temporary:
        plots.save(figure, temporary)


def attention_picture(
    path: str | os.PathLike[str],
    names: Sequence[str],
    captions: Sequence[Sequence[Hypothesis]],
    data: CaptionData | CaptionInputs,
    *,
    images: Sequence[np.ndarray] | None = None,
    download: bool = False,
) -> None:
    """Write a PNG of the attention of each word of the best captions.

    Parameters
    ----------
    path : path
    names : sequence of str
        The images, searched below the folder of the pictures of the data, or below the current folder if
        there is none; missing ones are drawn as placeholders.
    captions : sequence of sequences of Hypothesis
        With alignments.
    data : CaptionData or CaptionInputs
    images : sequence of (h, w, 3) uint8, optional
        What to draw instead, such as the parts of photographs that the encoder saw.
    download : bool
        Fetch images whose names are addresses.

    Raises
    ------
    ValueError
        If the captions have no alignments.
    """
    best = [found[0] for found in captions]
    if any(one.alignment is None for one in best):
        raise ValueError(
            "attention_picture: captions have no alignments, expected those of a model that attends"
        )
    words = [data.vocabulary.decode(one.tokens).split() for one in best]
    weights = [one.alignment[: len(one.tokens)] for one in best]  # type: ignore[index]
    if images is None:
        images = _images(names, data, download)
    with atomic_write(path) as temporary:
        plots.save(plots.attention_grid(images, words, weights), temporary)


def _images(names: Sequence[str], data: CaptionData | CaptionInputs, download: bool) -> list[np.ndarray]:
    folder = data.image_dir or "."  # names of data lead nowhere else
    return [image_from_url(name, folder, download=download) for name in names]
