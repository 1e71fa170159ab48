"""Reading untrusted files: regular files only, within the limits of :mod:`rnnlab.limits`.

Every error names the file, what was found and what was expected. A file may be gzipped, which is recognised
from its content, not from its name.
"""

from __future__ import annotations

import codecs
import gzip
import hashlib
import io
import json
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import Any, BinaryIO, cast

from rnnlab.errors import InputError, InputTypeError
from rnnlab.limits import EXPANSION, FREE_BYTES, JSON_BYTES, LINE_BYTES

PathLike = str | os.PathLike[str]

_BLOCK = 1 << 20  # bytes that are read at once
_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def mismatch(where: str, found: object, expected: object) -> ValueError:
    """The error of a check of contents; ``where`` names file and field."""
    return InputError(f"{where}: found {found}, expected {expected}")


def utf8(where: str, text: str) -> bytes:
    """The bytes of a text in UTF-8.

    Raises
    ------
    ValueError
        If it has a lone surrogate, such as one for a byte of a file name that is not text. The message
        begins with ``where``.
    """
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise mismatch(where, f"{text!r:.200}", "text, without lone surrogates") from None


def check_regular(path: PathLike, expected: str = "a file") -> int:
    """Check that a path is a regular file, and return the file's size in bytes.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    OSError
        If it is a directory, or a device or a pipe, which may have no end.
    TypeError
        If it is not a path.
    """
    if not isinstance(path, str | bytes | os.PathLike):
        raise InputTypeError(f"found {path!r:.60} as the path of a file, expected {expected}")
    path = os.fspath(path)  # an EnvPath whose environment variable is not set raises its own error
    try:
        status = os.stat(path)
    except FileNotFoundError:
        where = path or "an empty path"
        raise FileNotFoundError(f"{where}: found no such file, expected {expected}") from None
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "no regular file")
        error = IsADirectoryError if stat.S_ISDIR(status.st_mode) else OSError
        raise error(f"{path}: found {kind}, expected {expected}")
    return status.st_size


def read_limited(path: PathLike, most_bytes: int, expected: str) -> bytes:
    """The content of a regular file of at most ``most_bytes``.

    Raises
    ------
    OSError
        As :func:`check_regular`, or if the file cannot be read.
    ValueError
        If it is larger.
    """
    size = check_regular(path, expected)
    if size > most_bytes:
        raise mismatch(os.fspath(path), f"{size:,} bytes", f"{expected} of at most {most_bytes:,}")
    with open(path, "rb") as file:
        return file.read(min(most_bytes, max(size, 1 << 20)))  # Python allocates what is asked for


@contextmanager
def open_bytes(path: PathLike, expected: str = "a file") -> Iterator[BinaryIO]:
    """Open a regular file for reading in parts, decompressed if it is gzipped.

    Raises
    ------
    OSError
        As :func:`check_regular`, or if the file cannot be read.
    ValueError
        During reading, if it is a damaged gzip file, or decompresses to more than the limit.
    """
    size = check_regular(path, expected)
    with open(path, "rb") as stream:
        if not stream.peek(2).startswith(b"\x1f\x8b"):
            yield stream
            return
        try:
            with gzip.open(stream) as decompressed:
                limited = _Limited(cast(BinaryIO, decompressed), os.fspath(path), size)
                yield cast(BinaryIO, io.BufferedReader(limited, 1 << 17))
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise mismatch(os.fspath(path), f"a damaged gzip file ({error})", "a complete one") from None


def read_bytes(path: PathLike, expected: str = "a file") -> bytes:
    """The content of a regular file, decompressed if it is gzipped; see :func:`open_bytes`."""
    with open_bytes(path, expected) as stream:
        return b"".join(_blocks(stream))


def file_hash(*paths: PathLike) -> str:
    """The sha256 of the concatenated contents of regular files, without decompression.

    Raises
    ------
    OSError
        As :func:`check_regular`, or if a file cannot be read.
    """
    digest = hashlib.sha256()
    for path in paths:
        check_regular(path)
        with open(path, "rb") as file:
            while part := file.read(_BLOCK):
                digest.update(part)
    return digest.hexdigest()


def text_lines(path: PathLike, expected: str = "a text file") -> Iterator[str]:
    """The lines of a text file in UTF-8, gzipped or not, without line ends.

    Raises
    ------
    OSError
        As :func:`open_bytes`.
    ValueError
        As :func:`open_bytes`, or if a line is not UTF-8 or longer than the limit. The message names file and
        line.
    """
    with open_bytes(path, expected) as stream:
        yield from stream_lines(stream, os.fspath(path))


