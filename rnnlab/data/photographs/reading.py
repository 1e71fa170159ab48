"""Photographs to RGB, upright as their EXIF data say, and of a bounded number of pixels."""

from __future__ import annotations

import warnings
from typing import IO

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from rnnlab.data.hdf5 import PathLike


def read_photograph(path: PathLike) -> Image.Image:
    """Read a photograph as RGB, upright.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    OSError
        If it is not an image, damaged, or larger than Pillow's limit ``Image.MAX_IMAGE_PIXELS``, which
        protects from small files that decode to gigabytes. The message names the file.
    """
    try:
        with open(path, "rb") as file:
            return decode_photograph(file)
    except FileNotFoundError:
        raise FileNotFoundError(f"{path}: found no such file, expected an image") from None
    except UnidentifiedImageError as error:
        raise OSError(
            f"{path}: found no image of a format that Pillow reads, expected a photograph"
        ) from error
    except Exception as error:  # decoders raise almost any exception
        raise OSError(
            f"{path}: found an image that cannot be read ({error}), expected a photograph"
        ) from error


def decode_photograph(file: IO[bytes]) -> Image.Image:
    """The image in an open file as RGB, upright; transparent pixels are white."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        with Image.open(file) as image:
            return _to_rgb(ImageOps.exif_transpose(image))


def _to_rgb(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I"):  # 16 bits, which Pillow would clip at 255
        return Image.fromarray((np.asarray(image) >> 8).astype(np.uint8)).convert("RGB")
    if "A" in image.getbands() or "transparency" in image.info:
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
    return image.convert("RGB")
