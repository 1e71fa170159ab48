"""Pictures by address or name, for display. A missing picture is a placeholder, never an exception."""

from __future__ import annotations

import base64
import io
import os
import textwrap
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
from PIL import Image, ImageDraw

from rnnlab.data.coco import default_directory
from rnnlab.data.course import IMAGE_FOLDER
from rnnlab.data.hdf5 import PathLike
from rnnlab.data.photographs.reading import decode_photograph

_MOST_BYTES = 64 << 20  # of a download
_WIDEST = 320  # pixels of a photograph in a page
_QUALITY = 72  # of its JPEG
_PLACEHOLDER_SIZE = 224
_PLACEHOLDER_COLUMNS = 36  # of text


def image_from_url(url: PathLike, image_dir: PathLike | None = None, timeout: float = 10.0) -> np.ndarray:
    """Read an image.

    Parameters
    ----------
    url : str or path
        An address (http, https or file), a file path, or a file name. A name is searched in ``image_dir``,
        then as a path, then in ``$RNNLAB_DATA/flickr8k/images``, then in the folder ``images`` of the default
        data of :func:`load_coco_data`.
    image_dir : path, optional
        The folder of the pictures of the data.
    timeout : float
        The time limit of a download in seconds.

    Returns
    -------
    (h, w, 3) uint8
        RGB for every mode of the file, upright as its EXIF data say; transparent pixels are white. If the
        image is missing or damaged, a grey placeholder with its name and the reason.
    """
    try:
        return np.array(decode_photograph(io.BytesIO(_read(str(url), image_dir, timeout))))
    except Exception as error:
        # decoders raise almost any exception, and no notebook should stop for a picture
        return _placeholder(str(url), f"{type(error).__name__}: {error}")


def image_on_disk(name: PathLike, image_dir: PathLike | None = None) -> Path | None:
    """The file of an image, searched as in :func:`image_from_url`; None if it is not there.

    Nothing is downloaded, and no data are generated.
    """
    return next((path for path in _given_places(str(name), image_dir) if path.is_file()), None)


def data_url(picture: np.ndarray, *, lossless: bool = False) -> str:
    """A picture as a data URL, for pages that make no request.

    Parameters
    ----------
    picture : (h, w, 3) or (h, w, 4) uint8
        Four channels are for ``lossless`` alone.
    lossless : bool
        PNG, for drawings, instead of JPEG of at most 320 pixels in width and height, for photographs.
    """
    buffer = io.BytesIO()
    image = Image.fromarray(picture)
    if lossless:
        image.save(buffer, "PNG")
    else:
        image.thumbnail((_WIDEST, _WIDEST))
        image.save(buffer, "JPEG", quality=_QUALITY, optimize=True)
    encoded = base64.b64encode(buffer.getvalue()).decode()
    return f"data:image/{'png' if lossless else 'jpeg'};base64,{encoded}"


def _read(url: str, image_dir: PathLike | None, timeout: float) -> bytes:
    scheme = urlsplit(url).scheme
    if scheme in ("http", "https"):
        return _download(url, timeout)
    if scheme == "file":
        url = urllib.request.url2pathname(urlsplit(url).path)
    for path in _candidates(url, image_dir):
        if path.is_file():
            return path.read_bytes()
    raise FileNotFoundError("no such file")


def _download(url: str, timeout: float) -> bytes:
    deadline = time.monotonic() + timeout
    request = urllib.request.Request(
        url, headers={"User-Agent": "rnnlab"}
    )  # some servers refuse that of urllib
    content = bytearray()
    with urllib.request.urlopen(request, timeout=timeout) as response:
        while part := response.read1(1 << 16):
            content += part
            if time.monotonic() > deadline:
                raise TimeoutError(f"not complete after {timeout:g} s")
            if len(content) > _MOST_BYTES:
                raise OSError(f"more than {_MOST_BYTES:,} bytes")
    return bytes(content)


def _candidates(name: str, image_dir: PathLike | None) -> Iterator[Path]:
    yield from _given_places(name, image_dir)
    yield default_directory() / IMAGE_FOLDER / name  # last, because the data may have to be generated


def _given_places(name: str, image_dir: PathLike | None) -> Iterator[Path]:
    if image_dir is not None:
        yield Path(image_dir) / name
    yield Path(name)
    root = os.environ.get("RNNLAB_DATA")
    if root:
        yield Path(root) / "flickr8k" / "images" / name


def _placeholder(name: str, reason: str) -> np.ndarray:
    image = Image.new("RGB", (_PLACEHOLDER_SIZE, _PLACEHOLDER_SIZE), (225, 225, 225))
    draw = ImageDraw.Draw(image)
    draw.rectangle((4, 4, _PLACEHOLDER_SIZE - 5, _PLACEHOLDER_SIZE - 5), outline=(150, 150, 150))
    lines = ["image missing", ""]
    for text in (name, reason):
        printable = ascii(text)[1:-1]  # the built-in font may lack other letters
        lines += [*textwrap.wrap(printable, _PLACEHOLDER_COLUMNS, max_lines=5, placeholder=" ..."), ""]
    draw.multiline_text((12, 12), "\n".join(lines), fill=(60, 60, 60))
    return np.array(image)
