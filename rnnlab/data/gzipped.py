"""Files that may be gzipped, recognised by their content instead of their name."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from rnnlab.data.hdf5 import PathLike, mismatch


def read_bytes(path: PathLike) -> bytes:
    """The content of a file, decompressed if it is gzipped.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If it is a damaged gzip file. The message names it.
    """
    with open_bytes(path) as stream:
        return stream.read()


@contextmanager
def open_bytes(path: PathLike) -> Iterator[BinaryIO]:
    """A file for reading part by part, decompressed if it is gzipped.

    Raises
    ------
    OSError, ValueError
        As :func:`read_bytes`, where the file is opened or read.
    """
    with Path(path).open("rb") as stream:
        if not stream.peek(2).startswith(b"\x1f\x8b"):
            yield stream
            return
        try:
            with gzip.open(stream) as decompressed:
                yield cast(BinaryIO, decompressed)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise mismatch(str(path), f"a damaged gzip file ({error})", "a complete one") from None
