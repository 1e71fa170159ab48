"""Photographs to RGB, rotated upright according to their EXIF data, with a bounded number of pixels."""

from __future__ import annotations

import os
from typing import IO, NamedTuple

import numpy as np
from PIL import ExifTags, Image, ImageOps, UnidentifiedImageError

from rnnlab.limits import FREE_PIXELS, PIXELS_PER_BYTE
from rnnlab.reading import PathLike, check_regular, mismatch

# The formats of photographs, and the suffixes of their files. Pillow also reads other formats, one of which,
# EPS, runs a program.
FORMATS = {
    "AVIF": (".avif", ".avifs"),
    "BMP": (".bmp",),
    "GIF": (".gif",),
    "JPEG": (".jpg", ".jpeg", ".jpe", ".jfif"),
    "JPEG2000": (".jp2", ".j2k", ".j2c", ".jpc", ".jpf", ".jpx"),
    "PNG": (".png", ".apng"),
    "PPM": (".ppm", ".pgm", ".pbm", ".pnm", ".pfm"),
    "TIFF": (".tif", ".tiff"),
    "WEBP": (".webp",),
}

# The formats with at most 16 bits that Pillow may read in its 32-bit mode.
_WIDE_FORMATS = ("PNG", "PPM")

_ROWS = 256  # rows that are converted at once


def read_photograph(path: PathLike) -> Image.Image:
    """Read a photograph as RGB, upright.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    OSError
        If it is not a regular file or not an image of :data:`FORMATS`, is damaged, or has more pixels than
        Pillow's ``Image.MAX_IMAGE_PIXELS`` or than the size of the file allows (a small file may decode to
        gigabytes).
        If its pixels are 32-bit integers or floats, for which the values of black and white are unknown. The
        message names the file.
    """
    check_regular(path, "an image")
    try:
        with open(path, "rb") as file:
            return decode_photograph(file)
    except UnidentifiedImageError as error:
        raise OSError(
            f"{path}: found no image of a format that is read ({', '.join(_known_formats())}), expected a "
            "photograph"
        ) from error
    except Exception as error:  # decoders raise almost any exception
        raise OSError(
            f"{path}: found an image that cannot be read ({error}), expected a photograph"
        ) from error


def decode_photograph(file: IO[bytes]) -> Image.Image:
    """The image in an open file as RGB, upright; transparent pixels are white.

    Raises
    ------
    OSError, ValueError
        As :func:`read_photograph`, and whatever decoders raise. The message does not name the file.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    with Image.open(file, formats=_known_formats()) as image:
        _check_pixels(image, size)
        wide = _Wide.of(image)
        ImageOps.exif_transpose(image, in_place=True)
        return _to_rgb(image, wide)


def _check_pixels(image: Image.Image, size: int) -> None:
    """Refuse an image with too many pixels. Up to twice its own limit, Pillow only warns."""
    width, height = image.size
    most = Image.MAX_IMAGE_PIXELS
    if most is not None and width * height > most:
        raise Image.DecompressionBombError(f"{width:,} x {height:,} pixels, at most {most:,} are read")
    if width * height > max(FREE_PIXELS, PIXELS_PER_BYTE * size):
        raise Image.DecompressionBombError(
            f"{width:,} x {height:,} pixels in {size:,} bytes, at most {PIXELS_PER_BYTE} for a byte"
        )


def _known_formats() -> list[str]:
    Image.init()
    return [name for name in FORMATS if name in Image.OPEN]  # AVIF is new in Pillow 11.3


class _Wide(NamedTuple):
    """How grey pixels of more than 8 bits become bytes. Pillow itself would clip them at 255."""

    bits: int
    white_is_zero: bool
    transparent: int | None  # the value of transparent pixels

    @classmethod
    def of(cls, image: Image.Image) -> _Wide | None:
        """That of an image, None for bytes; InputError if its mode has no defined range."""
        if image.mode == "F" or (image.mode == "I" and image.format not in _WIDE_FORMATS):
            kind = "floats" if image.mode == "F" else "integers"
            raise mismatch("mode", f"{image.mode}, {kind} of unknown range", "pixels of 8 or 16 bits")
        if not image.mode.startswith("I"):
            return None
        tags = getattr(image, "tag_v2", {})  # of TIFF
        bits = tags.get(ExifTags.Base.BitsPerSample, (16,))[0]
        white_is_zero = tags.get(ExifTags.Base.PhotometricInterpretation) == 0
        return cls(bits, white_is_zero, image.info.get("transparency"))

    def to_bytes(self, image: Image.Image) -> Image.Image:
        """The image with 8 bits; transparent pixels are white."""
        values = np.asarray(image)
        grey = (values >> (self.bits - 8)).astype(np.uint8)
        if self.white_is_zero:
            grey = 255 - grey
        if self.transparent is not None:
            grey[values == self.transparent] = 255
        return Image.fromarray(grey)


def _to_rgb(image: Image.Image, wide: _Wide | None) -> Image.Image:
    """An image of any mode as RGB, converted a few rows at a time, because copies of it need much memory."""
    has_alpha = "A" in image.getbands() or "transparency" in image.info
    if not has_alpha and wide is None:
        return image.convert("RGB")
    found = Image.new("RGB", image.size)
    for top in range(0, image.height, _ROWS):
        rows = image.crop((0, top, image.width, min(top + _ROWS, image.height)))
        if wide is not None:
            rows = wide.to_bytes(rows)
        else:
            rows = rows.convert("RGBA")
            rows = Image.alpha_composite(Image.new("RGBA", rows.size, "white"), rows)
        found.paste(rows.convert("RGB"), (0, top))
    return found
