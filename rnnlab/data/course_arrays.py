"""The course's access to captioned images: a dictionary of arrays, minibatches, and tokens as words.

The functions are those of the cs231n assignment. :class:`rnnlab.data.CaptionData` is the
same data for the solver.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rnnlab.data.course import FEATURE_FILES, read_course
from rnnlab.data.folders import public_data
from rnnlab.data.shapes import ensure_shapes, shapes_directory
from rnnlab.errors import InputError, InputTypeError, MissingDataError, OutOfRangeError
from rnnlab.layers.checks import as_array, as_generator, check_rng
from rnnlab.reading import PathLike


def load_coco_data(
    base_dir: PathLike | None = None,
    max_train: int | None = None,
    pca_features: bool = True,
    rng: np.random.Generator | int = 0,
) -> dict[str, Any]:
    """Read captions, features, vocabulary and URLs of images in the course's layout.

    Parameters
    ----------
    base_dir : path, optional
        The folder. By default the first of ``coco_captioning`` and ``flickr8k_cs231n`` that is in
        ``$RNNLAB_DATA``, otherwise the built-in shapes, which are generated on first use.
    max_train : int, optional
        Use only this number of training captions, drawn without replacement.
    pca_features : bool
        Whether to read the features after PCA or the original ones.
    rng : numpy Generator or seed
        Draws the captions of ``max_train``.

    Returns
    -------
    dict
        ``train_captions`` (num_captions, L) int32, ``train_image_idxes`` (num_captions,) int32,
        ``train_features`` (num_images, D) float32, ``train_urls`` (num_images,) str, the same with ``val_``,
        ``idx_to_word`` list, ``word_to_idx`` dict.

    Raises
    ------
    OSError, KeyError, ValueError
        If a file is missing or invalid. The message names file, field, found and expected.
    """
    directory = default_directory() if base_dir is None else Path(base_dir)
    kind = "pca" if pca_features else "full"
    missing = directory / FEATURE_FILES[kind].format(split="train")
    if not pca_features and directory.is_dir() and not missing.exists():
        raise FileNotFoundError(
            f"{missing}: found no such file, expected the features before PCA: pass pca_features=True for "
            "those after PCA"
        )
    vocabulary, splits = read_course(directory, features=kind, splits=("train", "val"))
    if max_train is not None:
        splits["train"] = splits["train"].sample(max_train, as_generator("load_coco_data", rng))
    data: dict[str, Any] = {}
    for name, split in splits.items():
        data[f"{name}_captions"] = split.captions
        data[f"{name}_image_idxes"] = split.image_idxs
    for name, split in splits.items():
        data[f"{name}_features"] = split.features
    data["idx_to_word"], data["word_to_idx"] = vocabulary.idx_to_word, vocabulary.word_to_idx
    for name, split in splits.items():
        data[f"{name}_urls"] = np.array(split.names)
    return data


def default_directory(*, make: bool = True) -> Path:
    """The default folder of :func:`load_coco_data`; the built-in data are generated if ``make`` is true.

    Raises
    ------
    FileNotFoundError
        If ``$RNNLAB_DATA`` names no existing folder.
    """
    if root := public_data():
        for name in ("coco_captioning", "flickr8k_cs231n"):
            if (root / name).is_dir():
                return root / name
    return ensure_shapes() if make else shapes_directory()


def sample_coco_minibatch(
    data: Mapping[str, Any],
    batch_size: int = 100,
    split: str = "train",
    rng: np.random.Generator | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw captions with replacement.

    Parameters
    ----------
    data : dict
        From :func:`load_coco_data`.
    batch_size : int
    split : str
    rng : Generator, optional
        Without it, every call draws other captions.

    Returns
    -------
    captions (batch_size, L), features (batch_size, D), urls (batch_size,)
    """
    if f"{split}_captions" not in data:
        raise MissingDataError(
            f"sample_coco_minibatch: data has no split {split!r}, only the keys {', '.join(data)}"
        )
    check_rng("sample_coco_minibatch", rng)
    rng = np.random.default_rng() if rng is None else rng
    drawn = rng.integers(len(data[f"{split}_captions"]), size=batch_size)
    images = data[f"{split}_image_idxes"][drawn]
    return data[f"{split}_captions"][drawn], data[f"{split}_features"][images], data[f"{split}_urls"][images]


def decode_captions(captions: np.ndarray, idx_to_word: Sequence[str]) -> str | list[str]:
    """Tokens as words, up to and including <END>, without <NULL>.

    Parameters
    ----------
    captions : (N, L) or (L,) int
    idx_to_word : sequence of str

    Returns
    -------
    A list of N strings, or one string for a caption (L,).

    Raises
    ------
    IndexError
        If a token is outside the vocabulary.
    ValueError
        If ``captions`` has another number of axes, or rows of different lengths.
    TypeError
        If the tokens are not integers.
    """
    captions = as_array("decode_captions: captions", captions)
    if captions.dtype.kind not in "iu" and captions.size:  # an empty list is an array of floats
        raise InputTypeError(f"decode_captions: captions has dtype {captions.dtype}, expected integers")
    if captions.ndim not in (1, 2):
        raise InputError(f"decode_captions: captions has shape {captions.shape}, expected (N, L) or (L,)")
    if captions.ndim == 1:
        return _decode(captions, idx_to_word)
    return [_decode(caption, idx_to_word) for caption in captions]


def _decode(caption: np.ndarray, idx_to_word: Sequence[str]) -> str:
    words = []
    for token in caption.tolist():
        if not 0 <= token < len(idx_to_word):
            raise OutOfRangeError(
                f"decode_captions: token {token} is outside the {len(idx_to_word)} words of idx_to_word"
            )
        word = idx_to_word[token]
        if word != "<NULL>":
            words.append(word)
        if word == "<END>":
            break
    return " ".join(words)
