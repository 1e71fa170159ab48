"""Captions as text, images with captions, and attention maps."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence

import numpy as np
from PIL import Image

from rnnlab import files
from rnnlab.data import CaptionData
from rnnlab.data.caption_inputs import CaptionInputs
from rnnlab.data.images import named_image
from rnnlab.decoding import Hypothesis
from rnnlab.errors import InputError
from rnnlab.reporting.json_file import write_json
from rnnlab.runs import Run
from rnnlab.tasks.captioning import written

_COCO_NAME = re.compile(r"(?:COCO_\w+_)?(\d{12})\.\w+")  # its number is the id of the image
_SIDE = 512  # pixels of the longer side to which images are shrunk; they are drawn with fewer


def captions_text(
    names: Sequence[str],
    captions: Sequence[Sequence[Hypothesis]],
    data: CaptionData | CaptionInputs,
    *,
    lists: bool = False,
) -> str:
    """One line for each image or, in n-best lists, one line for each caption with its score.

    ``lists`` is true if n-best lists were requested, even if only one caption was found.
    """
    lines = []
    for name, found in zip(names, captions, strict=True):
        if not lists:
            lines.append(f"{name}: {data.vocabulary.decode(found[0].tokens)}")
            continue
        lines.append(f"{name}:")
        lines += [f"  {one.score:8.3f}  {data.vocabulary.decode(one.tokens)}" for one in found]
    return "\n".join(lines)


def write_captions(
    path: str | os.PathLike[str],
    run: Run,
    names: Sequence[str],
    captions: Sequence[Sequence[Hypothesis]],
) -> None:
    """Write all captions of each image, best first, with their scores; see :func:`write_json`."""
    decode = run.inputs.vocabulary.decode
    images = [
        {
            "name": name,
            "captions": [
                {"caption": decode(one.tokens), "score": one.score, "log_prob": one.log_prob} for one in found
            ],
        }
        for name, found in zip(names, captions, strict=True)
    ]
    write_json(path, run, {"images": images})


def coco_image_ids(names: Sequence[str]) -> list[int]:
    """The ids of COCO's images by their file names, such as COCO_val2014_000000391895.jpg.

    Raises
    ------
    ValueError
        If a name is not one of COCO's, or two images have one id.
    """
    seen: dict[int, str] = {}
    for name in names:
        match = _COCO_NAME.fullmatch(os.path.basename(name))
        if match is None:
            raise InputError(
                f"{name!r} is no file name of COCO, whose ids are needed for its results: expected a name "
                "such as COCO_val2014_000000391895.jpg or 000000391895.jpg"
            )
        if (image_id := int(match[1])) in seen:
            raise InputError(
                f"{seen[image_id]!r} and {name!r} both have COCO's id {image_id}, expected each image once"
            )
        seen[image_id] = name
    return list(seen)


def write_coco_results(
    path: str | os.PathLike[str],
    image_ids: Sequence[int],
    captions: Sequence[Sequence[Hypothesis]],
    data: CaptionData | CaptionInputs,
) -> None:
    """Write the best caption of each image as COCO's evaluation reads it: image_id and caption."""
    best = [
        {"image_id": k, "caption": text} for k, text in zip(image_ids, written(captions, data), strict=True)
    ]
    files.write_json(path, best)


def captions_picture(
    path: str | os.PathLike[str],
    names: Sequence[str],
    captions: Sequence[Sequence[Hypothesis]],
    data: CaptionData | CaptionInputs,
    *,
    images: Iterable[np.ndarray] | None = None,
    download: bool = False,
) -> None:
    """Write a PNG of the images with their best captions; see :func:`attention_picture`.

    Images are read and shrunk one by one, so that large photographs are not in memory at the same time.
    """
    from rnnlab import plots  # importing matplotlib takes half a second

    if images is None:
        images = (named_image(name, data.image_dir, download=download) for name in names)
    drawn = [_shrunk(image) for image in images]
    figure = plots.caption_grid(drawn, written(captions, data))
    plots.save(figure, path)


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
        Images to draw instead, such as the visible parts of photographs.
    download : bool
        Download images whose names are URLs.

    Raises
    ------
    ValueError
        If the captions have no alignments.
    """
    from rnnlab import plots

    attended = [attended_words(best, data) for best, *_ in captions]
    if images is None:
        images = [named_image(name, data.image_dir, download=download) for name in names]
    figure = plots.attention_grid(images, [words for words, _ in attended], [each for _, each in attended])
    plots.save(figure, path)


def attended_words(caption: Hypothesis, data: CaptionData | CaptionInputs) -> tuple[list[str], np.ndarray]:
    """The words of a caption, and the attention (words, regions) of each.

    Raises
    ------
    ValueError
        If the caption has no alignment.
    """
    if caption.alignment is None:
        raise InputError("attended_words: the caption has no alignment, expected one of a model that attends")
    return data.vocabulary.decode(caption.tokens).split(), caption.alignment[: len(caption.tokens)]


def _shrunk(image: np.ndarray) -> np.ndarray:
    """An image (h, w, 3) uint8 with at most as many pixels as are needed to draw it."""
    if max(image.shape[:2]) <= _SIDE:
        return image
    shrunk = Image.fromarray(image)
    shrunk.thumbnail((_SIDE, _SIDE))
    return np.asarray(shrunk)
