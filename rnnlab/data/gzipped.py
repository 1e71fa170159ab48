"""Files that may be gzipped, as data sets are handed round; what is in them tells, not their name."""

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
        If it is a damaged gzip file; names it.
    """
    content = Path(path).read_bytes()
    if not content.startswith(b"\x1f\x8b"):
        return content
    try:
        return gzip.decompress(content)
    except (EOFError, OSError, zlib.error) as error:
        raise mismatch(str(path), f"a damaged gzip file ({error})", "a whole one") from None
