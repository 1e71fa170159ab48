"""Pictures by URL or name, for display. A missing picture is a placeholder, never an exception.

A name in a data file can only refer to a file below the folders of pictures. URLs are downloaded only if
the caller asks for it.
"""

from __future__ import annotations

import base64
import io
import os
import textwrap
import time
import urllib.request
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
from PIL import Image, ImageDraw

from rnnlab.data.course import IMAGE_FOLDER
from rnnlab.data.course_arrays import default_directory
from rnnlab.data.folders import public_data
from rnnlab.data.photographs.reading import decode_photograph, read_photograph
from rnnlab.errors import InputError, RnnlabError
from rnnlab.limits import DOWNLOAD_BYTES
from rnnlab.reading import PathLike, mismatch

_WIDEST = 320  # maximum width and height in pixels of a photograph in a page
_QUALITY = 72  # JPEG quality of a photograph in a page
_PLACEHOLDER_SIZE = 224
_PLACEHOLDER_COLUMNS = 36  # characters per line


def image_from_url(
    url: PathLike, image_dir: PathLike | None = None, timeout: float = 10.0, *, download: bool = False
) -> np.ndarray:
    """Read an image.

    Parameters
    ----------
    url : str or path
        A URL (http, https or file), a path, or the name of a file below ``image_dir``, below
        ``$RNNLAB_DATA/flickr8k/images`` or below the folder ``images`` of the default data of
        :func:`load_coco_data`.
    image_dir : path, optional
        The folder of the pictures, for names from data files: a name cannot refer to a file outside the
        folders. Without it, ``url`` may be any path.
    timeout : float
        The time limit of a download in seconds.
    download : bool
        Download http and https URLs. By default they are missing images.

    Returns
    -------
    (h, w, 3) uint8
        RGB for every mode of the file, rotated upright according to its EXIF data; transparent pixels are
        white. If the image is missing or damaged, a grey placeholder with its name and the reason.
    """
    try:
        return np.array(_read(str(url), image_dir, timeout, download))
    except Exception as error:
        # decoders raise almost any exception, and no notebook should stop for a picture
        kind = "" if isinstance(error, OSError | RnnlabError) and str(error) else f"{type(error).__name__}: "
        return _placeholder(str(url), f"{kind}{error}")


def named_image(name: str, image_dir: PathLike | None, *, download: bool = False) -> np.ndarray:
    """Read an image of the data by its name, as :func:`image_from_url`.

    It is searched below ``image_dir``, by default the current folder, and no path out of it is followed.
    """
    return image_from_url(name, image_dir or ".", download=download)


def image_on_disk(name: PathLike, image_dir: PathLike | None = None) -> Path | None:
    """The file of an image of the data, by its name; None if it is not there.

    It is searched in the folders of :func:`named_image`.
    """
    try:
        return _find(str(name), _folders(image_dir or "."))
    except (OSError, ValueError):
        return None


def data_url(picture: np.ndarray, *, lossless: bool = False) -> str:
    """A picture as a data URL, for pages that make no request.

    Parameters
    ----------
    picture : (h, w, 3) or (h, w, 4) uint8
        Four channels are allowed with ``lossless`` only.
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


def _read(url: str, image_dir: PathLike | None, timeout: float, download: bool) -> Image.Image:
    scheme = urlsplit(url).scheme
    if scheme in ("http", "https"):
        if not download:
            raise InputError(
                "not downloaded: URLs are downloaded only with --download (in Python download=True)"
            )
        return decode_photograph(io.BytesIO(_download(url, timeout)))
    if scheme == "file":
        url = urllib.request.url2pathname(urlsplit(url).path)
    if image_dir is None and os.path.exists(url):
        return read_photograph(url)
    return read_photograph(_find(url, _folders(image_dir)))


def _download(url: str, timeout: float) -> bytes:
    deadline = time.monotonic() + timeout
    request = urllib.request.Request(
        url, headers={"User-Agent": "rnnlab"}
    )  # some servers refuse urllib's own user agent
    content = bytearray()
    with urllib.request.urlopen(request, timeout=timeout) as response:
        while part := response.read1(1 << 16):
            content += part
            if time.monotonic() > deadline:
                raise TimeoutError(f"not complete after {timeout:g} s")
            if len(content) > DOWNLOAD_BYTES:
                raise OSError(f"more than {DOWNLOAD_BYTES:,} bytes")
    return bytes(content)


def _find(name: str, folders: Iterable[Path]) -> Path:
    """The file of this name below the first folder that has it."""
    outside: list[Path] = []
    searched: list[Path] = []
    for folder in folders:
        searched.append(folder)
        path = folder / name
        if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder)):
            outside.append(folder)
        elif path.is_file():
            return path
    if outside:
        raise mismatch(name, f"a path out of the folder {outside[0]}", "a file below it")
    raise FileNotFoundError(f"no such file in {', '.join(map(str, searched))}")


def _folders(image_dir: PathLike | None) -> Iterator[Path]:
    if image_dir is not None:
        yield Path(image_dir)
    if root := public_data():
        yield root / "flickr8k" / "images"
    yield default_directory(make=False) / IMAGE_FOLDER


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