def stream_lines(stream: BinaryIO, name: str) -> Iterator[str]:
    """The lines of an open stream in UTF-8, without line ends.

    Parameters
    ----------
    stream : binary file
    name : str
        The name of the stream, for messages.

    Raises
    ------
    ValueError
        If a line is not UTF-8 or longer than the limit. The message names stream and line.
    """
    for number, line in enumerate(_split_lines(stream), 1):
        if len(line) > LINE_BYTES:
            found = f"a line of more than {LINE_BYTES:,} bytes"
            raise mismatch(f"{name}:{number}", found, "shorter ones")
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise mismatch(f"{name}:{number}", f"bytes that are not UTF-8 ({error})", "text") from None
        yield text.removesuffix("\r")


def lines_in_pieces(path: PathLike, expected: str = "a text file") -> Iterator[Iterator[str]]:
    """The lines of a text file in UTF-8, gzipped or not, of any length; each as an iterator of its pieces.

    A line of at most a megabyte is one piece. A longer one is divided after spaces, or anywhere if it has
    none. All pieces of a line must be read before the next line.

    Raises
    ------
    OSError
        As :func:`open_bytes`.
    ValueError
        As :func:`open_bytes`, or if a line is not UTF-8. The message names file and line.
    """
    with open_bytes(path, expected) as stream:
        pieces = _pieces(stream, os.fspath(path))
        for piece, ends in pieces:
            yield _rest_of_line(piece, ends, pieces)


def load_json(path: PathLike, expected: str = "a JSON file", most_bytes: int = JSON_BYTES) -> Any:
    """The content of a JSON file.

    Raises
    ------
    OSError, ValueError
        As :func:`read_limited`; also if it is not JSON, or nested deeper than Python can follow.
    """
    text: Any = read_limited(path, most_bytes, expected)
    try:
        text = text.decode("utf-8-sig")  # this frees the bytes
        content = json.loads(text)
        if "\\ud" in text or "\\uD" in text:  # maybe an unpaired surrogate, which is not valid text
            json.dumps(content, ensure_ascii=False).encode()
        return content
    except RecursionError:
        raise mismatch(os.fspath(path), "JSON that is nested too deeply to be read", expected) from None
    except ValueError as error:  # not JSON, or not text
        raise mismatch(os.fspath(path), f"text that is not JSON ({error})", expected) from None


def _blocks(stream: BinaryIO) -> Iterator[bytes]:
    return iter(partial(stream.read, _BLOCK), b"")


def _split_lines(stream: BinaryIO) -> Iterator[bytes]:
    """The lines of a stream, which end only at line feeds; a line above the limit is the last one."""
    begun = b""
    for block in _blocks(stream):
        *whole, begun = (begun + block).split(b"\n")
        yield from whole
        if len(begun) > LINE_BYTES:
            break
    if begun:
        yield begun


def _pieces(stream: BinaryIO, name: str) -> Iterator[tuple[str, bool]]:
    """Pieces of a text, and whether each is the last one of its line."""
    decoder, number, begun, is_divided = codecs.getincrementaldecoder("utf-8-sig")(), 1, "", False
    for block in chain(_blocks(stream), [b""]):  # which ends the text
        try:
            text = decoder.decode(block, final=not block)
        except UnicodeDecodeError as error:
            place = number + error.object[: error.start].count(b"\n")
            raise mismatch(f"{name}:{place}", f"bytes that are not UTF-8 ({error})", "text") from None
        *whole, begun = (begun + text).split("\n")
        for line in whole:
            yield line.removesuffix("\r"), True
            is_divided = False
        number += len(whole)
        if len(begun) > _BLOCK:
            cut = begun.rfind(" ") + 1 or len(begun) - 1  # not after the "\r" of a line end
            yield begun[:cut], False
            begun, is_divided = begun[cut:], True
    if begun or is_divided:
        yield begun.removesuffix("\r"), True


def _rest_of_line(piece: str, ends: bool, pieces: Iterator[tuple[str, bool]]) -> Iterator[str]:
    """A piece, and the following ones up to the end of its line."""
    yield piece
    while not ends:
        piece, ends = next(pieces)
        yield piece


class _Limited(io.RawIOBase):
    """A decompressed stream that raises an error when it becomes too large for its file."""

    def __init__(self, stream: BinaryIO, path: str, size: int) -> None:
        self._stream, self._path, self._size = stream, path, size
        self._left = max(FREE_BYTES, EXPANSION * size)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self._stream.readinto(buffer)  # type: ignore[attr-defined]
        self._left -= count
        if self._left < 0:
            raise mismatch(
                self._path,
                f"a gzip file of {self._size:,} bytes that decompresses to more than "
                f"{max(FREE_BYTES, EXPANSION * self._size):,}",
                f"at most {EXPANSION} bytes for each",
            )
        return count
