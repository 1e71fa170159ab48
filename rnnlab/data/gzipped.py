"""Files that may be gzipped, recognised by their content instead of their name."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

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
    content = Path(path).read_bytes()
    if not content.startswith(b"\x1f\x8b"):
        return content
    try:
        return gzip.decompress(content)
    except (EOFError, OSError, zlib.error) as error:
        raise mismatch(str(path), f"a damaged gzip file ({error})", "a complete one") from None
